// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math/bits"
	"time"

	"twopath/internal/measure"
)

// Catch-up of a paced sender: after a pause it sends burst packets at once, and then this much faster than its rate. They
// are those of the live-frame generator.
const (
	catchUp = 1.25
	burst   = 96
	lateNS  = int64(time.Millisecond) // a packet sent later than this after its time counts as late
)

// pacer is an absolute schedule: packet n is due at start + n / rate, however long the ones before took. What has become
// due may be sent at once, within what the catch-up allows.
type pacer struct {
	rate   float64 // packets/s; 0 is a flood
	start  int64   // ns CLOCK_MONOTONIC of packet 0
	credit float64 // packets that may be sent above the schedule's own pace
	last   int64   // ns, when credit was last given
	late   uint64
	max    int64 // ns
}

func (p *pacer) begin(now int64) { p.start, p.last, p.credit = now, now, burst }

// at is the intended send time of packet n.
func (p *pacer) at(n uint64) int64 {
	if p.rate >= 1 {
		// n * 10^9 / rate, exact to the ns for rates of whole packets/s and any n of 40 bits
		whole := uint64(p.rate)
		if float64(whole) == p.rate {
			hi, lo := bits.Mul64(n, 1e9)
			if hi < whole {
				q, _ := bits.Div64(hi, lo, whole)
				return p.start + int64(q)
			}
		}
	}
	return p.start + int64(float64(n)*(1e9/p.rate))
}

// due is how many packets from n on may be sent now, at most most. It takes them from the credit.
func (p *pacer) due(n uint64, now int64, most int) int {
	p.credit = min(p.credit+float64(now-p.last)*p.rate*catchUp/1e9, burst)
	p.last = now
	if p.at(n) > now {
		return 0
	}
	// The count of those due is a division; near its edges at decides.
	k := int64(float64(now-p.start)*p.rate/1e9) + 1 - int64(n)
	k = min(max(k, 1), int64(most), int64(p.credit))
	for k > 0 && p.at(n+uint64(k)-1) > now {
		k--
	}
	return int(max(k, 0))
}

// sent notes that packet n left at now, and takes it from the credit.
func (p *pacer) sent(n uint64, k int, now int64) {
	p.credit -= float64(k)
	oldest := now - p.at(n)
	p.max = max(p.max, oldest)
	if oldest <= lateNS {
		return
	}
	for i := range k {
		if now-p.at(n+uint64(i)) <= lateNS {
			return
		}
		p.late++
	}
}

// clock turns ticks into CLOCK_MONOTONIC without a call for each batch: a counter read costs a third of a clock read, and
// the pair is taken anew every millisecond, in which the rates differ by less than a ns.
type clock struct {
	rate  measure.TickRate
	ticks uint64
	ns    int64
	again uint64 // ticks after which the pair is old
}

func newClock(rate measure.TickRate) clock {
	c := clock{rate: rate, again: rate.Ticks(time.Millisecond)}
	c.sync()
	return c
}

func (c *clock) sync() { c.ticks, c.ns = measure.Ticks(), measure.Monotonic() }

// at is the time of a reading of Ticks.
func (c *clock) at(ticks uint64) int64 {
	if ticks-c.ticks > c.again {
		c.sync()
		if ticks <= c.ticks {
			return c.ns - int64(c.rate.Nanoseconds(c.ticks-ticks))
		}
	}
	return c.ns + int64(c.rate.Nanoseconds(ticks-c.ticks))
}
