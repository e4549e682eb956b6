// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"context"
	"errors"
	"maps"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

// echoSpec is a short echo trial of an arm.
func echoSpec(t *testing.T, b *trial.Bench, arm string, n uint64) trial.Spec {
	s := spec(t, b, arm, n)
	s.Test, s.Role = "udp-echo", agent.Echo
	s.Load.PPS = 10_000
	return s
}

// value is a number of the record that must be there.
func value(t *testing.T, what string, p *float64) float64 {
	t.Helper()
	if p == nil {
		t.Fatalf("%s is missing", what)
	}
	return *p
}

// TestEchoEveryArm runs every arm in both modes: each request is answered once, and the latencies are those of all answers.
func TestEchoEveryArm(t *testing.T) {
	const n = few
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg", "kernel:recvmmsg+wait=busypoll", "kernel:recvmmsg+wait=spin", "kernel:recvmmsg+reuseport=2",
		"xdp:auto", "xdp:copy+wait=poll", "xdp:auto+wait=busypoll", "xdp:generic", "xdp:auto+csum=off", "xdp:asavie", "xdp:asavie+wait=spin"} {
		for _, pingPong := range []bool{false, true} {
			t.Run(arm+map[bool]string{true: " pingpong", false: " open"}[pingPong], func(t *testing.T) {
				b := bench(t, 1)
				s := echoSpec(t, b, arm, n)
				s.Load.PingPong = pingPong
				if pingPong {
					s.Load.PPS = 0
				}
				got := run(t, b, s)
				if got.Sent != n || got.Received != n || got.Lost != 0 || got.Unexplained != 0 || len(got.Ledger) != 0 || got.Duplicate != 0 || got.Corrupt != 0 {
					t.Fatalf("sent %d received %d lost %d unexplained %d duplicate %d corrupt %d ledger %+v (%s)",
						got.Sent, got.Received, got.Lost, got.Unexplained, got.Duplicate, got.Corrupt, got.Ledger, got.InvalidBecause)
				}
				for _, c := range got.Checks {
					if !c.OK {
						t.Errorf("cross-check %q: %d and %d", c.What, c.A, c.B)
					}
				}
				l := got.LatencyNs
				if l == nil || l.Count != n {
					t.Fatalf("latency %+v", l)
				}
				base, sum := map[bool]string{true: "sent", false: "intended"}[pingPong], uint64(0)
				for _, b := range l.Buckets {
					sum += b[2]
				}
				least, p50, p99, most := value(t, "min", l.Min), value(t, "p50", l.P50), value(t, "p99", l.P99), value(t, "max", l.Max)
				// Two responders that take turns may bring no two answers with consecutive numbers one after the other.
				pairs := l.JitterCount > 0 || strings.Contains(arm, "reuseport")
				if l.Base != base || sum != n || !(0 < least && least <= 1.01*p50 && p50 <= p99 && p99 <= most) || l.P999 != nil || !pairs {
					t.Errorf("base %q, %d in buckets, min %v p50 %v p99 %v max %v p999 %v, %d pairs", l.Base, sum, least, p50, p99, most, l.P999, l.JitterCount)
				}
				// One at a time, the answers' times add up to no more than the trial took.
				if took := got.Seconds*1e9 + most; pingPong && value(t, "mean", l.Mean)*float64(n) > 1.01*took {
					t.Errorf("mean %v of %d answers, one at a time, in %v s", *l.Mean, n, got.Seconds)
				}
			})
		}
	}
}

func TestEchoIPv6AndEverySize(t *testing.T) {
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg", "xdp:auto"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := echoSpec(t, b, arm, few)
			s.Load.Flow = b.Flow(true, 3)
			s.Load.Sizes = []int{84, 128, 1518, 85, 1000}
			if got := run(t, b, s); got.Received != few || got.Corrupt != 0 {
				t.Fatalf("IPv6: received %d, corrupt %d, ledger %+v", got.Received, got.Corrupt, got.Ledger)
			}
			s = echoSpec(t, b, arm, few)
			s.Load.Sizes = compare.Size{IMIX: true}.Cycle()
			if got := run(t, b, s); got.Received != few || got.Corrupt != 0 {
				t.Fatalf("imix: received %d, corrupt %d, ledger %+v", got.Received, got.Corrupt, got.Ledger)
			}
		})
	}
}

// TestEchoFaults has the generator err on purpose: what is lost on the way there is placed there, duplicates are answered
// twice, and reordering comes back.
func TestEchoFaults(t *testing.T) {
	const n, every = few, 8
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		csum := map[string]string{"kernel:recvmmsg": "udp.csum_bad", "xdp:auto": "reader.corrupt"}[arm]
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := echoSpec(t, b, arm, n)
			s.Load.Faults = agent.Faults{BadChecksum: every}
			if got := run(t, b, s); got.Lost != n/every || !maps.Equal(rows(got), map[string]uint64{csum: n / every}) || got.Unexplained != 0 {
				t.Errorf("bad checksums: lost %d, unexplained %d, ledger %+v", got.Lost, got.Unexplained, got.Ledger)
			}
			s = echoSpec(t, b, arm, n)
			s.Load.Faults = agent.Faults{Duplicate: every}
			if got := run(t, b, s); got.Lost != 0 || got.Duplicate+1 < got.Sent/every || got.Duplicate > got.Sent/every+1 || got.Received != got.Sent || len(got.Ledger) != 0 {
				t.Errorf("duplicates: sent %d received %d duplicate %d ledger %+v", got.Sent, got.Received, got.Duplicate, got.Ledger)
			}
			s = echoSpec(t, b, arm, n)
			s.Load.Flow, s.Load.Faults = b.Flow(false, 1), agent.Faults{Swap: every}
			if got := run(t, b, s); got.Lost != 0 || got.Reordered != n/2/every {
				t.Errorf("reordering: lost %d, reordered %d, want 0 and %d", got.Lost, got.Reordered, n/2/every)
			}
		})
	}
}

// TestEchoLossBothWays floods a responder that has too little room: what is lost is placed to the packet, whichever way.
func TestEchoLossBothWays(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg+rcvbuf=4k", "kernel:epoll+rcvbuf=4k", "xdp:auto+ring=64"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := echoSpec(t, b, arm, 0)
			s.Load.PPS, s.Load.Count, s.Load.Seconds = 0, 0, 0.2
			s.Work = compare.Work{Time: 10 * time.Microsecond}
			got := run(t, b, s)
			if got.Lost == 0 || got.Unexplained != 0 || got.Received == 0 || got.Received+got.Lost != got.Sent {
				t.Errorf("sent %d received %d lost %d, unexplained %d: %+v (%s)", got.Sent, got.Received, got.Lost, got.Unexplained, got.Ledger, got.InvalidBecause)
			}
			if err := got.Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestEchoWithoutAWayBack: requests arrive, and no answer can be sent. Each is lost, on the way of the answers.
func TestEchoWithoutAWayBack(t *testing.T) {
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg"} {
		b := bench(t, 1)
		s := echoSpec(t, b, arm, 500)
		err := b.Rig.SUT.Do(func() error {
			return netlink.RouteAdd(&netlink.Route{Dst: &net.IPNet{IP: s.Load.Flow.Src.AsSlice(), Mask: net.CIDRMask(32, 32)}, Type: unix.RTN_UNREACHABLE})
		})
		if err != nil {
			t.Fatal(err)
		}
		got := run(t, b, s)
		if want := map[string]uint64{"reply.send.failed": 500}; got.Lost != 500 || !maps.Equal(rows(got), want) || got.Unexplained != 0 || got.LatencyNs != nil {
			t.Errorf("%s: sent %d lost %d, ledger %+v, latency %+v (%s)", arm, got.Sent, got.Lost, got.Ledger, got.LatencyNs, got.InvalidBecause)
		}
	}
}

// TestReflectIsTheLimit: the driver answers everything.
func TestReflectIsTheLimit(t *testing.T) {
	b := bench(t, 1)
	for _, pingPong := range []bool{false, true} {
		s := echoSpec(t, b, "xdp:auto", few)
		s.Role, s.Load.PingPong = agent.Reflect, pingPong
		if got := run(t, b, s); got.Received != few || got.Lost != 0 || got.LatencyNs == nil || got.LatencyNs.Count != few {
			t.Errorf("received %d, lost %d: %+v, latency %+v", got.Received, got.Lost, got.Ledger, got.LatencyNs)
		}
	}
	// A flood overflows the ring on one way or the other; whichever it is, it is known.
	s := echoSpec(t, b, "xdp:auto", 0)
	s.Role, s.Load.PPS, s.Load.Count, s.Load.Seconds = agent.Reflect, 0, 0, 0.2
	if got := run(t, b, s); got.Received == 0 || got.Unexplained != 0 || got.Check() != nil && got.Valid {
		t.Errorf("received %d, lost %d, unexplained %d: %+v", got.Received, got.Lost, got.Unexplained, got.Ledger)
	}
}

// TestEchoWork: what the application takes is in every answer's time.
func TestEchoWork(t *testing.T) {
	const work = 300 * time.Microsecond
	for _, arm := range []string{"kernel:epoll", "xdp:auto"} {
		b := bench(t, 1)
		s := echoSpec(t, b, arm, 1000)
		s.Load.PPS, s.Work = 1000, compare.Work{Time: work}
		got := run(t, b, s)
		if least := value(t, "min", got.LatencyNs.Min); least < float64(work) || got.Received != 1000 {
			t.Errorf("%s: the fastest of %d answers took %v ns, the work alone takes %v; ledger %+v (%s)", arm, got.Received, least, work, got.Ledger, got.InvalidBecause)
		}
	}
}

// TestEchoStoppedResponder stops the responder for a second. The load goes on, latency counts from the intended time: it is in
// the percentiles and in the maximum, and the trial still counts for what it is.
func TestEchoStoppedResponder(t *testing.T) {
	const pps, n, pause = 1000, 3000, time.Second
	for _, arm := range []string{"kernel:recvmmsg+wait=block", "xdp:auto"} {
		b := bench(t, 1)
		stopped := make(chan error, 1)
		go func() {
			for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
				if ids := b.AgentPIDs(); len(ids) == 2 && b.Live().Received > 0 {
					err := syscall.Kill(ids[0], syscall.SIGSTOP)
					time.Sleep(pause)
					stopped <- errors.Join(err, syscall.Kill(ids[0], syscall.SIGCONT))
					return
				}
			}
			stopped <- errors.New("nothing was received")
		}()
		s := echoSpec(t, b, arm, n)
		s.Load.PPS = pps
		got, err := b.Run(context.Background(), s)
		if err := errors.Join(err, <-stopped); err != nil {
			t.Fatal(err)
		}
		if got.Received != n || got.Unexplained != 0 {
			t.Errorf("%s: received %d of %d: %+v", arm, got.Received, n, got.Ledger)
		}
		l := got.LatencyNs
		p99, most := value(t, "p99", l.P99), value(t, "max", l.Max)
		if most < 0.99*float64(pause) || p99 < 0.9*float64(pause) {
			t.Errorf("%s: p99 %v ns, max %v ns after a pause of %v", arm, p99, most, pause)
		}
		told := false
		for _, note := range got.Notes {
			told = told || note == "the responder's process was stopped and continued (SIGSTOP, SIGCONT) during a trial: its latencies show it"
		}
		if !told {
			t.Errorf("%s: notes %q", arm, got.Notes)
		}
	}
}

// TestEchoOverQueues: two queues, two responders, one generating core.
func TestEchoOverQueues(t *testing.T) {
	for _, arm := range []string{"kernel:recvmmsg+reuseport", "xdp:auto"} {
		b := bench(t, 2)
		if got := run(t, b, echoSpec(t, b, arm, few)); got.Received != few || got.Unexplained != 0 {
			t.Errorf("%s: received %d of %d: %+v", arm, got.Received, few, got.Ledger)
		}
	}
}
