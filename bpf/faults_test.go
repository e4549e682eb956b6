// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"twopath/internal/nstest"
)

// Every fault of the generator is exactly as frequent as asked for, and the sink sees it as what it is.
func TestFaults(t *testing.T) {
	const count = 3000
	for _, c := range []struct {
		name    string
		faults  Faults
		want    SinkStats
		foreign string // reason under which the wrong ones are passed
	}{
		{name: "none", want: SinkStats{Unique: count}},
		{name: "every UDP checksum", faults: Faults{BadUDPChecksum: 1}, want: SinkStats{CorruptUDP: count}},
		{name: "every 10th UDP checksum", faults: Faults{BadUDPChecksum: 10}, want: SinkStats{Unique: count - 300, CorruptUDP: 300, Gaps: 300, Skipped: 300}},
		{name: "every 5th twice", faults: Faults{Duplicate: 5}, want: SinkStats{Unique: 2500, Duplicate: 500}},
		{name: "every 4th pair swapped", faults: Faults{Swap: 4}, want: SinkStats{Unique: count, Reordered: 375, Gaps: 375, Skipped: 375}},
		{name: "all pairs swapped", faults: Faults{Swap: 1}, want: SinkStats{Unique: count, Reordered: 1500, Gaps: 1500, Skipped: 1500}},
		{name: "every 3rd of another run", faults: Faults{WrongRun: 3}, want: SinkStats{Unique: 2000, Gaps: 1000, Skipped: 1000}, foreign: "foreign_run"},
		{name: "every 100th to another MAC", faults: Faults{WrongMAC: 100}, want: SinkStats{Unique: 2970, Gaps: 30, Skipped: 30}, foreign: "foreign_mac"},
		{name: "every 7th payload", faults: Faults{BadPayload: 7}, want: SinkStats{Unique: count - 429, CorruptPayload: 429, Gaps: 429, Skipped: 429}},
	} {
		for _, f := range []testFrame{frame4(), frame6()} {
			name := c.name + ", v4"
			if f.src.Is6() {
				name = c.name + ", v6"
			}
			t.Run(name, func(t *testing.T) {
				p := nstest.NewPair(t, nstest.Options{})
				p.Silent(t) // to other MACs the kernel itself may send some (multicast listener reports)
				kernel := p.Peer.ICMPv6Sent(t)
				s := newTestSink(t, f, SinkOptions{VerifyUDP: true})
				attachSUT(t, p, s)
				o := pairOptions(p, f)
				o.Count, o.Rate, o.Flows, o.Sizes, o.Faults = count, 100_000, 3, []int{100, 200, 1518}, c.faults
				res := generate(t, p, o)
				frames, errs := xmit(t, p)
				if frames != count || errs != 0 {
					t.Fatalf("device sent %d of %d and overflowed %d: the counts below cannot hold", frames, count, errs)
				}
				if res.Sent != count || res.Duplicates != c.want.Duplicate {
					t.Errorf("result %+v", res)
				}
				var foreign uint64
				eventually(t, "all frames seen", func() bool {
					reasons, _, err := s.Counters()
					foreign = reasons[c.foreign]
					return err == nil && foreign+reasons["counted"] >= count
				})
				got := sinkStats(t, s)
				// Also after a silence a report may come: what the kernel sent meanwhile may be in the count, and no more.
				kernel = p.Peer.ICMPv6Sent(t) - kernel
				if all := got.Received + foreign; all < count || all > count+kernel {
					t.Errorf("received %d and passed %d, want %d and at most %d of the kernel's", got.Received, foreign, count, kernel)
				}
				got = SinkStats{Unique: got.Unique, Duplicate: got.Duplicate, Reordered: got.Reordered, Gaps: got.Gaps,
					Skipped: got.Skipped, CorruptUDP: got.CorruptUDP, CorruptPayload: got.CorruptPayload}
				// The first number is among those that are wrong: a gap before anything was seen counts like any other.
				if got != c.want {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
			})
		}
	}
}
