// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
)

// few frames fit every buffer on the way but the veth ring, which the sending core empties itself: a reader that does not
// get the CPU for a while loses none of them.
const few = 3200

// TestEveryArmReceivesEveryFrame runs every arm under a load it can take: nothing is lost, nothing is counted twice, and
// the ledger is empty.
func TestEveryArmReceivesEveryFrame(t *testing.T) {
	const n = few
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg", "kernel:recvmmsg+gro", "kernel:recvmmsg+reuseport=2", "kernel:recvmmsg+wait=busypoll",
		"kernel:packet", "kernel:nosocket", "xdp:auto", "xdp:copy+wait=poll", "xdp:auto+wait=busypoll", "xdp:generic", "xdp:auto+csum=off", "xdp:asavie"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			got := run(t, b, spec(t, b, arm, n))
			if got.Sent != n || got.Received != n || got.Lost != 0 || got.Unexplained != 0 || len(got.Ledger) != 0 || got.Duplicate != 0 || got.Corrupt != 0 {
				t.Fatalf("sent %d received %d lost %d unexplained %d duplicate %d corrupt %d ledger %+v (%s)",
					got.Sent, got.Received, got.Lost, got.Unexplained, got.Duplicate, got.Corrupt, got.Ledger, got.InvalidBecause)
			}
			for _, c := range got.Checks {
				if !c.OK {
					t.Errorf("cross-check %q: %d and %d", c.What, c.A, c.B)
				}
			}
			if got.Effective == nil || got.Effective.Placement != "sender" || got.Effective.NAPI != "softirq" {
				t.Errorf("effective: %+v", got.Effective)
			}
			wantAttach := map[string]string{"kernel": "none", "xdp": "native"}[strings.Split(arm, ":")[0]]
			if arm == "xdp:generic" {
				wantAttach = "generic"
			}
			if got.Effective.Attach != wantAttach {
				t.Errorf("attach %q, want %q", got.Effective.Attach, wantAttach)
			}
			if got.CPU == nil || got.CPU.WorkNsPerPacket == nil || *got.CPU.WorkNsPerPacket <= 0 {
				t.Errorf("no cost of CPU: %+v", got.CPU)
			}
		})
	}
}

func TestIPv6AndEverySize(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := spec(t, b, arm, few)
			s.Load.Flow = b.Flow(true, 3)
			s.Load.Sizes = []int{84, 128, 1518, 85, 1000}
			if got := run(t, b, s); got.Received != few || got.Corrupt != 0 {
				t.Fatalf("IPv6: received %d, corrupt %d, ledger %+v", got.Received, got.Corrupt, got.Ledger)
			}
			s = spec(t, b, arm, few)
			s.Load.Sizes = compare.Size{IMIX: true}.Cycle()
			if got := run(t, b, s); got.Received != few || got.Corrupt != 0 {
				t.Fatalf("imix: received %d, corrupt %d, ledger %+v", got.Received, got.Corrupt, got.Ledger)
			}
		})
	}
}

// TestFaultsArePlaced makes the generator err on purpose and finds each mistake in its one place.
func TestFaultsArePlaced(t *testing.T) {
	const n, every = few, 8
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		csum := map[string]string{"kernel:recvmmsg": "udp.csum_bad", "xdp:auto": "reader.corrupt"}[arm]
		for _, size := range []int{64, 204} { // the kernel finds a bad checksum at entry, or only when a longer datagram is read
			t.Run(arm+"/bad checksum", func(t *testing.T) {
				b := bench(t, 1)
				s := spec(t, b, arm, n)
				s.Load.Sizes = []int{size}
				s.Load.Faults = agent.Faults{BadChecksum: every}
				got := run(t, b, s)
				if want := map[string]uint64{csum: n / every}; got.Lost != n/every || !maps.Equal(rows(got), want) || got.Unexplained != 0 {
					t.Fatalf("%d B: lost %d, unexplained %d, ledger %+v, want %v", size, got.Lost, got.Unexplained, got.Ledger, want)
				}
			})
		}
		t.Run(arm+"/duplicates", func(t *testing.T) {
			b := bench(t, 1)
			s := spec(t, b, arm, n)
			s.Load.Faults = agent.Faults{Duplicate: every}
			got := run(t, b, s)
			if got.Lost != 0 || got.Duplicate == 0 || got.Received != got.Sent {
				t.Fatalf("sent %d received %d lost %d duplicate %d", got.Sent, got.Received, got.Lost, got.Duplicate)
			}
			if want := got.Sent / every; got.Duplicate < want-1 || got.Duplicate > want+1 {
				t.Fatalf("duplicate %d, want %d", got.Duplicate, want)
			}
		})
		t.Run(arm+"/reordering", func(t *testing.T) {
			b := bench(t, 1)
			s := spec(t, b, arm, n)
			s.Load.Flow = b.Flow(false, 1)
			s.Load.Faults = agent.Faults{Swap: every}
			got := run(t, b, s)
			if got.Lost != 0 || got.Reordered != n/2/every {
				t.Fatalf("lost %d, reordered %d, want 0 and %d", got.Lost, got.Reordered, n/2/every)
			}
		})
	}
}

// A trial of few packets takes as many intervals as packets, not one less, or its rate would be too high; and one of a
// single packet has a duration.
func TestFewPacketsHaveTheirRate(t *testing.T) {
	b := bench(t, 1)
	for _, n := range []uint64{1, 3} {
		s := spec(t, b, "kernel:epoll", n)
		s.Load.PPS = 100
		got, err := b.Run(t.Context(), s)
		if want := 0.98 * float64(n) / s.Load.PPS; err != nil || got.Received != n || got.Seconds < want {
			t.Errorf("%d packets at 100/s: received %d in %v s, want more than %v (%v, %s)", n, got.Received, got.Seconds, want, err, got.InvalidBecause)
		}
	}
}

func TestDropIsTheLimit(t *testing.T) {
	b := bench(t, 1)
	s := spec(t, b, "xdp:auto", few)
	s.Role = agent.Drop
	got := run(t, b, s)
	if got.Received != few || got.Lost != 0 {
		t.Fatalf("received %d, lost %d: %+v", got.Received, got.Lost, got.Ledger)
	}
}

// TestSmallBuffersOverflow gives an arm too little room and a flood: what is lost is placed to the packet.
func TestSmallBuffersOverflow(t *testing.T) {
	for arm, places := range map[string][]string{
		"kernel:recvmmsg+rcvbuf=4k": {"udp.rcvbuf_full", "veth.ring_full"},
		"xdp:auto+ring=64":          {"xsk.rx_ring_full", "xsk.fill_ring_empty", "veth.ring_full"},
	} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := spec(t, b, arm, 0)
			s.Load.PPS, s.Load.Count, s.Load.Seconds = 0, 0, 0.3
			s.Work = compare.Work{Time: 20 * time.Microsecond}
			got := run(t, b, s)
			if got.Lost == 0 || got.Unexplained != 0 {
				t.Fatalf("lost %d, unexplained %d: %+v", got.Lost, got.Unexplained, got.Ledger)
			}
			for at := range rows(got) {
				if !strings.Contains(strings.Join(places, " "), at) {
					t.Errorf("%s lost %d, want losses at %v only", at, rows(got)[at], places)
				}
			}
		})
	}
}

func TestTwoQueues(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg+reuseport", "xdp:auto"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 2)
			if got := run(t, b, spec(t, b, arm, few)); got.Received != few {
				t.Fatalf("received %d of %d: %+v", got.Received, few, got.Ledger)
			}
		})
	}
}

// TestKilledAgent kills an agent in the middle: the trial ends soon, and says why.
func TestKilledAgent(t *testing.T) {
	for i, side := range []string{"sut", "peer"} {
		t.Run(side, func(t *testing.T) {
			b := bench(t, 1)
			s := spec(t, b, "xdp:auto", 4_000_000) // 100 s
			go func() {
				for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
					if ids := b.AgentPIDs(); len(ids) == 2 && b.Live().Received > 0 {
						_ = syscall.Kill(ids[i], syscall.SIGKILL)
						return
					}
				}
			}()
			began := time.Now()
			got, err := b.Run(context.Background(), s)
			if err != nil {
				t.Fatal(err)
			}
			if got.Valid || !strings.Contains(got.InvalidBecause, "died") {
				t.Fatalf("valid %v because %q", got.Valid, got.InvalidBecause)
			}
			if d := time.Since(began); d > 40*time.Second {
				t.Fatalf("it took %v to notice", d)
			}
		})
	}
}

// TestStoppedReader stops the reader's process for a while in the middle. To every counter it looks like a reader that
// sleeps, and its losses like those of a slow one: the trial must not count.
func TestStoppedReader(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg+wait=block", "xdp:auto"} {
		b := bench(t, 1)
		stopped := make(chan error, 1)
		go func() {
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				if ids := b.AgentPIDs(); len(ids) == 2 && b.Live().Received > 0 {
					err := syscall.Kill(ids[0], syscall.SIGSTOP)
					time.Sleep(300 * time.Millisecond)
					stopped <- errors.Join(err, syscall.Kill(ids[0], syscall.SIGCONT))
					return
				}
			}
			stopped <- errors.New("nothing was received")
		}()
		got, err := b.Run(t.Context(), spec(t, b, arm, 160_000)) // 4 s
		if err := errors.Join(err, <-stopped); err != nil {
			t.Fatal(err)
		}
		if got.Valid || !strings.Contains(got.InvalidBecause, "stopped and continued") || got.Unexplained != 0 {
			t.Errorf("%s: valid %v because %q, unexplained %d", arm, got.Valid, got.InvalidBecause, got.Unexplained)
		}
	}
}

// TestInterrupted cancels a trial: what was received until then is counted and placed.
func TestInterrupted(t *testing.T) {
	b := bench(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && b.Live().Received == 0; time.Sleep(20 * time.Millisecond) {
		}
		cancel()
	}()
	got, err := b.Run(ctx, spec(t, b, "xdp:auto", 4_000_000))
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	if got.Valid || got.Sent == 0 || got.Sent == 4_000_000 || got.Received+got.Lost != got.Sent || got.Unexplained != 0 {
		t.Fatalf("valid %v sent %d received %d lost %d unexplained %d", got.Valid, got.Sent, got.Received, got.Lost, got.Unexplained)
	}
}

// TestRefusals are arms that cannot run here: an error that names the cause, no trial.
func TestRefusals(t *testing.T) {
	for arm, want := range map[string]string{"xdp:zerocopy": "zero-copy"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			_, err := b.Run(context.Background(), spec(t, b, arm, 100))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Fatalf("error %v, want it to speak of %s", err, want)
			}
			// And nothing is left: the next arm runs.
			if got := run(t, b, spec(t, b, "kernel:epoll", 1000)); got.Received != 1000 {
				t.Fatalf("received %d of 1000 after the refusal", got.Received)
			}
		})
	}
}
