// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"maps"
	"os/exec"
	"testing"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/dns"
	"twopath/internal/nstest"
	"twopath/internal/trial"
)

// dnsSpec is a short trial of dns: n queries at a rate that any machine offers.
func dnsSpec(t *testing.T, b *trial.Bench, arm string, n uint64) trial.Spec {
	t.Helper()
	s := spec(t, b, arm, n)
	s.Test, s.Content = "dns", false
	s.DNS = &agent.DNS{Zone: dns.DefaultZone(), File: "default", Clients: 4, Outstanding: 50}
	return s
}

func badChecks(t *testing.T, got compare.Trial) {
	t.Helper()
	for _, c := range got.Checks {
		if !c.OK {
			t.Errorf("cross-check %q: %d and %d", c.What, c.A, c.B)
		}
	}
}

// TestEveryArmAnswersEveryQuery: what is asked is answered, rightly, and both ends count the same by response code.
func TestEveryArmAnswersEveryQuery(t *testing.T) {
	for _, c := range []struct {
		arm      string
		v6, edns bool
	}{
		{"kernel:epoll", false, false}, {"kernel:recvmmsg", false, true}, {"kernel:recvmmsg", true, false}, {"kernel:recvmmsg+reuseport=2", false, false},
		{"kernel:recvmmsg+wait=busypoll", false, false}, {"xdp:auto", false, true}, {"xdp:auto", true, false}, {"xdp:copy+wait=poll", false, false},
		{"xdp:generic", false, false}, {"xdp:auto+csum=off+batch=1", false, false},
	} {
		t.Run(c.arm+map[bool]string{true: "/ipv6"}[c.v6]+map[bool]string{true: "/edns"}[c.edns], func(t *testing.T) {
			b := bench(t, 1)
			s := dnsSpec(t, b, c.arm, few)
			s.Load.Flow, s.DNS.EDNS = b.Flow(c.v6, 4), c.edns
			got := run(t, b, s)
			if got.Sent != few || got.Received != few || got.Lost != 0 || got.Unexplained != 0 || len(got.Ledger) != 0 || got.Duplicate != 0 ||
				got.Corrupt != 0 || got.Foreign != 0 || got.Errors == nil || got.Errors.Total != 0 {
				t.Fatalf("sent %d received %d lost %d unexplained %d duplicate %d corrupt %d foreign %d wrong %+v ledger %+v (%s)", got.Sent, got.Received,
					got.Lost, got.Unexplained, got.Duplicate, got.Corrupt, got.Foreign, got.Errors, got.Ledger, got.InvalidBecause)
			}
			badChecks(t, got)
			if got.LatencyNs == nil || got.LatencyNs.Count != few || got.LatencyNs.Base != "intended" || got.LatencyNs.P99 == nil {
				t.Errorf("latency %+v", got.LatencyNs)
			}
			c := got.Counters
			if n := c["sut.answer.NOERROR"] + c["sut.answer.NXDOMAIN"]; n != few || c["sut.answer.NXDOMAIN"] == 0 || c["peer.reply.NXDOMAIN"] != c["sut.answer.NXDOMAIN"] {
				t.Errorf("answers by code: %v", c)
			}
			if truncated := c["peer.reader.truncated"]; (truncated == 0) != s.DNS.EDNS {
				t.Errorf("%d truncated answers: the zone has one answer that only EDNS carries", truncated)
			}
			// A kernel leaves checksums to the device; those of AF_XDP are there.
			if partial := c["peer.reader.partial_checksum"]; partial != map[bool]uint64{true: few}[s.Arm.Engine == compare.Kernel] {
				t.Errorf("%d answers without a checksum", partial)
			}
		})
	}
}

// TestWrongAnswersAreFound makes the responder err on purpose: every mistake is found, and is in one place of the ledger.
func TestWrongAnswersAreFound(t *testing.T) {
	const every, n = 8, few / 8 / 4 // of each kind
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := dnsSpec(t, b, arm, few)
			s.DNS.Wrong = every
			got := run(t, b, s)
			if want := map[string]uint64{"reply.reader.wrong": 3 * n, "reply.reader.unasked": n}; got.Lost != 4*n || got.Unexplained != 0 || !maps.Equal(rows(got), want) {
				t.Errorf("lost %d, unexplained %d, ledger %v, want %v", got.Lost, got.Unexplained, rows(got), want)
			}
			if want := map[string]uint64{"wrong question": n, "wrong code": n, "wrong answer": n}; got.Errors.Total != 3*n || !maps.Equal(got.Errors.By, want) {
				t.Errorf("wrong %+v, want %v", got.Errors, want)
			}
		})
	}
}

// TestDNSFloodIsPlaced: however many are lost on both ways, each is in one place.
func TestDNSFloodIsPlaced(t *testing.T) {
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg", "xdp:auto+ring=64"} {
		t.Run(arm, func(t *testing.T) {
			b := bench(t, 1)
			s := dnsSpec(t, b, arm, 100_000)
			s.Load.PPS = 0
			got := run(t, b, s)
			if got.Sent != s.Load.Count || got.Unexplained != 0 || got.Received == 0 || got.Errors.Total != 0 || got.Corrupt != 0 {
				t.Errorf("sent %d, answered %d, unexplained %d, corrupt %d, wrong %+v, ledger %v", got.Sent, got.Received, got.Unexplained, got.Corrupt, got.Errors, rows(got))
			}
			badChecks(t, got)
		})
	}
}

// TestDnsperfIsAnswered: the real program finds nothing lost, and what it counts by response code is what the responder made.
func TestDnsperfIsAnswered(t *testing.T) {
	nstest.Root(t)
	if _, err := exec.LookPath("dnsperf"); err != nil {
		t.Skip("needs dnsperf (apt-get install dnsperf)")
	}
	for _, c := range []struct {
		arm      string
		v6, edns bool
	}{{"kernel:epoll", false, false}, {"kernel:recvmmsg", false, true}, {"xdp:auto", false, true}, {"xdp:auto", true, false}, {"xdp:generic", false, false}} {
		t.Run(c.arm+map[bool]string{true: "/ipv6"}[c.v6], func(t *testing.T) {
			b := bench(t, 1)
			s := dnsSpec(t, b, c.arm, 2000)
			s.Load.PPS, s.Load.Flow, s.DNS.EDNS, s.Driver = 5000, b.Flow(c.v6, 4), c.edns, compare.DriverDnsperf
			got := run(t, b, s)
			if got.Sent < 1900 || got.Received != got.Sent || got.Unexplained != 0 || got.Corrupt != 0 || got.Errors.Total != 0 {
				t.Errorf("sent %d, answered %d, unexplained %d, corrupt %d, ledger %v (%s)", got.Sent, got.Received, got.Unexplained, got.Corrupt, rows(got), got.InvalidBecause)
			}
			badChecks(t, got)
			if n := got.Counters["sut.answer.NXDOMAIN"]; n == 0 || got.Counters["peer.reply.NXDOMAIN"] != n {
				t.Errorf("codes %v", got.Counters)
			}
			if got.LatencyNs == nil || got.LatencyNs.Count != got.Received || got.LatencyNs.Base != "sent" || got.LatencyNs.Mean == nil || *got.LatencyNs.Mean <= 0 || got.LatencyNs.P99 != nil {
				t.Errorf("latency %+v", got.LatencyNs)
			}
		})
	}
}
