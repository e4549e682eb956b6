// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"

	"twopath/internal/measure"
)

// Milestone is what a worker needed for the packets since the one before.
type Milestone struct {
	Packets, Bytes uint64 // of this run; payload
	NS             uint64
	Waits, Calls   uint64
}

// CallCounter is a receiver that counts its system calls: returns of epoll_wait or poll, and calls that read packets. It is
// asked by the goroutine that receives.
type CallCounter interface {
	Calls() (waits, reads uint64)
}

// maxMilestones bounds what is kept: a thousand millions.
const maxMilestones = 1000

// milestones notes the time, and the receiver's own counts, each time that so many more packets are in. It costs the loop a
// comparison a batch.
type milestones struct {
	every  uint64
	next   uint64 // packets at which the next is due; never, when there are none
	calls  CallCounter
	rate   measure.TickRate
	before mark
	list   []Milestone
}

// mark is a reading of everything at one moment.
type mark struct {
	ticks                         uint64
	packets, bytes, waits, called uint64
}

func newMilestones(o ReceiveOptions) milestones {
	m := milestones{every: o.Every, next: math.MaxUint64, rate: o.Ticks}
	if o.Every == 0 {
		return m
	}
	m.next = o.Every
	m.calls, _ = o.Receiver.(CallCounter)
	m.list = make([]Milestone, 0, maxMilestones)
	return m
}

// begin is the turn of the first packet: the time before is no part of the first milestone, the calls are.
func (m *milestones) begin(now uint64) { m.before.ticks = now }

// pass notes that the loop is past a milestone. Where one batch passed several, they are one.
func (m *milestones) pass(r *ReceiveResult) {
	now := mark{ticks: measure.Ticks(), packets: r.Received, bytes: r.Bytes}
	if m.calls != nil {
		now.waits, now.called = m.calls.Calls()
	}
	b := m.before
	m.list = append(m.list, Milestone{Packets: now.packets - b.packets, Bytes: now.bytes - b.bytes, NS: m.rate.Nanoseconds(now.ticks - b.ticks),
		Waits: now.waits - b.waits, Calls: now.called - b.called})
	m.before = now
	m.next = now.packets - now.packets%m.every + m.every
	if len(m.list) == cap(m.list) {
		m.next = math.MaxUint64
	}
}

func (m *milestones) result() []Milestone { return m.list }
