// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// Asker asks prepared questions with XDP live frames (Linux 5.18) and checks the answers in an XDP program on the device
// that it asks from. One asker has a stream per CPU; each stream runs once.
type Asker struct {
	o      AskerOptions
	obj    askObjects
	state  *mapMemory
	frame  []byte // what the pages start with: as long as the longest request
	repeat uint32 // see Generator
	stop   chan struct{}

	mu      sync.Mutex
	stopped bool
	closed  bool
	started []bool         // by stream
	running sync.WaitGroup // streams in Run
}

// AskState is what one stream has done so far.
type AskState struct {
	Sent       uint64        // requests given to the device; check it against the device's own counters
	Calls      uint64        // program runs; most of them only wait
	Start, End uint64        // CLOCK_MONOTONIC ns: the first frame's intended time, and the latest frame
	LateTotal  time.Duration // sum over all frames of sent minus intended
	LateMax    time.Duration
	LateSlots  uint64        // frames sent more than 1 ms after their intended time
	Shifted    time.Duration // by how much the schedule was moved on, in all: time in which nothing was offered
	GapMax     time.Duration // longest time between two program runs: the asker itself stood still
	Forgotten  uint64        // requests that had no answer yet when their port and id were used again
	Done       bool          // Count reached
}

// AskResult is the state of a stream at the end of its run.
type AskResult struct {
	AskState
	Stopped bool // ended by Stop, before its count
	Runs    int  // system calls; each after the first is a hole of some 20 ms in the load
}

// NewAsker loads the programs. The calling thread must be in the network namespace of the device. The receiving end must
// have NAPI (GRO on, or XDP attached), or a veth swallows the frames uncounted.
func NewAsker(o AskerOptions) (_ *Asker, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	spec, err := loadAsk()
	if err != nil {
		return nil, fmt.Errorf("asker: %w", err)
	}
	vars, err := o.variables()
	if err != nil {
		return nil, err
	}
	if err := setVariables(spec, vars); err != nil {
		return nil, fmt.Errorf("asker: %w", err)
	}
	n := uint32(len(o.Questions))
	spec.Maps[askMapState].MaxEntries = uint32(len(o.CPUs))
	spec.Maps[askMapRequests].MaxEntries, spec.Maps[askMapExpected].MaxEntries = n, n
	spec.Maps[askMapSlots].MaxEntries = uint32(1 << 16 * o.Flows)
	a := &Asker{o: o, repeat: math.MaxUint32 - 255, stop: make(chan struct{}), started: make([]bool, len(o.CPUs))}
	if err := load("asker", spec, &a.obj); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("asker: %w", err), a.unload())
		}
	}()
	for i, q := range o.Questions {
		r := o.request(q)
		if int(r.Len) > len(a.frame) {
			a.frame = append([]byte(nil), r.Frame[:r.Len]...)
		}
		if err := errors.Join(a.obj.Requests.Put(uint32(i), r), a.obj.Expected.Put(uint32(i), q.expect())); err != nil {
			return nil, fmt.Errorf("question %d: %w", i+1, err)
		}
	}
	a.o.Questions = nil // the caller's, and not looked at again
	a.state, err = mmapMap(a.obj.State)
	return a, err
}

// Program is the one that checks, for Attach at the device that asks. It belongs to a.
func (a *Asker) Program() *ebpf.Program { return a.obj.Answers }

// State returns what a stream has done so far; safe from any goroutine, and cheap.
func (a *Asker) State(stream int) AskState {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return AskState{}
	}
	return a.read(stream)
}

func (a *Asker) read(stream int) AskState {
	s := snapshot[askAskState](a.state, stream*askStateWords)
	return AskState{Sent: s.Pace.Sent, Calls: s.Pace.Calls, Start: s.Pace.StartNs, End: s.Pace.EndNs, LateTotal: time.Duration(s.Pace.LateTotalNs), LateMax: time.Duration(s.Pace.LateMaxNs),
		LateSlots: s.Pace.LateSlots, Shifted: time.Duration(s.Pace.ShiftedNs), GapMax: time.Duration(s.Pace.GapMaxNs), Forgotten: s.Forgotten, Done: s.Pace.Done != 0 && s.Pace.Failed == 0}
}

// word is a word of a stream's state.
func (a *Asker) word(stream, i int) uint64 { return a.state.word(stream*askStateWords + i).Load() }

// Stop makes all streams return within some 20 ms, with exact counts. It may be called at any time, from any goroutine,
// more than once, and does not wait.
func (a *Asker) Stop() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.stopped || a.closed {
		return
	}
	a.stopped = true
	for i := range a.o.CPUs {
		a.state.word(i*askStateWords + paceStop).Store(1) // pairs with READ_ONCE(s->stop) in ask
	}
	close(a.stop)
}

// Close stops all streams, waits for their end, and unloads the programs. It may be called twice.
func (a *Asker) Close() error {
	a.Stop()
	a.running.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil
	}
	a.closed = true
	return a.unload()
}

func (a *Asker) unload() error {
	var err error
	if a.state != nil {
		err = a.state.close()
	}
	return errors.Join(err, a.obj.Close())
}

// Run asks until the stream's share of Count, or Stop. It occupies the calling thread, which must be pinned to the stream's
// CPU, in the network namespace of the device.
func (a *Asker) Run(stream int) (AskResult, error) {
	if err := a.start(stream); err != nil {
		return AskResult{}, fmt.Errorf("run asker: %w", err)
	}
	defer a.running.Done()
	runs, err := liveRun{prog: a.obj.Ask.FD(), frame: a.frame, batch: a.o.Batch, stop: a.stop,
		finished: func() bool { return a.word(stream, paceDone)|a.word(stream, paceStop) != 0 },
		repeat:   func() uint32 { return a.repeatNow(stream) }, untilDone: func() time.Duration { return a.untilDone(stream) }}.drive()
	s := a.read(stream)
	if n := a.word(stream, paceFailed); err == nil && n > 0 {
		err = fmt.Errorf("request %d could not be shaped", s.Sent+1)
	}
	if err != nil {
		err = fmt.Errorf("run asker: %w", err)
	}
	return AskResult{AskState: s, Stopped: !s.Done, Runs: runs}, err
}

func (a *Asker) start(stream int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return os.ErrClosed
	case stream < 0 || stream >= len(a.started):
		return fmt.Errorf("no stream %d", stream)
	case a.started[stream]:
		return fmt.Errorf("stream %d has run already", stream)
	}
	a.started[stream] = true
	a.running.Add(1)
	return nil
}

// share is how many requests of Count are the stream's; 0 is no limit.
func (a *Asker) share(stream int) uint64 {
	n := uint64(len(a.o.CPUs))
	share := a.o.Count / n
	if uint64(stream) < a.o.Count%n {
		share++
	}
	return share
}

// repeatNow is as Generator.repeatNow.
func (a *Asker) repeatNow(stream int) uint32 {
	if a.o.Rate == 0 && a.o.Count > 0 {
		return uint32(min(uint64(a.repeat), a.share(stream)-a.word(stream, paceSent)))
	}
	return a.repeat
}

func (a *Asker) untilDone(stream int) time.Duration {
	if a.o.Count == 0 {
		return time.Hour
	}
	rate := a.o.Rate * a.o.CatchUp / float64(len(a.o.CPUs))
	if rate == 0 {
		rate = 1e7
	}
	left := a.share(stream) - min(a.share(stream), a.word(stream, paceSent))
	return time.Duration(float64(left) / rate * 1e9)
}
