// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/workload"
)

// followPart is the SUT of replay: an arm's workers, each following sessions on a thread of its own.
type followPart struct {
	set    *set
	loops  []*workload.Follow
	reader *measure.Reader
	crew   *crew
}

func newFollow(p agent.Prepare) (_ *followPart, got agent.Prepared, err error) {
	f := &followPart{}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if len(p.CPUs) == 0 || p.Replay == nil {
		return nil, got, errors.New("follow: no CPUs or no capture given")
	}
	if f.crew, err = newCrew(p); err != nil {
		return nil, got, err
	}
	switch p.Engine {
	case compare.XDP:
		f.set, err = openXDPFollow(p)
	case compare.Kernel:
		f.set, err = openKernelFollow(p)
	default:
		err = fmt.Errorf("no engine %q", p.Engine)
	}
	if err != nil {
		return nil, got, err
	}
	work, err := compare.ParseWork(p.Work)
	if err != nil {
		return nil, got, err
	}
	for _, w := range f.set.workers {
		o := workload.FollowOptions{Receiver: w, Run: p.Run, Frames: p.Replay.Frames, Batch: f.set.batch, Spins: f.set.spins, Ticks: f.crew.rate}
		if d := measure.NewWork(work, f.crew.rate); !d.None() {
			o.Work = d
		}
		l, err := workload.NewFollow(o)
		if err != nil {
			return nil, got, err
		}
		f.loops = append(f.loops, l)
		f.crew.loops = append(f.crew.loops, l)
	}
	f.crew.wake = func(i int) error { return f.set.workers[i].Wake() }
	if f.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = f.set.effective, f.set.notes
	return f, got, nil
}

// Start lets the loops run.
func (f *followPart) Start() error { return f.crew.start() }

// Counters reads the device, the namespace and the engine.
func (f *followPart) Counters() (map[string]uint64, error) {
	c, err := f.set.counters()
	if err != nil {
		return nil, err
	}
	return withOwn(f.reader, c)
}

func (f *followPart) Live() agent.Live {
	var l agent.Live
	for _, loop := range f.loops {
		l.Received += loop.Live()
	}
	return l
}

// Finish stops the loops and tells what each saw. The account of the CPU ends before anything else is done.
func (f *followPart) Finish() (agent.Received, error) {
	var t agent.Received
	err := f.crew.stop()
	if err != nil {
		return t, err
	}
	if t.CPU, err = f.crew.account(); err != nil {
		return t, err
	}
	t.Stopped = f.crew.stops()
	t.Counters = f.set.own()
	t.Followed = &agent.Followed{Lines: map[string]uint64{}}
	for i, l := range f.loops {
		r := l.Result()
		t.Received += r.Received
		t.Unique += r.Received
		t.Bytes += r.Bytes
		t.Foreign += r.Foreign
		t.EmptyPolls += r.EmptyPolls
		t.SpinNS += r.SpinNS
		t.StallNS += r.StallNS
		t.MaxStallNS = max(t.MaxStallNS, r.MaxStallNS)
		if r.FirstNS != 0 && (t.FirstNS == 0 || r.FirstNS < t.FirstNS) {
			t.FirstNS = r.FirstNS
		}
		t.LastNS = max(t.LastNS, r.LastNS)
		t.PerWorker = append(t.PerWorker, r.Received)
		s := r.Sessions
		t.Followed.Workers = append(t.Followed.Workers, agent.FollowedWorker{Received: r.Received, Loops: r.Loops, TCP: s.TCP, UDP: s.UDP, Other: s.Other,
			Closed: s.Closed, Reset: s.Reset, Untracked: s.Untracked + r.Late, Requests: s.Requests, Cold: r.Cold, ColdTicks: r.ColdTicks, Warm: r.Warm, WarmTicks: r.WarmTicks})
		for line, n := range r.Lines {
			t.Followed.Lines[line] += n
		}
		q, err := f.set.workers[i].Queued()
		if err != nil {
			return t, fmt.Errorf("count what is queued: %w", err)
		}
		t.Queued += q
	}
	return t, nil
}

func (f *followPart) Close() error {
	errs := []error{f.crew.close()}
	if f.set != nil {
		errs = append(errs, f.set.close())
	}
	if f.reader != nil {
		errs = append(errs, f.reader.Close())
	}
	return errors.Join(errs...)
}
