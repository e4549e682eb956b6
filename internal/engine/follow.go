// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/workload"
)

// followPart is the SUT of replay: an arm's workers, each following sessions on a thread of its own.
type followPart struct {
	p         agent.Prepare
	set       *set
	loops     []*workload.Follow
	reader    *measure.Reader
	rate      measure.TickRate
	cpu       *cpuAccount
	continued chan os.Signal

	begin   chan struct{} // closed when the loops may run
	wg      sync.WaitGroup
	errMu   sync.Mutex // guards errs
	errs    []error
	mu      sync.Mutex // guards started and done
	started bool
	done    bool
}

func newFollow(p agent.Prepare) (_ *followPart, got agent.Prepared, err error) {
	f := &followPart{p: p, begin: make(chan struct{}), continued: make(chan os.Signal, 64)}
	defer func() {
		if err != nil {
			_ = f.Close()
		}
	}()
	if len(p.CPUs) == 0 || p.Replay == nil {
		return nil, got, errors.New("follow: no CPUs or no capture given")
	}
	if f.rate, err = measure.CalibrateTicks(20 * time.Millisecond); err != nil {
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
		o := workload.FollowOptions{Receiver: w, Run: p.Run, Frames: p.Replay.Frames, Batch: f.set.batch, Spins: f.set.spins, Ticks: f.rate}
		if d := measure.NewWork(work, f.rate); !d.None() {
			o.Work = d
		}
		l, err := workload.NewFollow(o)
		if err != nil {
			return nil, got, err
		}
		f.loops = append(f.loops, l)
	}
	if f.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = f.set.effective, f.set.notes
	return f, got, nil
}

// Start puts every loop on its thread and CPU, starts the CPU account, and lets them run.
func (f *followPart) Start() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.started {
		return errors.New("start: started already")
	}
	f.started = true
	tids := make(chan int, len(f.loops))
	for i, l := range f.loops {
		cpu := f.p.CPUs[i%len(f.p.CPUs)]
		f.wg.Go(func() {
			f.fail(onCPU(cpu, func() error {
				tids <- unix.Gettid()
				<-f.begin
				return l.Run()
			}))
		})
	}
	ids := make([]int, 0, len(f.loops))
	for range f.loops {
		select {
		case id := <-tids:
			ids = append(ids, id)
		case <-time.After(5 * time.Second):
			close(f.begin)
			return errors.Join(errors.New("start: a worker's thread does not come up"), f.failures())
		}
	}
	f.cpu = newCPUAccount(ids, f.p.NAPI, f.p.CPUs)
	err := f.cpu.read()
	signal.Notify(f.continued, unix.SIGCONT)
	close(f.begin)
	return err
}

// fail notes why a loop ended.
func (f *followPart) fail(err error) {
	if err == nil {
		return
	}
	f.errMu.Lock()
	defer f.errMu.Unlock()
	f.errs = append(f.errs, err)
}

func (f *followPart) failures() error {
	f.errMu.Lock()
	defer f.errMu.Unlock()
	return errors.Join(f.errs...)
}

// Counters reads the device, the namespace and the engine.
func (f *followPart) Counters() (map[string]uint64, error) {
	s, err := f.reader.Read()
	if err != nil {
		return nil, err
	}
	c, err := f.set.counters()
	if err != nil {
		return nil, err
	}
	maps.Copy(s.Counters, c)
	return s.Counters, nil
}

func (f *followPart) Live() agent.Live {
	var l agent.Live
	for _, loop := range f.loops {
		l.Received += loop.Live()
	}
	return l
}

// stop ends the loops and waits for them.
func (f *followPart) stop() error {
	f.mu.Lock()
	started, done := f.started, f.done
	f.done = true
	f.mu.Unlock()
	if !started || done {
		return nil
	}
	f.cpu.note()
	var errs []error
	for i, l := range f.loops {
		l.Stop()
		errs = append(errs, f.set.workers[i].Wake())
	}
	f.wg.Wait()
	return errors.Join(append(errs, f.failures())...)
}

// Finish stops the loops and tells what each saw. The account of the CPU ends before anything else is done.
func (f *followPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := f.stop(); err != nil {
		return t, err
	}
	var err error
	if f.cpu != nil {
		if t.CPU, err = f.cpu.end(f.rate); err != nil {
			return t, err
		}
	}
	t.Stopped = uint64(len(f.continued))
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
	var errs []error
	signal.Stop(f.continued)
	if f.set != nil {
		errs = append(errs, f.stop(), f.set.close())
	}
	errs = append(errs, f.cpu.close())
	if f.reader != nil {
		errs = append(errs, f.reader.Close())
	}
	return errors.Join(errs...)
}
