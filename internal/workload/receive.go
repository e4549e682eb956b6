// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"sync/atomic"

	"twopath/internal/measure"
	"twopath/internal/packet"
)

// DefaultBatch is how many packets one turn of a loop takes at most.
const DefaultBatch = 64

// ReceiveOptions is one worker's part in udp-rx.
type ReceiveOptions struct {
	Receiver Receiver
	Frames   bool            // the receiver lends Ethernet frames, not UDP payloads
	Verifier packet.Verifier // for frames
	Run      uint32          // run id of the stamps
	Streams  int             // generating cores
	Window   int             // sequence window in numbers; 0 is measure.MinWindow
	Batch    int             // packets a turn; 0 is DefaultBatch
	Content  bool            // check the payload's pattern
	Spins    bool            // the receiver returns at once when there is nothing: empty polls are spinning, not sleep
	Work     *measure.Work   // application work per packet; nil is none
	Every    uint64          // packets that make a milestone; 0 is none
	Ticks    measure.TickRate

	// Assembler (optional) takes the Verifier's place where frames hold fragments of datagrams.
	Assembler Assembler
}

// ReceiveResult is what one worker received, in packets. Received is what the run's accounting starts from:
// Received = Unique + Duplicate + Late + UnknownStream.
type ReceiveResult struct {
	Received   uint64 // of this run and whole
	Bytes      uint64 // payload bytes of these
	Foreign    uint64 // other protocol, address, port
	WrongRun   uint64 // of the flow, but stamped by another run
	Short      uint64 // cut, or too short for a stamp
	CorruptIP  uint64 // IPv4 header checksum wrong (frames only: the kernel checks for its readers)
	CorruptUDP uint64 // UDP checksum wrong (frames only)
	BadContent uint64 // of this run, with right checksums, and yet not the pattern that was sent
	Batches    uint64 // turns that brought packets
	EmptyPolls uint64 // turns that brought none
	SpinNS     uint64 // time in empty turns of a spinning receiver
	FirstNS    int64  // CLOCK_MONOTONIC of the first and last turn that brought packets, 0 if none did
	LastNS     int64
	MaxStallNS uint64 // longest time in which the machine under the reader stood still, and the sum of all
	StallNS    uint64
	Streams    *measure.Streams
	Milestones []Milestone
}

// Receive is the udp-rx loop of one worker: take a batch, check and account each packet, give the memory back.
// Run belongs to one goroutine; Stop and Live may be called from any.
type Receive struct {
	o     ReceiveOptions
	batch [][]byte
	r     ReceiveResult
	spin  measure.SpinMeter
	stall stallMeter
	marks milestones
	empty bool   // the turn before brought nothing
	first uint64 // ticks
	last  uint64

	_    [64]byte // what other threads touch lies on a line of its own
	stop atomic.Bool
	live atomic.Uint64
	_    [64]byte
}

// NewReceive prepares a worker; all memory of the packet path is allocated here.
func NewReceive(o ReceiveOptions) (*Receive, error) {
	if o.Receiver == nil {
		return nil, errors.New("receive options: Receiver is nil")
	}
	if o.Ticks.PerSecond <= 0 {
		return nil, errors.New("receive options: Ticks is not calibrated")
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Window == 0 {
		o.Window = measure.MinWindow
	}
	streams, err := measure.NewStreams(max(o.Streams, 1), o.Window)
	if err != nil {
		return nil, fmt.Errorf("receive options: %w", err)
	}
	l := &Receive{o: o, batch: make([][]byte, o.Batch)}
	l.r.Streams = streams
	l.marks = newMilestones(o)
	l.spin = measure.NewSpinMeter(o.Ticks)
	l.stall = newStallMeter(o.Ticks)
	return l, nil
}

// Stop ends Run within one wait of the receiver.
func (l *Receive) Stop() { l.stop.Store(true) }

// Live is the number of packets of this run received so far.
func (l *Receive) Live() uint64 { return l.live.Load() }

// Run receives until Stop. The caller has locked the goroutine to a thread and placed it.
func (l *Receive) Run() error {
	now := measure.Ticks()
	l.spin.Start(now)
	l.stall.start(now)
	for !l.stop.Load() {
		if err := l.turn(); err != nil {
			return err
		}
	}
	return nil
}

// turn is one pass: it reads the clock once, so that empty polls and gaps are told apart at the cost of one instruction.
func (l *Receive) turn() error {
	now := measure.Ticks()
	l.stall.turn(now)
	if l.o.Spins {
		l.spin.Tick(now, l.empty)
	}
	n, err := l.o.Receiver.Receive(l.batch)
	l.empty = n == 0
	if n == 0 {
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		l.r.EmptyPolls++
		return nil
	}
	if l.first == 0 {
		l.first = now
		l.marks.begin(now)
	}
	l.last = now
	switch {
	case l.o.Assembler != nil:
		l.fragments(l.batch[:n])
	case l.o.Frames:
		l.frames(l.batch[:n])
	default:
		for _, p := range l.batch[:n] {
			l.datagram(p)
		}
	}
	l.r.Batches++
	l.live.Store(l.r.Received)
	if l.r.Received >= l.marks.next {
		l.marks.pass(&l.r)
	}
	if err := l.o.Receiver.Release(); err != nil {
		return fmt.Errorf("release: %w", err)
	}
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

func (l *Receive) frames(batch [][]byte) {
	for _, f := range batch {
		if p, verdict := l.o.Verifier.Frame(f); verdict == packet.OK {
			l.datagram(p)
		} else {
			l.refused(verdict)
		}
	}
}

// refused accounts a frame without a datagram of the flow.
func (l *Receive) refused(verdict packet.Verdict) {
	switch verdict {
	case packet.Foreign:
		l.r.Foreign++
	case packet.Short:
		l.r.Short++
	case packet.CorruptIP:
		l.r.CorruptIP++
	case packet.CorruptUDP:
		l.r.CorruptUDP++
	}
}

// datagram accounts one UDP payload.
func (l *Receive) datagram(p []byte) {
	if len(p) < packet.StampLen {
		l.r.Short++
		return
	}
	s := packet.ParseStamp(p)
	if s.Run != l.o.Run {
		l.r.WrongRun++
		return
	}
	if l.o.Content && !packet.PatternOK(p) {
		l.r.BadContent++
		return
	}
	l.r.Received++
	l.r.Bytes += uint64(len(p))
	l.r.Streams.Add(uint64(s.Stream)<<packet.NumberBits | s.Number)
	if l.o.Work != nil {
		l.o.Work.Do()
	}
}

// Result is what was received; call it when Run has returned.
func (l *Receive) Result() ReceiveResult {
	r := l.r
	r.SpinNS = l.o.Ticks.Nanoseconds(l.spin.Spin())
	r.MaxStallNS, r.StallNS = l.stall.result()
	r.Milestones = l.marks.result()
	if l.first != 0 {
		now, mono := measure.Ticks(), measure.Monotonic()
		ago := func(t uint64) int64 { return mono - int64(l.o.Ticks.Nanoseconds(now-t)) }
		r.FirstNS, r.LastNS = ago(l.first), ago(l.last)
	}
	return r
}
