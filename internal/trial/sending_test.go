// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// sendBench is a bench whose peer receives on a core of its own.
func sendBench(t *testing.T, queues int) *trial.Bench {
	t.Helper()
	b := bench(t, queues)
	plan, err := rig.PlanCPUs(rig.PlanOptions{CPUs: allowed(t), Queues: queues, Placement: rig.Shared})
	if err != nil {
		t.Fatal(err)
	}
	b.CPUs = plan
	b.PeerNAPI = rig.NAPIOptions{Threaded: true, CPUs: plan.Gen, Policy: rig.Other}
	return b
}

// sendSpec is a short send trial of an arm: n frames, slowly enough for a busy peer's ring of 256.
func sendSpec(t *testing.T, b *trial.Bench, arm string, n uint64) trial.Spec {
	t.Helper()
	s := spec(t, b, arm, n)
	s.Test, s.Role, s.RunID = "udp-tx", agent.Send, rand.Uint32()|1
	s.Load.PPS = 20_000
	return s
}

var sendArms = []string{"kernel:write", "kernel:sendto", "kernel:sendmmsg", "kernel:sendmmsg+gso", "kernel:packet", "xdp:auto", "xdp:copy", "xdp:generic", "xdp:asavie"}

// accounted fails unless everything the engine took is received, or in a row.
func accounted(t *testing.T, got compare.Trial) {
	t.Helper()
	if err := got.Check(); err != nil {
		t.Fatal(err)
	}
	sum := got.Received + got.Unexplained
	for _, r := range append(append([]compare.LedgerRow(nil), got.Unsent...), got.Ledger...) {
		sum += r.Packets
	}
	if got.Handed == nil || sum != *got.Handed || got.Unexplained != 0 {
		t.Fatalf("received %d + rows = %d, unexplained %d, handed over %v: %+v %+v (%s)", got.Received, sum, got.Unexplained, got.Handed, got.Unsent, got.Ledger,
			got.InvalidBecause)
	}
	if got.Corrupt != 0 || got.Duplicate != 0 {
		t.Fatalf("corrupt %d, duplicate %d", got.Corrupt, got.Duplicate)
	}
}

// TestEveryArmSendsEveryFrame runs every arm at a load that any machine bears: the peer's program sees each number once,
// whole, and what it does not see has a row.
func TestEveryArmSendsEveryFrame(t *testing.T) {
	const n = 4000
	for _, arm := range sendArms {
		t.Run(arm, func(t *testing.T) {
			b := sendBench(t, 1)
			got := run(t, b, sendSpec(t, b, arm, n))
			accounted(t, got)
			if *got.Handed != n {
				t.Fatalf("handed over %d of %d (%s)", *got.Handed, n, got.InvalidBecause)
			}
			if got.Received < n/2 {
				t.Fatalf("received %d of %d: %+v", got.Received, n, got.Unsent)
			}
			if got.CPU == nil || got.CPU.WorkNsPerPacket == nil || *got.CPU.WorkNsPerPacket <= 0 {
				t.Errorf("no cost of CPU: %+v", got.CPU)
			}
			want := "none"
			if arm == "xdp:generic" {
				want = "generic"
			}
			if e := got.Effective; e == nil || e.Attach != want || !strings.HasPrefix(e.Other["peer_napi"], "threaded") || e.Other["peer_xdp"] != "native" {
				t.Errorf("effective: %+v", got.Effective)
			}
		})
	}
}

// The flood is what the test is for: whatever the peer's ring cannot hold is counted as never having left, to the packet.
func TestFloodIsAccountedFor(t *testing.T) {
	for _, arm := range sendArms {
		t.Run(arm, func(t *testing.T) {
			b := sendBench(t, 1)
			s := sendSpec(t, b, arm, 0)
			s.Load.PPS, s.Load.Seconds = 0, 0.2
			got := run(t, b, s)
			accounted(t, got)
			if got.Received == 0 || got.Lost != 0 {
				t.Fatalf("received %d, lost %d: %+v", got.Received, got.Lost, got.Ledger)
			}
		})
	}
}

func TestSendIPv6AndEverySize(t *testing.T) {
	const n = 3200
	for _, arm := range []string{"kernel:sendto", "kernel:sendmmsg+gso", "kernel:packet", "xdp:auto", "xdp:asavie"} {
		t.Run(arm, func(t *testing.T) {
			b := sendBench(t, 1)
			s := sendSpec(t, b, arm, n)
			s.Load.Flow = b.Flow(true, 3)
			s.Load.Sizes = []int{84, 128, 1518, 85, 1000}
			got := run(t, b, s)
			accounted(t, got)
			s = sendSpec(t, b, arm, n)
			s.Load.Sizes = compare.Size{IMIX: true}.Cycle()
			s.Work = compare.Work{Time: time.Microsecond}
			got = run(t, b, s)
			accounted(t, got)
			if *got.Handed != n {
				t.Fatalf("handed over %d of %d (%s)", *got.Handed, n, got.InvalidBecause)
			}
		})
	}
}

// TestBadDescriptorsArePlaced has the sender err on purpose: what the kernel refuses and what the device drops never left,
// to the packet.
func TestBadDescriptorsArePlaced(t *testing.T) {
	const n, every = few, 8
	for at, faults := range map[string]agent.Faults{"xsk.tx_invalid_descs": {BadDescriptor: every}, "tx.device_drop": {TooLong: every}} {
		t.Run(at, func(t *testing.T) {
			b := sendBench(t, 1)
			s := sendSpec(t, b, "xdp:copy", n)
			s.Load.PPS, s.Load.Faults = 5_000, faults
			got := run(t, b, s)
			accounted(t, got)
			if len(got.Unsent) != 1 || got.Unsent[0].At != at || got.Unsent[0].Packets != n/every || got.Unsent[0].Grade != compare.Exact ||
				got.Sent != n-n/every || got.Received != got.Sent {
				t.Fatalf("sent %d, received %d, not sent %+v, want %d at %s (%s)", got.Sent, got.Received, got.Unsent, n/every, at, got.InvalidBecause)
			}
		})
	}
}

// Two queues have a stream each; flows are shared out, and one flow is shared.
func TestTwoSenders(t *testing.T) {
	for _, arm := range []string{"kernel:sendmmsg", "kernel:packet", "xdp:auto", "xdp:asavie"} {
		for _, flows := range []int{1, 3} {
			b := sendBench(t, 2)
			s := sendSpec(t, b, arm, 2001)
			s.Load.Flow = b.Flow(false, flows)
			got := run(t, b, s)
			accounted(t, got)
			if *got.Handed != 2001 || len(got.PerWorker) != 2 || got.PerWorker[0] != 1001 || got.PerWorker[1] != 1000 {
				t.Errorf("%s, %d flows: handed over %d, per worker %v (%s)", arm, flows, *got.Handed, got.PerWorker, got.InvalidBecause)
			}
		}
	}
}

// A sender that cannot keep the rate is slow, not invalid.
func TestSlowSenderIsAResult(t *testing.T) {
	b := sendBench(t, 1)
	s := sendSpec(t, b, "xdp:auto", 2000)
	s.Load.PPS, s.Work = 100_000, compare.Work{Time: 100 * time.Microsecond}
	got := run(t, b, s)
	accounted(t, got)
	if got.Late == 0 || got.Offered <= got.Sent {
		t.Errorf("late %d, offered %d, sent %d", got.Late, got.Offered, got.Sent)
	}
	if strings.Contains(got.InvalidBecause, "rate") {
		t.Errorf("invalid: %s", got.InvalidBecause)
	}
}

func TestSendLimitIsLiveFrames(t *testing.T) {
	b := sendBench(t, 1)
	s := sendSpec(t, b, "xdp:auto", few)
	s.Role = agent.Generate
	got := run(t, b, s)
	accounted(t, got)
	if *got.Handed != few {
		t.Fatalf("generated %d of %d", *got.Handed, few)
	}
}

// TestSendInterrupted cancels a trial: what was sent until then is counted.
func TestSendInterrupted(t *testing.T) {
	b := sendBench(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && b.Live().Sent == 0; time.Sleep(20 * time.Millisecond) {
		}
		cancel()
	}()
	got, err := b.Run(ctx, sendSpec(t, b, "kernel:sendmmsg", 4_000_000))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if got.Valid || got.Sent == 0 || got.Sent == 4_000_000 {
		t.Fatalf("valid %v sent %d", got.Valid, got.Sent)
	}
	accounted(t, got)
}

// TestSenderLosesItsLink takes the SUT's link away in the middle: no arm hangs, and the trial says why it does not count.
func TestSenderLosesItsLink(t *testing.T) {
	for _, arm := range []string{"kernel:write", "kernel:packet", "xdp:auto", "xdp:asavie"} {
		t.Run(arm, func(t *testing.T) {
			b := sendBench(t, 1)
			down := make(chan error, 1)
			go func() {
				for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && b.Live().Sent == 0; time.Sleep(20 * time.Millisecond) {
				}
				down <- b.Rig.SUT.Do(func() error { return linkDown(b.Rig.SUT.Index) })
			}()
			began := time.Now()
			got, err := b.Run(t.Context(), sendSpec(t, b, arm, 400_000)) // 20 s
			if err := errors.Join(err, <-down); err != nil {
				t.Fatal(err)
			}
			if got.Valid || !strings.Contains(got.InvalidBecause, "link") && !strings.Contains(got.InvalidBecause, "down") {
				t.Errorf("valid %v because %q", got.Valid, got.InvalidBecause)
			}
			if d := time.Since(began); d > 15*time.Second {
				t.Errorf("it took %v to notice", d)
			}
		})
	}
}

// TestStoppedSender stops the sender's process for a while: the trial must not count.
func TestStoppedSender(t *testing.T) {
	b := sendBench(t, 1)
	stopped := make(chan error, 1)
	go func() {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if ids := b.AgentPIDs(); len(ids) == 2 && b.Live().Sent > 0 {
				err := syscall.Kill(ids[0], syscall.SIGSTOP)
				time.Sleep(300 * time.Millisecond)
				stopped <- errors.Join(err, syscall.Kill(ids[0], syscall.SIGCONT))
				return
			}
		}
		stopped <- errors.New("nothing was sent")
	}()
	got, err := b.Run(t.Context(), sendSpec(t, b, "xdp:auto", 60_000)) // 3 s
	if err := errors.Join(err, <-stopped); err != nil {
		t.Fatal(err)
	}
	if got.Valid || !strings.Contains(got.InvalidBecause, "stopped and continued") {
		t.Errorf("valid %v because %q", got.Valid, got.InvalidBecause)
	}
}

// linkDown sets a device of the calling thread's namespace down.
func linkDown(index int) error {
	l, err := netlink.LinkByIndex(index)
	if err != nil {
		return err
	}
	return netlink.LinkSetDown(l)
}
