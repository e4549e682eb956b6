// SPDX-License-Identifier: Apache-2.0

package measure

import "time"

// maxStalls is how many stalls a GapMeter remembers one by one.
const maxStalls = 32

// Stall is one time that a loop did not come round.
type Stall struct {
	At  uint64 // Ticks when it ended
	Len uint64 // ticks
}

// GapMeter finds the times when a loop stood still: the host took the CPU away, or something else ran on the core.
// Steal time in /proc/stat comes in steps of 10 ms and misses them. The loop calls Tick on every iteration, empty or
// not; a loop that blocks calls Start after waking, or waiting for packets would look like a stall.
type GapMeter struct {
	threshold uint64
	last      uint64
	longest   Stall
	count     uint64
	total     uint64
	stalls    [maxStalls]Stall
}

// NewGapMeter makes a meter that counts gaps longer than threshold. Call Start before the loop.
func NewGapMeter(rate TickRate, threshold time.Duration) GapMeter {
	return GapMeter{threshold: rate.Ticks(threshold)}
}

// Start begins at now.
func (m *GapMeter) Start(now uint64) { m.last = now }

// Tick says that the loop came round at now.
func (m *GapMeter) Tick(now uint64) {
	d := now - m.last
	m.last = now
	if d > m.longest.Len || d > m.threshold {
		m.record(now, d)
	}
}

func (m *GapMeter) record(now, d uint64) {
	if d > m.longest.Len {
		m.longest = Stall{now, d}
	}
	if d <= m.threshold {
		return
	}
	if m.count < maxStalls {
		m.stalls[m.count] = Stall{now, d}
	}
	m.count++
	m.total += d
}

// Longest is the longest gap, above the threshold or not.
func (m *GapMeter) Longest() Stall { return m.longest }

// Count and Total are the gaps above the threshold: how many, and their ticks together.
func (m *GapMeter) Count() (n, ticks uint64) { return m.count, m.total }

// Stalls lists the first 32 gaps above the threshold, oldest first.
func (m *GapMeter) Stalls() []Stall {
	return append([]Stall(nil), m.stalls[:min(m.count, maxStalls)]...)
}
