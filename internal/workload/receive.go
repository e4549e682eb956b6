// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"

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
	Turns
	Received   uint64 // of this run and whole
	Bytes      uint64 // payload bytes of these
	Foreign    uint64 // other protocol, address, port
	WrongRun   uint64 // of the flow, but stamped by another run
	Short      uint64 // cut, or too short for a stamp
	CorruptIP  uint64 // IPv4 header checksum wrong (frames only: the kernel checks for its readers)
	CorruptUDP uint64 // UDP checksum wrong (frames only)
	BadContent uint64 // of this run, with right checksums, and yet not the pattern that was sent
	Streams    *measure.Streams
	Milestones []Milestone
}

// Receive is the udp-rx loop of one worker: take a batch, check and account each packet, give the memory back.
// Run belongs to one goroutine; Stop and Live may be called from any.
type Receive struct {
	reading
	o     ReceiveOptions
	r     ReceiveResult
	marks milestones
}

// NewReceive prepares a worker; all memory of the packet path is allocated here.
func NewReceive(o ReceiveOptions) (*Receive, error) {
	if o.Window == 0 {
		o.Window = measure.MinWindow
	}
	streams, err := measure.NewStreams(max(o.Streams, 1), o.Window)
	if err != nil {
		return nil, fmt.Errorf("receive options: %w", err)
	}
	l := &Receive{o: o}
	if err := l.begin(o.Receiver, o.Batch, o.Spins, o.Ticks); err != nil {
		return nil, fmt.Errorf("receive options: %w", err)
	}
	l.r.Streams = streams
	l.marks = newMilestones(o)
	return l, nil
}

// Run receives until Stop. The caller has locked the goroutine to a thread and placed it.
func (l *Receive) Run() error { return l.run(l) }

func (l *Receive) take(batch [][]byte, now uint64) (uint64, error) {
	if l.first == now {
		l.marks.begin(now)
	}
	switch {
	case l.o.Assembler != nil:
		l.fragments(batch)
	case l.o.Frames:
		l.frames(batch)
	default:
		for _, p := range batch {
			l.datagram(p)
		}
	}
	if l.r.Received >= l.marks.next {
		l.marks.pass(&l.r)
	}
	return l.r.Received, nil
}

func (l *Receive) returned() {}

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
	r.Turns = l.result()
	r.Milestones = l.marks.result()
	return r
}
