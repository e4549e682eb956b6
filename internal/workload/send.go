// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"twopath/internal/measure"
	"twopath/internal/packet"
)

// flushLimit is how long a sender waits for what the engine has taken.
const flushLimit = 2 * time.Second

// SendOptions is one worker's part in udp-tx.
type SendOptions struct {
	Sender   Sender
	Template *packet.Template // of this worker's stream; the sender's memory is prepared with it
	Frames   bool             // the sender lends room for Ethernet frames, not for UDP payloads
	Flows    int              // source ports; 0 is 1
	Rate     float64          // packets/s of this worker; 0 floods
	Count    uint64           // packets; 0 is until Stop
	Batch    int              // packets a turn; 0 is DefaultBatch
	Work     *measure.Work    // application work per packet; nil is none
	Ticks    measure.TickRate
}

// SendResult is what one worker sent, in packets.
type SendResult struct {
	Handed     uint64 // taken by the engine: numbers 0..Handed-1 of the stream
	Bytes      uint64 // of frames, or of payloads, as lent
	StartNS    int64  // CLOCK_MONOTONIC of the first turn
	EndNS      int64  // when the engine was done with the last
	Late       uint64 // of a paced load: more than 1 ms after their time
	MaxLateNS  uint64
	Batches    uint64 // turns that sent
	EmptyTurns uint64 // turns that did not: nothing due, or no room
	NoRoom     uint64 // of these, no room
	SpinNS     uint64 // time in empty turns
	MaxStallNS uint64 // longest time in which the machine under the sender stood still, and the sum of all
	StallNS    uint64
	Stopped    bool // ended before its count
}

// Send is the udp-tx loop of one worker: see what is due, borrow room for it, write the packets, hand them over. Every
// arm runs it, and every packet of every arm carries its number and intended send time. Run belongs to one goroutine;
// Stop and Live may be called from any.
type Send struct {
	o     SendOptions
	batch [][]byte
	r     SendResult
	pace  pacer
	clock clock
	spin  measure.SpinMeter
	stall stallMeter
	next  uint64 // number
	where int    // position in the cycle of sizes
	empty bool   // the turn before sent nothing

	_    [64]byte // what other threads touch lies on a line of its own
	stop atomic.Bool
	live atomic.Uint64
	_    [64]byte
}

// NewSend prepares a worker; all memory of the packet path is allocated here.
func NewSend(o SendOptions) (*Send, error) {
	switch {
	case o.Sender == nil || o.Template == nil:
		return nil, errors.New("send options: Sender or Template is nil")
	case o.Ticks.PerSecond <= 0:
		return nil, errors.New("send options: Ticks is not calibrated")
	case o.Rate < 0:
		return nil, fmt.Errorf("send options: Rate: %v packets/s is below 0", o.Rate)
	case o.Count > 1<<packet.NumberBits:
		return nil, fmt.Errorf("send options: Count: %d does not fit the stamp's %d bits", o.Count, packet.NumberBits)
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Flows == 0 {
		o.Flows = 1
	}
	l := &Send{o: o, batch: make([][]byte, o.Batch), pace: pacer{rate: o.Rate}}
	l.spin = measure.NewSpinMeter(o.Ticks)
	l.stall = newStallMeter(o.Ticks)
	return l, nil
}

// Stop ends Run after the batch under way.
func (l *Send) Stop() { l.stop.Store(true) }

// Live is the number of packets handed over so far.
func (l *Send) Live() uint64 { return l.live.Load() }

// Run sends until the count is reached or Stop is called, and waits until the engine is done with what it took. With an
// error, Result still tells what was handed over. The caller has locked the goroutine to a thread and placed it.
func (l *Send) Run() error {
	l.clock = newClock(l.o.Ticks)
	now := measure.Ticks()
	l.spin.Start(now)
	l.stall.start(now)
	l.r.StartNS = l.clock.at(now)
	l.pace.begin(l.r.StartNS)
	err := l.loop()
	if err == nil {
		if err = l.o.Sender.Flush(flushLimit); err != nil {
			err = fmt.Errorf("send: %w", err)
		}
	}
	l.r.EndNS = measure.Monotonic()
	l.r.Handed = l.next
	l.r.Stopped = l.o.Count > 0 && l.next < l.o.Count
	return err
}

func (l *Send) loop() error {
	for !l.stop.Load() && (l.o.Count == 0 || l.next < l.o.Count) {
		if err := l.turn(); err != nil {
			return err
		}
	}
	return nil
}

// turn is one pass: it reads the counter once, so that empty turns are told apart at the cost of one instruction.
func (l *Send) turn() error {
	ticks := measure.Ticks()
	l.stall.turn(ticks)
	l.spin.Tick(ticks, l.empty)
	now := l.clock.at(ticks)
	want := len(l.batch)
	if l.o.Count > 0 {
		want = int(min(uint64(want), l.o.Count-l.next))
	}
	if l.o.Rate > 0 {
		want = l.pace.due(l.next, now, want)
	}
	// A batch is of one flow, as far as the run of it goes.
	if l.o.Flows > 1 {
		want = min(want, FlowRun-int(l.next%FlowRun))
	}
	l.empty = want == 0
	if want == 0 {
		l.r.EmptyTurns++
		return nil
	}
	n, err := l.o.Sender.Reserve(l.batch[:want])
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	if n == 0 {
		l.empty = true
		l.r.EmptyTurns++
		l.r.NoRoom++
		return nil
	}
	flow := 0
	if l.o.Flows > 1 {
		flow = FlowOf(l.next, l.o.Flows)
	}
	l.write(l.batch[:n], flow, now)
	took, err := l.o.Sender.Submit(l.batch[:n], flow)
	for _, p := range l.batch[:took] {
		l.r.Bytes += uint64(len(p))
	}
	if l.o.Rate > 0 && took > 0 {
		l.pace.sent(l.next, took, now)
	}
	l.next += uint64(took)
	l.where = (l.where + took) % l.o.Template.Cycle()
	l.r.Batches++
	l.live.Store(l.next)
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// write makes the packets of a batch, and does the application's work for each.
func (l *Send) write(batch [][]byte, flow int, now int64) {
	t, where, cycle := l.o.Template, l.where, l.o.Template.Cycle()
	for i, b := range batch {
		number := l.next + uint64(i)
		at := now
		if l.o.Rate > 0 {
			at = l.pace.at(number)
		}
		var n int
		if l.o.Frames {
			n = t.Frame(b, where, flow, number, at)
		} else {
			n = t.Payload(b, where, number, at)
		}
		batch[i] = b[:n]
		if where++; where == cycle {
			where = 0
		}
		if l.o.Work != nil {
			l.o.Work.Do()
		}
	}
}

// Result is what was sent; call it when Run has returned.
func (l *Send) Result() SendResult {
	r := l.r
	r.Late, r.MaxLateNS = l.pace.late, uint64(max(l.pace.max, 0))
	r.SpinNS = l.o.Ticks.Nanoseconds(l.spin.Spin())
	r.MaxStallNS, r.StallNS = l.stall.result()
	return r
}
