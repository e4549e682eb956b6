// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// Replayer sends a list of frames from one core: XDP live frames (Linux 5.18), paced by the program itself, each frame of the
// list once per loop and in order. It runs once.
type Replayer struct {
	sender
	o      ReplayerOptions
	obj    replayObjects
	times  *mapMemory    // nil without RecordTimes
	frame  []byte        // the longest one: pages only ever shrink
	paced  bool          // there are program runs that only wait
	length time.Duration // from the start to the last frame's time, with Due
}

// ReplayerState is what a replayer has done so far. Sent tells how far it is: Sent / len(Frames) whole loops, and of the
// next one the first Sent % len(Frames) frames.
type ReplayerState struct {
	Pacing        // Done is all frames of all loops sent
	Bytes  uint64 // of the frames sent, without FCS

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
	r := &Replayer{o: o, paced: o.Rate > 0 || o.Due != nil, length: o.length()}
	if err := load("replayer", spec, &r.obj); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("replayer: %w", err), r.unload())
		}
	}()
	state, err := mmapMap(r.obj.State)
	if err != nil {
		return nil, err
	}
	r.init(state, 1, replayStateWords)
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
		replayVarLimit: o.Count, replayVarLoopAt: uint32(o.LoopAt),
	}
	if o.RecordTimes {
		v[replayVarRecorded] = uint32(o.Count)
	}
	if o.Due != nil {
		v[replayVarScheduled] = uint32(1)
		v[replayVarPeriodNs] = uint64(o.Period)
		v[replayVarCatchup] = uint64(1e9 / o.PeakRate * (1 << 12))
	}
	return o.pace().variables(v)
}

// State returns what was done so far; safe from any goroutine, and cheap. Its numbers may be some frames apart.
func (r *Replayer) State() ReplayerState { return ifOpen(&r.sender, r.read) }

func (r *Replayer) read() ReplayerState {
	s := snapshot[replayReplayState](r.state, 0)
	t := ReplayerState{Pacing: pacingOf(generatePace(s.Pace)), Bytes: s.Bytes, last: s.Pace.LastNs}
	t.Done = t.Done && t.Failed == 0
	return t
}

// Times returns the times of the frames sent so far, in the order of sending; nil without RecordTimes or after Close.
// Frame i is frame i mod len(Frames) of the list.
func (r *Replayer) Times() []FrameTime {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || r.times == nil {
		return nil
	}
	out := make([]FrameTime, r.word(0, paceSent))
	for i := range out {
		out[i] = FrameTime{Due: r.times.word(2 * i).Load(), Sent: r.times.word(2*i + 1).Load()}
	}
	return out
}

// Close stops a run, waits for its end, and unloads the program. It may be called twice.
func (r *Replayer) Close() error { return r.close(r.unload) }

func (r *Replayer) unload() error {
	return errors.Join(r.state.close(), r.times.close(), r.obj.Close())
}

// Run sends until the last frame of the last loop, or Stop. It occupies the calling thread, which must be in the network
// namespace of the sending interface, and should be pinned to a core of its own: on veth the core picks the receiving queue.
func (r *Replayer) Run() (res ReplayerResult, err error) {
	l := sending{prog: r.obj.Replay.FD(), frame: r.frame, batch: r.o.Batch, untilDone: r.untilDone}
	if !r.paced {
		l.flood = r.o.Count
	}
	res.Runs, err = r.run(0, l, func() {
		res.ReplayerState = r.read()
		res.Stopped = !res.Done
	})
	if err == nil && res.Failed > 0 {
		err = fmt.Errorf("frame %d could not be shaped", res.Sent+1)
	}
	if err != nil {
		err = fmt.Errorf("run replayer: %w", err)
	}
	return res, err
}

// untilDone estimates how long the rest will take.
func (r *Replayer) untilDone() time.Duration {
	s := r.read()
	if r.length > 0 && s.Sent < r.o.Count {
		return r.length - time.Duration(s.last-s.Start)
	}
	return r.left(0, r.o.Count, r.o.Rate*r.o.CatchUp)
}
