// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// SpinCap is the most that one empty iteration of a polling loop is taken to cost. A look at an empty ring takes some
// 20-100 ns and a system call that finds nothing well under 2 us; anything longer was an interrupt, a softirq or another
// task on the core, which other witnesses account for. So the error per preempted iteration is at most this.
const SpinCap = 2 * time.Microsecond

// SpinMeter tells the time a polling reader spends finding nothing from the time it spends on packets. The loop calls
// Tick once at the end of every iteration with one Ticks reading; the time since the call before is that iteration's.
type SpinMeter struct {
	limit  uint64
	last   uint64
	spin   uint64
	empty  uint64
	capped uint64
}

// NewSpinMeter makes a meter for counters of the given rate. Call Start before the loop.
func NewSpinMeter(rate TickRate) SpinMeter { return SpinMeter{limit: rate.Ticks(SpinCap)} }

// Start begins an iteration at now and forgets the time before: call it before the loop, and after every blocking
// wait, whose time is not CPU time.
func (m *SpinMeter) Start(now uint64) { m.last = now }

// Tick ends an iteration at now; empty says that it found no packet.
func (m *SpinMeter) Tick(now uint64, empty bool) {
	d := now - m.last
	m.last = now
	if !empty {
		return
	}
	m.empty++
	if d > m.limit {
		d = m.limit
		m.capped++
	}
	m.spin += d
}

// Spin is the ticks spent in empty iterations.
func (m *SpinMeter) Spin() uint64 { return m.spin }

// Empty is how many iterations were empty.
func (m *SpinMeter) Empty() uint64 { return m.empty }

// Capped is how many of these were longer than SpinCap and counted as SpinCap.
func (m *SpinMeter) Capped() uint64 { return m.capped }
