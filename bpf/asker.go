// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// Asker asks prepared questions with XDP live frames (Linux 5.18) and checks the answers in an XDP program on the device
// that it asks from. One asker has a stream per CPU; each stream runs once.
type Asker struct {
	sender
	o     AskerOptions
	obj   askObjects
	frame []byte // what the pages start with: as long as the longest request
}

// AskState is what one stream has done so far.
type AskState struct {
	Pacing           // its frames are requests; Done is the stream's share of Count reached
	Forgotten uint64 // requests that had no answer yet when their port and id were used again
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
	a := &Asker{o: o}
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
	state, err := mmapMap(a.obj.State)
	if err != nil {
		return nil, err
	}
	a.init(state, len(o.CPUs), askStateWords)
	return a, nil
}

// Program is the one that checks, for Attach at the device that asks. It belongs to a.
func (a *Asker) Program() *ebpf.Program { return a.obj.Answers }

// State returns what a stream has done so far; safe from any goroutine, and cheap.
func (a *Asker) State(stream int) AskState {
	return ifOpen(&a.sender, func() AskState { return a.read(stream) })
}

func (a *Asker) read(stream int) AskState {
	s := snapshot[askAskState](a.state, stream*askStateWords)
	r := AskState{Pacing: pacingOf(generatePace(s.Pace)), Forgotten: s.Forgotten}
	r.Done = r.Done && r.Failed == 0
	return r
}

// Close stops all streams, waits for their end, and unloads the programs. It may be called twice.
func (a *Asker) Close() error { return a.close(a.unload) }

func (a *Asker) unload() error { return errors.Join(a.state.close(), a.obj.Close()) }

// Run asks until the stream's share of Count, or Stop. It occupies the calling thread, which must be pinned to the stream's
// CPU, in the network namespace of the device.
func (a *Asker) Run(stream int) (r AskResult, err error) {
	rate := a.o.Rate * a.o.CatchUp / float64(len(a.o.CPUs))
	l := sending{prog: a.obj.Ask.FD(), frame: a.frame, batch: a.o.Batch,
		untilDone: func() time.Duration { return a.left(stream, a.share(stream), rate) }}
	if a.o.Rate == 0 {
		l.flood = a.share(stream)
	}
	r.Runs, err = a.run(stream, l, func() {
		r.AskState = a.read(stream)
		r.Stopped = !r.Done
	})
	if err == nil && r.Failed > 0 {
		err = fmt.Errorf("request %d could not be shaped", r.Sent+1)
	}
	if err != nil {
		err = fmt.Errorf("run asker: %w", err)
	}
	return r, err
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
