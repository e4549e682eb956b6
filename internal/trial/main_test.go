// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/engine"
	"twopath/internal/nstest"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// agentVariable makes the test binary an agent, as `twopath agent` is.
const agentVariable = "TWOPATH_TEST_AGENT"

func TestMain(m *testing.M) {
	if os.Getenv(agentVariable) == "1" {
		err := agent.Serve(context.Background(), stdio{}, agent.ServeOptions{Version: "test", Factory: engine.New})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

type stdio struct{}

func (stdio) Read(b []byte) (int, error)  { return os.Stdin.Read(b) }
func (stdio) Write(b []byte) (int, error) { return os.Stdout.Write(b) }
func (stdio) Close() error                { return errors.Join(os.Stdin.Close(), os.Stdout.Close()) }

// bench makes a veth rig with the receiver's NAPI on the sending core, where nothing is lost for want of a core.
func bench(t *testing.T, queues int) *trial.Bench {
	t.Helper()
	nstest.Root(t)
	cpus := allowed(t)
	if len(cpus) < 2 {
		t.Skip("needs two CPUs: one sends, one receives")
	}
	r, err := rig.New(rig.Options{Queues: queues})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	plan, err := rig.PlanCPUs(rig.PlanOptions{CPUs: cpus, Queues: queues, Placement: rig.Sender})
	if err != nil {
		t.Fatal(err)
	}
	b := &trial.Bench{Rig: r, CPUs: plan, Queues: queues, Command: func(string) *exec.Cmd {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), agentVariable+"=1", "GODEBUG=asyncpreemptoff=1")
		return c
	}}
	t.Cleanup(func() { b.Kill() })
	return b
}

func allowed(t *testing.T) []int {
	t.Helper()
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		t.Fatal(err)
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus
}

// spec is a short trial of an arm: n frames at a rate that any machine offers and any arm takes.
func spec(t *testing.T, b *trial.Bench, arm string, n uint64) trial.Spec {
	t.Helper()
	a, err := compare.ParseArm(arm)
	if err != nil {
		t.Fatal(err)
	}
	return trial.Spec{Role: agent.Receive, Arm: a, RunID: rand.Uint32() | 1, Strict: true, Content: true,
		Load: trial.Load{Flow: b.Flow(false, 4), Sizes: []int{64}, PPS: 40_000, Count: n}}
}

// run runs a trial. What the machine did to the load (this may be a busy one) is not what is tested, so a trial that is
// invalid for that alone is as good: its counts must add up all the same.
func run(t *testing.T, b *trial.Bench, s trial.Spec) compare.Trial {
	t.Helper()
	got, err := b.Run(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if err := got.Check(); err != nil && got.Valid {
		t.Fatal(err)
	}
	return got
}

// rows are the ledger's packets by place.
func rows(t compare.Trial) map[string]uint64 {
	m := map[string]uint64{}
	for _, r := range t.Ledger {
		m[r.At] += r.Packets
	}
	return m
}
