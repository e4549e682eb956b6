// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"sync/atomic"

	"twopath/internal/measure"
)

// Turns is what every loop that receives counts of its turns.
type Turns struct {
	Batches    uint64 // turns that brought packets
	EmptyPolls uint64 // turns that brought none
	SpinNS     uint64 // time in empty turns of a spinning receiver
	FirstNS    int64  // CLOCK_MONOTONIC of the first and last turn that brought packets, 0 if none did
	LastNS     int64
	MaxStallNS uint64 // longest time in which the machine under the reader stood still, and the sum of all
	StallNS    uint64
}

// taker takes in the packets of a turn.
type taker interface {
	// take accounts a batch that was lent at now (ticks), and tells how many packets of the run came so far.
	take(batch [][]byte, now uint64) (received uint64, err error)
	// returned is called when the memory has been given back.
	returned()
}

// reading is what all loops that receive do alike: take a batch, have it taken in, give the memory back, and tell empty
// turns, gaps and the ends of the load. run belongs to one goroutine; Stop and Live may be called from any.
type reading struct {
	receiver Receiver
	batch    [][]byte
	spins    bool
	rate     measure.TickRate
	spin     measure.SpinMeter
	stall    stallMeter
	turns    Turns
	empty    bool   // the turn before brought nothing
	first    uint64 // ticks of the first and last turn that brought packets
	last     uint64

	_    [64]byte // what other threads touch lies on a line of its own
	stop atomic.Bool
	live atomic.Uint64
	_    [64]byte
}

// begin prepares a loop; batch 0 is DefaultBatch.
func (r *reading) begin(from Receiver, batch int, spins bool, rate measure.TickRate) error {
	if from == nil {
		return errors.New("no Receiver")
	}
	if rate.PerSecond <= 0 {
		return errors.New("no calibrated Ticks")
	}
	if batch == 0 {
		batch = DefaultBatch
	}
	r.receiver, r.batch, r.spins, r.rate = from, make([][]byte, batch), spins, rate
	r.spin, r.stall = measure.NewSpinMeter(rate), newStallMeter(rate)
	return nil
}

// Stop ends the loop within one wait of the receiver.
func (r *reading) Stop() { r.stop.Store(true) }

// Live is the number of packets of this run received so far.
func (r *reading) Live() uint64 { return r.live.Load() }

// run turns until Stop. The caller has locked the goroutine to a thread and placed it.
func (r *reading) run(t taker) error {
	now := measure.Ticks()
	r.spin.Start(now)
	r.stall.start(now)
	for !r.stop.Load() {
		if err := r.once(t); err != nil {
			return err
		}
	}
	return nil
}

// once is one pass: it reads the clock once, so that empty polls and gaps are told apart at the cost of one instruction.
func (r *reading) once(t taker) error {
	now := measure.Ticks()
	r.stall.turn(now)
	if r.spins {
		r.spin.Tick(now, r.empty)
	}
	n, err := r.receiver.Receive(r.batch)
	r.empty = n == 0
	if n == 0 {
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		r.turns.EmptyPolls++
		return nil
	}
	if r.first == 0 {
		r.first = now
	}
	r.last = now
	r.turns.Batches++
	received, e := t.take(r.batch[:n], now)
	r.live.Store(received)
	if e != nil {
		return e
	}
	e = r.receiver.Release()
	t.returned()
	if e != nil {
		return fmt.Errorf("release: %w", e)
	}
	if err != nil {
		return fmt.Errorf("receive: %w", err)
	}
	return nil
}

// result is the turns so far; call it when run has returned.
func (r *reading) result() Turns {
	t := r.turns
	t.SpinNS = r.rate.Nanoseconds(r.spin.Spin())
	t.MaxStallNS, t.StallNS = r.stall.result()
	if r.first != 0 {
		now, mono := measure.Ticks(), measure.Monotonic()
		ago := func(ticks uint64) int64 { return mono - int64(r.rate.Nanoseconds(now-ticks)) }
		t.FirstNS, t.LastNS = ago(r.first), ago(r.last)
	}
	return t
}
