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

// Replayer sends a list of frames from one core: XDP live frames (Linux 5.18), paced by the program itself, each frame of the
// list once per loop and in order. It runs once.
type Replayer struct {
	o     ReplayerOptions
	obj   replayObjects
	state *mapMemory
	times *mapMemory // nil without RecordTimes
	frame []byte     // the longest one: pages only ever shrink
	// repeat is how many program runs one system call makes; see Generator.
	repeat uint32
	paced  bool          // there are program runs that only wait
	length time.Duration // from the start to the last frame's time, with Due

	stop chan struct{} // closed by Stop

	mu      sync.Mutex
	stopped bool
	started bool
	closed  bool
	done    chan struct{} // closed when Run is over; nil before it starts
}

// ReplayerState is what a replayer has done so far. Sent tells how far it is: Sent / len(Frames) whole loops, and of the
// next one the first Sent % len(Frames) frames.
type ReplayerState struct {
	Sent       uint64        // frames given to the device; check it against the device's own counters
	Bytes      uint64        // of these frames, without FCS
	Calls      uint64        // program runs; most of them only wait
	Start, End uint64        // CLOCK_MONOTONIC ns: what the schedule counts from, and the latest frame
	LateTotal  time.Duration // sum over all frames of sent minus intended
	LateMax    time.Duration
	LateSlots  uint64        // frames sent more than 1 ms after their intended time
	Shifts     uint64        // times the schedule was moved on because it was more than MaxLag behind
	Shifted    time.Duration // by how much in all: time in which nothing was offered
	Held       uint64        // program runs in which a frame that was due waited for the catch-up limit
	GapMax     time.Duration // longest time between two program runs: the replayer itself stood still
	Done       bool          // all frames of all loops were sent

	last uint64 // the latest program run
}

// ReplayerResult is the state at the end of a run.
type ReplayerResult struct {
	ReplayerState
	Stopped bool // ended by Stop, before its count
	Runs    int  // system calls; each after the first is a hole of some 20 ms in the load
}

// FrameTime is when one frame was to be sent and when it was, CLOCK_MONOTONIC ns. Due includes the shifts of the schedule.
type FrameTime struct {
	Due, Sent uint64
}

// Rate returns the mean rate in frames per second between the start and the last frame, 0 for less than two frames.
func (s ReplayerState) Rate() float64 {
	if s.Sent < 2 || s.End <= s.Start {
		return 0
	}
	return float64(s.Sent-1) / float64(s.End-s.Start) * 1e9
}

// NewReplayer loads a replayer. The calling thread must be in the network namespace of the sending interface.
// The receiving end must have NAPI (GRO on, or XDP attached), or a veth swallows the frames uncounted.
func NewReplayer(o ReplayerOptions) (_ *Replayer, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	if err := o.checkDevice(); err != nil {
		return nil, err
	}
	spec, err := loadReplay()
	if err != nil {
		return nil, fmt.Errorf("replayer: %w", err)
	}
	list := layOut(o.Frames)
	spec.Maps[replayMapFrames].MaxEntries = uint32(len(o.Frames))
	spec.Maps[replayMapBytes].ValueSize = uint32(list.stride)
	spec.Maps[replayMapBytes].MaxEntries = uint32(list.chunks)
	if o.RecordTimes {
		spec.Maps[replayMapTimes].MaxEntries = uint32(o.Count)
	}
	if err := setVariables(spec, o.variables(list)); err != nil {
		return nil, fmt.Errorf("replayer: %w", err)
	}
	r := &Replayer{o: o, repeat: math.MaxUint32 - 255, paced: o.Rate > 0 || o.Due != nil, length: o.length(), stop: make(chan struct{})}
	if err := load("replayer", spec, &r.obj); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("replayer: %w", err), r.unload())
		}
	}()
	if r.state, err = mmapMap(r.obj.State); err != nil {
		return nil, err
	}
	if o.RecordTimes {
		if r.times, err = mmapMap(r.obj.Times); err != nil {
			return nil, err
		}
	}
	for _, f := range o.Frames {
		if len(f) > len(r.frame) {
			r.frame = f
		}
	}
	r.frame = append([]byte(nil), r.frame...)
	if err := r.fill(list); err != nil {
		return nil, err
	}
	r.o.Frames, r.o.Due = nil, nil // the caller's, and not looked at again
	return r, nil
}

// fill writes the list into the program's maps.
func (r *Replayer) fill(list layout) (err error) {
	fill := func(m *ebpf.Map, write func(b []byte)) error {
		mem, err := mmapMap(m)
		if err != nil {
			return err
		}
		write(mem.mem)
		return mem.close()
	}
	if err := fill(r.obj.Frames, func(b []byte) { list.writeIndex(b, r.o.Due) }); err != nil {
		return err
	}
	return fill(r.obj.Bytes, func(b []byte) { list.writeBytes(b, r.o.Frames) })
}

// variables are the constants of c/replay.bpf.c.
func (o ReplayerOptions) variables(list layout) map[string]any {
	v := map[string]any{
		replayVarIfindex: uint32(o.IfIndex), replayVarCount: uint32(len(o.Frames)), replayVarOffMax: uint32(list.offMax),
		replayVarLimit: o.Count, replayVarBurst: uint64(o.Burst), replayVarLagNs: uint64(o.MaxLag),
		replayVarPatience: uint32(o.Patience), replayVarLoopAt: uint32(o.LoopAt),
	}
	if o.RecordTimes {
		v[replayVarRecorded] = uint32(o.Count)
	}
	switch {
	case o.Due != nil:
		v[replayVarScheduled] = uint32(1)
		v[replayVarPeriodNs] = uint64(o.Period)
		v[replayVarCatchup] = uint64(1e9 / o.PeakRate * (1 << 12))
	case o.Rate > 0:
		whole, frac := math.Modf(1e9 / o.Rate)
		v[replayVarIntervalNs] = uint64(whole)
		v[replayVarIntervalFrac] = uint64(frac * (1 << 32))
		v[replayVarCatchup] = uint64(1e9 / o.Rate / o.CatchUp * (1 << 12))
	}
	return v
}

// State returns what was done so far; safe from any goroutine, and cheap. Its numbers may be some frames apart.
func (r *Replayer) State() ReplayerState {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return ReplayerState{}
	}
	return r.read()
}

// read needs mu, or a replayer that cannot be closed meanwhile.
func (r *Replayer) read() ReplayerState {
	s := snapshot[replayReplayState](r.state, 0)
	return ReplayerState{
		Sent: s.Pace.Sent, Bytes: s.Bytes, Calls: s.Pace.Calls, Start: s.Pace.StartNs, End: s.Pace.EndNs,
		LateTotal: time.Duration(s.Pace.LateTotalNs), LateMax: time.Duration(s.Pace.LateMaxNs), LateSlots: s.Pace.LateSlots,
		Shifts: s.Pace.Shifts, Shifted: time.Duration(s.Pace.ShiftedNs), Held: s.Pace.Held, GapMax: time.Duration(s.Pace.GapMaxNs),
		Done: s.Pace.Done != 0 && s.Pace.Failed == 0, last: s.Pace.LastNs,
	}
}

// Times returns the times of the frames sent so far, in the order of sending; nil without RecordTimes or after Close.
// Frame i is frame i mod len(Frames) of the list.
func (r *Replayer) Times() []FrameTime {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.times == nil {
		return nil
	}
	out := make([]FrameTime, r.state.word(paceSent).Load())
	for i := range out {
		out[i] = FrameTime{Due: r.times.word(2 * i).Load(), Sent: r.times.word(2*i + 1).Load()}
	}
	return out
}

// Stop makes Run return within some 20 ms, with exact counts. It may be called at any time, from any goroutine, more than
// once, and does not wait.
func (r *Replayer) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopped || r.closed {
		return
	}
	r.stopped = true
	r.state.word(paceStop).Store(1) // pairs with READ_ONCE(s->stop) in replay
	close(r.stop)
}

// Close stops a run, waits for its end, and unloads the program. It may be called twice.
func (r *Replayer) Close() error {
	r.Stop()
	r.mu.Lock()
	done := r.done
	r.mu.Unlock()
	if done != nil {
		<-done
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil
	}
	r.closed = true
	return r.unload()
}

func (r *Replayer) unload() error {
	var errs []error
	for _, m := range []*mapMemory{r.state, r.times} {
		if m != nil {
			errs = append(errs, m.close())
		}
	}
	return errors.Join(append(errs, r.obj.Close())...)
}

// Run sends until the last frame of the last loop, or Stop. It occupies the calling thread, which must be in the network
// namespace of the sending interface, and should be pinned to a core of its own: on veth the core picks the receiving queue.
func (r *Replayer) Run() (ReplayerResult, error) {
	r.mu.Lock()
	if r.closed {
		r.mu.Unlock()
		return ReplayerResult{}, fmt.Errorf("run replayer: %w", os.ErrClosed)
	}
	if r.started {
		r.mu.Unlock()
		return ReplayerResult{}, errors.New("run replayer: it has run already")
	}
	r.started = true
	r.done = make(chan struct{})
	r.mu.Unlock()
	defer close(r.done)

	runs, err := liveRun{prog: r.obj.Replay.FD(), frame: r.frame, batch: r.o.Batch, finished: r.finished,
		repeat: r.repeatNow, untilDone: r.untilDone, stop: r.stop}.drive()
	s := r.read()
	if n := r.state.word(paceFailed).Load(); err == nil && n > 0 {
		err = fmt.Errorf("frame %d could not be shaped", s.Sent+1)
	}
	if err != nil {
		err = fmt.Errorf("run replayer: %w", err)
	}
	return ReplayerResult{ReplayerState: s, Stopped: !s.Done, Runs: runs}, err
}

func (r *Replayer) finished() bool {
	return r.state.word(paceDone).Load() != 0 || r.state.word(paceStop).Load() != 0
}

// repeatNow is how many program runs the next system call is to make. Without a schedule each sends, and so the call ends
// by itself; anything else is ended by liveRun's watch.
func (r *Replayer) repeatNow() uint32 {
	if !r.paced && r.o.Count > 0 {
		return uint32(min(uint64(r.repeat), r.o.Count-r.state.word(paceSent).Load()))
	}
	return r.repeat
}

// untilDone estimates how long the rest will take.
func (r *Replayer) untilDone() time.Duration {
	s := r.read()
	switch {
	case r.o.Count == 0:
		return time.Hour
	case s.Sent >= r.o.Count:
		return 0
	case r.length > 0:
		return r.length - time.Duration(s.last-s.Start)
	case r.o.Rate > 0:
		return time.Duration(float64(r.o.Count-s.Sent) / (r.o.Rate * r.o.CatchUp) * 1e9)
	}
	return time.Duration(float64(r.o.Count-s.Sent) / 1e7 * 1e9)
}
