// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/knob"
)

// settings reads knobs where the bench's trials set them.
func settings(t *testing.T, do func(func() error) error, port string, names ...string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := do(func() error {
		for _, n := range names {
			r, err := knob.Read(n, knob.At{Port: port})
			if err != nil {
				return err
			}
			out[n] = r.Value
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// alone keeps other test processes from the machine's settings meanwhile: there is one of each.
func alone(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(os.TempDir()+"/twopath-test-sysctl.lock", os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// TestKnobsHoldForTheTrialsOfTheirArm sets a knob of the machine and two of the port for one arm: its trials record them,
// the other arm's record what was there, and after each trial all is as it was.
func TestKnobsHoldForTheTrialsOfTheirArm(t *testing.T) {
	b := bench(t, 1)
	alone(t)
	b.StateDir = t.TempDir() + "/run"
	names := []string{"netdev_budget_usecs", "gro_flush_timeout", "napi_defer_hard_irqs", "offload_rxvlan"}
	read := func() map[string]string { return settings(t, b.Rig.SUT.Do, b.Rig.SUT.Name, names...) }
	before := read()
	if before["netdev_budget_usecs"] == "8123" {
		t.Fatal("the machine has the value that the test would set")
	}
	plain, with := spec(t, b, "kernel:recvmmsg", few), spec(t, b, "kernel:recvmmsg+netdev_budget_usecs=8123+offload_rxvlan=off+gro_flush_timeout=20us", few)
	if with.Arm.Option("gro_flush_timeout") != "20000" {
		t.Fatalf("arm %s", with.Arm)
	}
	remarks, err := b.TryKnobs([]compare.ArmSpec{plain.Arm, with.Arm}, false)
	if err != nil || len(remarks) != 0 {
		t.Errorf("remarks %q, %v: all of them matter in softirq", remarks, err)
	}
	if got := read(); !same(got, before) {
		t.Errorf("after the try: %v, was %v", got, before)
	}
	for range 2 {
		got := run(t, b, plain)
		for _, n := range names[:2] {
			if got.Effective.Other[n] != before[n] {
				t.Errorf("the plain arm records %s=%q, want %q", n, got.Effective.Other[n], before[n])
			}
		}
		got = run(t, b, with)
		for n, want := range map[string]string{"netdev_budget_usecs": "8123", "gro_flush_timeout": "20000", "offload_rxvlan": "off", "napi_defer_hard_irqs": "0"} {
			if got.Effective.Other[n] != want {
				t.Errorf("the arm records %s=%q, want %q", n, got.Effective.Other[n], want)
			}
		}
		if got.Received != few || got.Unexplained != 0 {
			t.Errorf("received %d of %d: %+v", got.Received, few, got.Ledger)
		}
		if now := read(); !same(now, before) {
			t.Errorf("after the trial: %v, was %v", now, before)
		}
	}
	if left, err := os.ReadDir(b.StateDir); err == nil {
		t.Errorf("left behind: %v", left)
	}
}

func same(a, b map[string]string) bool {
	for n := range a {
		if a[n] != b[n] {
			return false
		}
	}
	return len(a) == len(b)
}

// TestKnobsThatCannotBeSet: the arm does not run, says which knob and why, and nothing stays set.
func TestKnobsThatCannotBeSet(t *testing.T) {
	b := bench(t, 1)
	b.StateDir = t.TempDir() + "/run"
	names := []string{"promisc", "offload_rxvlan"}
	before := settings(t, b.Rig.SUT.Do, b.Rig.SUT.Name, names...)
	for arm, says := range map[string]string{
		"kernel:recvmmsg+promisc=on+rx_ring=4096":           "not supported by driver veth",
		"xdp:auto+promisc=on+offload_rxvlan=off+rx_usecs=0": "not supported by driver veth",
		"kernel:epoll+offload_rxvlan=off+rps_cpus=8000":     "rps_cpus",
		"kernel:recvmmsg+offload_gro=off":                   "no NAPI",
	} {
		s := spec(t, b, arm, 100)
		var refused *knob.Refused
		if _, err := b.TryKnobs([]compare.ArmSpec{s.Arm}, false); !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want a refusal that says %q", arm, err, says)
		}
		if arm != "kernel:recvmmsg+offload_gro=off" { // which the kernel would take
			if _, err := b.Run(context.Background(), s); !errors.As(err, &refused) {
				t.Errorf("%s: run: %v", arm, err)
			}
		}
		if now := settings(t, b.Rig.SUT.Do, b.Rig.SUT.Name, names...); !same(now, before) {
			t.Errorf("%s: %v, was %v", arm, now, before)
		}
	}
}

// TestKnobsNobodyLooksAt: an A/B of a knob that this rig's frames never meet says so.
func TestKnobsNobodyLooksAt(t *testing.T) {
	b := bench(t, 1)
	alone(t)
	b.StateDir = t.TempDir() + "/run"
	for arm, says := range map[string]string{
		"kernel:nosocket+dev_weight=65":            "64 packets a visit",
		"kernel:nosocket+rps_cpus=0+dev_weight=65": "",
		"kernel:nosocket+netdev_budget_usecs=8123": "", // the sender's softirq does
	} {
		remarks, err := b.TryKnobs([]compare.ArmSpec{spec(t, b, arm, 1).Arm}, false)
		if err != nil || (len(remarks) == 1) != (says != "") || !strings.Contains(strings.Join(remarks, " "), says) {
			t.Errorf("%s: %q, %v, want %q", arm, remarks, err, says)
		}
	}
	b.CPUs.Placement = "shared"
	if remarks, err := b.TryKnobs([]compare.ArmSpec{spec(t, b, "kernel:nosocket+netdev_budget_usecs=8123", 1).Arm}, false); err != nil || len(remarks) != 1 {
		t.Errorf("threaded: %q, %v: NAPI threads have no budget", remarks, err)
	}
}
