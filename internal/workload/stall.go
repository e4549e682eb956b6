// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/measure"
)

// stallAfter is how long a reader may be away before its absence is looked into: several times what one turn takes.
const stallAfter = time.Millisecond

// stallMeter finds the times in which the machine under the reader stood still. A turn that took long had a reason: the
// thread slept in its wait or was switched out for another task, and both are context switches, which getrusage counts.
// When there was none, the virtual CPU itself was away, which no counter inside the machine shows (steal time has a grain
// of 10 ms). Such a trial says nothing about the arm. The question is the same for readers that spin and that sleep, and
// costs a system call only after a turn of more than stallAfter.
type stallMeter struct {
	rate  measure.TickRate
	limit uint64 // ticks
	prev  uint64 // ticks at the begin of the turn before
	max   uint64 // ticks of the longest stall
	total uint64
	seen  int64 // context switches when last asked
	usage unix.Rusage
}

func newStallMeter(rate measure.TickRate) stallMeter {
	return stallMeter{rate: rate, limit: rate.Ticks(stallAfter)}
}

// start begins at now, on the thread that will run the turns.
func (m *stallMeter) start(now uint64) {
	m.prev = now
	m.seen = m.switches()
}

// turn notes that a turn begins at now.
func (m *stallMeter) turn(now uint64) {
	d := now - m.prev
	m.prev = now
	if d > m.limit {
		m.long(d)
	}
}

func (m *stallMeter) long(d uint64) {
	if n := m.switches(); n != m.seen {
		m.seen = n
		return
	}
	m.total += d
	m.max = max(m.max, d)
}

// switches is the number of context switches of the calling thread; when it cannot be read it stays the same, so that the
// gap counts as a stall and the doubtful trial is not used.
func (m *stallMeter) switches() int64 {
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &m.usage); err != nil {
		return m.seen
	}
	return m.usage.Nvcsw + m.usage.Nivcsw
}

func (m *stallMeter) result() (maxNS, totalNS uint64) {
	return m.rate.Nanoseconds(m.max), m.rate.Nanoseconds(m.total)
}
