// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"time"
)

// Limits of a replayer.
const (
	MinReplayFrame = ethLen       // bytes on the driver's side, without FCS
	MaxReplayFrame = 3408         // FRAME_MAX of c/replay.bpf.c: what fits a live frame's page
	MaxReplayBytes = 1 << 30      // of all frames together; they are held in kernel memory
	maxRecorded    = 1 << 30 / 16 // frames whose times RecordTimes keeps
)

// ReplayerOptions shapes a replayer: a list of frames, sent in order, once or more often.
type ReplayerOptions struct {
	IfIndex int      // sending interface, in the network namespace of the thread that calls Run
	Frames  [][]byte // as handed to the driver (no FCS), each MinReplayFrame to MaxReplayFrame bytes; copied by NewReplayer

	// Due (optional) is when each frame is to be sent, after the start of its loop; it must not fall. All frames of all loops
	// are on one absolute schedule, so that delays do not add up.
	Due []time.Duration
	// Period is from the start of a loop to the start of the next, with Due; 0 means the last frame's time and one mean gap.
	Period time.Duration
	Rate   float64 // frames per second, without Due; 0 = as fast as it goes
	Loops  int     // how often the list is sent; 0 means 1, -1 until stopped
	Count  uint64  // frames in all, which may end within a loop; 0 means what Loops says

	Batch    int     // frames per flush, 1..64; 0 means 64. At low rates 64 adds some us to a frame's time, 1 adds least
	Patience int     // as GeneratorOptions.Patience
	CatchUp  float64 // highest rate after a stall, as a multiple of Rate, at least 1; 0 means 1.25
	// PeakRate is the highest rate in frames per second with Due, after a stall or where the list itself is denser, once
	// Burst is used up; 0 means 1e6. Frames that it holds back are late, and counted so.
	PeakRate float64
	Burst    int           // frames sent back to back before CatchUp or PeakRate limits; 0 means 96
	MaxLag   time.Duration // how far the schedule may fall behind before it is moved on; 0 means 50 ms

	// LoopAt is where in every frame the number of its loop is written, from 0, the low 16 bits in network order; 0 means nowhere.
	// Checksums are not repaired: it is for the Ethernet header.
	LoopAt int

	// RecordTimes keeps each frame's intended and actual time, for Times. It needs an end: Loops or Count.
	RecordTimes bool
}

// withDefaults fills in the zero values and refuses what cannot be.
func (o ReplayerOptions) withDefaults() (ReplayerOptions, error) {
	bad := func(format string, args ...any) (ReplayerOptions, error) {
		return o, fmt.Errorf("replayer: "+format, args...)
	}
	if o.IfIndex < 1 {
		return bad("IfIndex is %d", o.IfIndex)
	}
	n := len(o.Frames)
	if n == 0 {
		return bad("no frames")
	}
	if n > 1<<26 {
		return bad("%d frames, at most %d", n, 1<<26)
	}
	var sum int
	for i, f := range o.Frames {
		if len(f) < MinReplayFrame || len(f) > MaxReplayFrame {
			return bad("frame %d has %d bytes, want %d..%d: live frames hold no more, use another sender", i+1, len(f), MinReplayFrame, MaxReplayFrame)
		}
		if sum += len(f); sum > MaxReplayBytes {
			return bad("the frames have more than %d bytes together", MaxReplayBytes)
		}
	}
	setDefault(&o.Loops, 1)
	setDefault(&o.PeakRate, 1e6)
	if o.Loops < -1 {
		return bad("Loops is %d", o.Loops)
	}
	if o.Count == 0 && o.Loops > 0 {
		o.Count = uint64(o.Loops) * uint64(n)
	}
	p, err := o.pace().withDefaults("replayer")
	if err != nil {
		return o, err
	}
	o.Batch, o.CatchUp, o.Burst, o.MaxLag = p.batch, p.catchUp, p.burst, p.maxLag
	if !(o.PeakRate >= 1 && o.PeakRate <= 1e9) {
		return bad("PeakRate is %g, want 1..1e9 frames per second", o.PeakRate)
	}
	if o.LoopAt < 0 || o.LoopAt > MinReplayFrame-2 {
		return bad("LoopAt is %d, want 0..%d", o.LoopAt, MinReplayFrame-2)
	}
	if o.RecordTimes && (o.Count == 0 || o.Count > maxRecorded) {
		return bad("RecordTimes keeps 1..%d frames, and this run has %d (0 is no end)", maxRecorded, o.Count)
	}
	return o.withSchedule()
}

// withSchedule checks Due and Period.
func (o ReplayerOptions) withSchedule() (ReplayerOptions, error) {
	bad := func(format string, args ...any) (ReplayerOptions, error) {
		return o, fmt.Errorf("replayer: "+format, args...)
	}
	n := len(o.Frames)
	if o.Due == nil {
		if o.Period != 0 {
			return bad("Period needs Due")
		}
		return o, nil
	}
	if len(o.Due) != n {
		return bad("%d frames, but %d times in Due", n, len(o.Due))
	}
	if o.Rate != 0 {
		return bad("Rate and Due exclude each other")
	}
	last := time.Duration(0)
	for i, d := range o.Due {
		if d < last {
			return bad("Due falls from %s to %s at frame %d", last, d, i+1)
		}
		last = d
	}
	if o.Period == 0 {
		o.Period = last
		if n > 1 {
			o.Period += (last - o.Due[0]) / time.Duration(n-1)
		}
	}
	if o.Period < last {
		return bad("Period is %s, but the last frame is due after %s", o.Period, last)
	}
	return o, nil
}

// length is the time from the start to the last frame's, with Due and an end; else 0.
func (o ReplayerOptions) length() time.Duration {
	if o.Due == nil || o.Count == 0 {
		return 0
	}
	last, n := o.Count-1, uint64(len(o.Due))
	return time.Duration(last/n)*o.Period + o.Due[last%n]
}

func (o ReplayerOptions) pace() pace {
	return pace{rate: o.Rate, batch: o.Batch, patience: o.Patience, catchUp: o.CatchUp, burst: o.Burst, maxLag: o.MaxLag}
}

// checkDevice refuses an interface that cannot send these frames.
func (o ReplayerOptions) checkDevice() error {
	dev, err := sendingDevice(o.IfIndex)
	if err != nil {
		return fmt.Errorf("replayer: %w", err)
	}
	for i, f := range o.Frames {
		if err := checkMTU(dev, len(f)); err != nil {
			return fmt.Errorf("replayer: frame %d: %w", i+1, err)
		}
	}
	return nil
}
