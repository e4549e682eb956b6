// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/fragments"
	"twopath/internal/packet"
	"twopath/internal/trial"
)

// fragmentSpec is a short trial of datagrams in three fragments.
func fragmentSpec(t *testing.T, b *trial.Bench, arm, pattern string, v6 bool, n uint64) trial.Spec {
	s := spec(t, b, arm, n)
	s.Test = compare.TestFragments
	s.Load.Flow = b.Flow(v6, 3)
	s.Load.PPS = 4000
	// Where all can be delivered nothing waits for the time to be over, so it may outlast a busy machine.
	timeout := 20 * time.Second
	if pattern == "missing-one" || pattern == "mix" {
		timeout = 3 * time.Second
	}
	s.Load.Fragments = &agent.Fragments{Pattern: pattern, Payload: 4000, MTU: 1500, Seed: 1, TimeoutNS: int64(timeout), Memory: 64 << 20, Distance: 64}
	return s
}

// undisturbed runs a trial, and again, at most twice, when the machine took the sender's or the reader's CPU away: a sender that
// stands still within a datagram for longer than reassembly waits has lost it.
func undisturbed(t *testing.T, b *trial.Bench, s trial.Spec) (got compare.Trial) {
	t.Helper()
	for range 3 {
		if got = run(t, b, s); !strings.Contains(got.InvalidBecause, "stood still") && !strings.Contains(got.InvalidBecause, "other tasks") {
			return got
		}
		s.RunID++
	}
	return got
}

// TestFragments runs every pattern over both IP versions and both engines: the counts are those of the pattern, to the
// datagram and the fragment, and the same whoever puts the datagrams together.
func TestFragments(t *testing.T) {
	const n, whole = 600, 3
	for _, pattern := range compare.FragmentPatterns() {
		missing, overlapping, frames := uint64(0), uint64(0), uint64(n*whole)
		switch pattern {
		case "missing-one":
			missing, frames = n, n*(whole-1)
		case "overlapping":
			overlapping = n
		case "duplicated":
			frames = n * (2*whole - 1)
		case "mix":
			missing, overlapping, frames = n/5, n/5, n*whole+n/5*(whole-1)-n/5
		}
		want := map[string]uint64{}
		if missing > 0 {
			want["fragments.missing"] = missing
		}
		if overlapping > 0 {
			want["fragments.overlap"] = overlapping
		}
		delivered := n - missing - overlapping
		for _, v6 := range []bool{false, true} {
			arms := []string{"kernel:recvmmsg", "xdp:auto"}
			if pattern == "mix" {
				arms = append(arms, "kernel:epoll", "xdp:generic+wait=poll")
			}
			for _, arm := range arms {
				t.Run(fmt.Sprintf("%s/v6=%v/%s", pattern, v6, arm), func(t *testing.T) {
					b := bench(t, 1)
					s := fragmentSpec(t, b, arm, pattern, v6, n)
					got := undisturbed(t, b, s)
					if got.Sent != n || got.Received != delivered || got.Lost != n-delivered || got.Unexplained != 0 || !maps.Equal(rows(got), want) || got.Corrupt != 0 || got.Duplicate != 0 {
						t.Fatalf("sent %d received %d lost %d unexplained %d corrupt %d duplicate %d ledger %+v (%s), want %v", got.Sent, got.Received, got.Lost,
							got.Unexplained, got.Corrupt, got.Duplicate, got.Ledger, got.InvalidBecause, want)
					}
					if f, want := *got.Fragments, (compare.TrialFragments{Sent: frames, Received: frames, Wasted: frames - delivered*whole, Undeliverable: missing + overlapping}); f != want {
						t.Errorf("fragments %+v, want %+v", f, want)
					}
					if got.AvoidableLoss() != 0 {
						t.Errorf("avoidable loss %v", got.AvoidableLoss())
					}
					for _, row := range got.Ledger {
						if row.Grade != compare.Exact {
							t.Errorf("row %+v is not exact", row)
						}
					}
					for _, c := range got.Checks {
						if !c.OK {
							t.Errorf("cross-check %q: %d and %d", c.What, c.A, c.B)
						}
					}
					if arm == "kernel:recvmmsg" {
						if o := got.Effective.Other; o["ipfrag_time"]+o["ip6frag_time"] != fmt.Sprint(s.Load.Fragments.Timeout().Seconds()) || o["ipfrag_high_thresh"] != "67108864" && o["ip6frag_high_thresh"] != "67108864" || !v6 && o["ipfrag_max_dist"] != "64" {
							t.Errorf("limits: %v", o)
						}
					}
				})
			}
		}
	}
}

// TestFragmentsOfManySizes: two fragments and many, small ones and the largest datagram.
func TestFragmentsOfManySizes(t *testing.T) {
	for _, c := range []struct{ payload, mtu, n int }{{1473, 1500, 300}, {100, 68, 300}, {65507, 1500, 20}, {9000, 576, 100}, {1800, 1300, 300}} {
		for _, arm := range []string{"kernel:recvmmsg", "kernel:epoll", "xdp:auto"} {
			b := bench(t, 1)
			s := fragmentSpec(t, b, arm, "shuffled", false, uint64(c.n))
			s.Load.Fragments.Payload, s.Load.Fragments.MTU, s.Load.PPS = c.payload, c.mtu, 500
			if got := undisturbed(t, b, s); got.Received != uint64(c.n) || got.Lost != 0 || got.Corrupt != 0 || got.Fragments.Wasted != 0 {
				t.Errorf("%s, %+v: received %d, lost %d, corrupt %d, %+v, ledger %+v (%s)", arm, c, got.Received, got.Lost, got.Corrupt, *got.Fragments, got.Ledger, got.InvalidBecause)
			}
		}
	}
}

// TestFragmentMemory gives reassembly too little of it. Incomplete datagrams fill the kernel's, which then refuses the others
// until the first time out; this program's gives up the oldest, and so delivers all that can be. Either way every datagram has its row.
func TestFragmentMemory(t *testing.T) {
	const n = 1000
	for _, v6 := range []bool{false, true} {
		for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
			t.Run(fmt.Sprintf("%s/v6=%v", arm, v6), func(t *testing.T) {
				b := bench(t, 1)
				s := fragmentSpec(t, b, arm, "mix", v6, n)
				s.Load.Fragments.Memory = 128 << 10
				got := undisturbed(t, b, s)
				r := rows(got)
				if got.Unexplained != 0 || got.Received+got.Lost != n || r["fragments.memory"] == 0 || r["fragments.missing"]+r["fragments.overlap"]+r["fragments.memory"]+r["fragments.timeout"] != got.Lost {
					t.Fatalf("received %d lost %d unexplained %d ledger %+v", got.Received, got.Lost, got.Unexplained, got.Ledger)
				}
				delivered := uint64(n / 5 * 3)
				if arm == "xdp:auto" && got.Received != delivered {
					t.Errorf("received %d, want the %d that can be: %+v", got.Received, delivered, got.Ledger)
				}
				if arm != "xdp:auto" && got.Received >= delivered {
					t.Errorf("the kernel delivered %d although its memory was full", got.Received)
				}
			})
		}
	}
}

// TestFragmentTimeout: what is missing is given up after the time in the plan, on both engines.
func TestFragmentTimeout(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		for _, seconds := range []int64{1, 3} {
			b := bench(t, 1)
			s := fragmentSpec(t, b, arm, "missing-one", false, 50)
			s.Load.Fragments.TimeoutNS = seconds * int64(time.Second)
			began := time.Now()
			got := run(t, b, s)
			took := time.Since(began)
			if r := rows(got); r["fragments.missing"] != 50 || got.Lost != 50 || got.Unexplained != 0 {
				t.Errorf("%s: %+v", arm, got.Ledger)
			}
			if took < time.Duration(seconds)*time.Second {
				t.Errorf("%s: 50 datagrams with a time of %d s were given up within %v", arm, seconds, took)
			}
		}
	}
}

// TestFragmentDistance: IPv4 datagrams whose fragments lie too far apart are given up by both engines.
func TestFragmentDistance(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		b := bench(t, 1)
		s := fragmentSpec(t, b, arm, "shuffled", false, 400)
		s.Load.Fragments.Distance, s.Load.Fragments.TimeoutNS = 2, int64(time.Second)
		got := run(t, b, s)
		if r := rows(got); got.Unexplained != 0 || got.Lost == 0 || r["fragments.memory"] == 0 || r["fragments.memory"]+r["fragments.timeout"] != got.Lost {
			t.Errorf("%s: lost %d, unexplained %d, %+v", arm, got.Lost, got.Unexplained, got.Ledger)
		}
	}
}

// TestFragmentFlood overflows rings: fragments are lost, and with them datagrams. Nothing is unexplained.
func TestFragmentFlood(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg+rcvbuf=64k", "xdp:auto+ring=64"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := fragmentSpec(t, b, arm, "mix", false, 10_000)
			s.Load.PPS = 0
			s.Work = compare.Work{Time: 50 * time.Microsecond}
			got := run(t, b, s)
			lost := map[string]uint64{"kernel:recvmmsg+rcvbuf=64k": rows(got)["udp.rcvbuf_full"], "xdp:auto+ring=64": rows(got)["xsk.rx_ring_full"] + rows(got)["xsk.fill_ring_empty"]}[arm]
			if got.Unexplained != 0 || lost == 0 || got.Received+got.Lost != got.Sent {
				t.Fatalf("sent %d received %d lost %d unexplained %d, %+v, ledger %+v", got.Sent, got.Received, got.Lost, got.Unexplained, *got.Fragments, got.Ledger)
			}
		})
	}
}

// TestFragmentInterrupted: a trial that is cancelled ends soon, however long reassembly would wait, and tells what it can.
func TestFragmentInterrupted(t *testing.T) {
	b := bench(t, 1)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s := fragmentSpec(t, b, "kernel:recvmmsg", "mix", false, 10_000)
	s.Load.PPS, s.Load.Fragments.TimeoutNS = 1000, int64(5*time.Minute)
	var stopped time.Time
	go func() {
		for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline) && b.Live().Received == 0; time.Sleep(20 * time.Millisecond) {
		}
		stopped = time.Now()
		cancel()
	}()
	got, err := b.Run(ctx, s)
	if !errors.Is(err, context.Canceled) || got.Valid || got.Sent == 0 || got.Sent == 10_000 || got.Received+got.Lost != got.Sent {
		t.Fatalf("error %v, valid %v, sent %d received %d lost %d", err, got.Valid, got.Sent, got.Received, got.Lost)
	}
	if d := time.Since(stopped); d > time.Minute {
		t.Errorf("it took %v to end", d)
	}
}

// TestFragmentLimitsArePutBack: the namespace is as it was before the trial.
func TestFragmentLimitsArePutBack(t *testing.T) {
	b := bench(t, 1)
	read := func() (out string) {
		if err := b.Rig.SUT.Do(func() error {
			for _, f := range []string{"time", "high_thresh", "low_thresh", "max_dist"} {
				v, err := os.ReadFile("/proc/sys/net/ipv4/ipfrag_" + f)
				if err != nil {
					return err
				}
				out += string(v)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	before := read()
	run(t, b, fragmentSpec(t, b, "kernel:recvmmsg", "in-order", false, 100))
	if after := read(); after != before {
		t.Errorf("before %q, after %q", before, after)
	}
}

// TestLimitsAgree: the plan's arithmetic is that of the list.
func TestFragmentLimitsAgree(t *testing.T) {
	if compare.MaxFragmentBytes != fragments.MaxBytes || compare.MaxIPv4IDs != fragments.MaxIDs {
		t.Error("the plan's limits are not the list's")
	}
	var got []string
	for _, p := range fragments.Patterns() {
		got = append(got, string(p))
	}
	if fmt.Sprint(got) != fmt.Sprint(compare.FragmentPatterns()) {
		t.Errorf("patterns %v and %v", got, compare.FragmentPatterns())
	}
	// As many datagrams as the plan takes by itself can be prepared, and have the fragments that it says.
	for _, settings := range []string{"payload=4000", "payload=65507 mtu=600", "ip=6 payload=1500", "ip=6 mtu=88 payload=100"} {
		for _, pattern := range []string{"mix", "duplicated", "overlapping"} {
			p := compare.DefaultPlan(compare.TestFragments)
			for _, s := range append(strings.Fields(settings), "rate=10M", "pattern="+pattern) {
				key, value, _ := strings.Cut(s, "=")
				if err := p.Set(key, value); err != nil {
					t.Fatal(err)
				}
			}
			p.Complete()
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			cells, err := p.Cells()
			if err != nil {
				t.Fatal(err)
			}
			f := packet.Flow{Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1"), SrcPort: 10000, DstPort: 9000, Flows: 1}
			if p.IP == 6 {
				f.Src, f.Dst = netip.MustParseAddr("2001:2::2"), netip.MustParseAddr("2001:2::1")
			}
			l, err := fragments.New(fragments.Options{Flow: f, Pattern: fragments.Pattern(pattern), Payload: p.Payload, MTU: p.MTU, Count: int(p.Count), Seed: 1})
			if err != nil {
				t.Errorf("%s %s: %v", settings, pattern, err)
				continue
			}
			if want := p.FragmentTraffic(cells[0]).Fragments; l.Fragments != want {
				t.Errorf("%s: %d fragments, the plan says %d", settings, l.Fragments, want)
			}
			if l.Bytes < fragments.MaxBytes*9/10 && p.IP == 6 {
				t.Errorf("%s %s: only %d bytes of %d", settings, pattern, l.Bytes, fragments.MaxBytes)
			}
		}
	}
}
