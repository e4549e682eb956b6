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
	"twopath/internal/packet"
	"twopath/internal/workload"
)

// receivePart is the SUT of udp-rx: an arm's workers, each with its loop on a thread of its own.
type receivePart struct {
	p      agent.Prepare
	set    *set
	loops  []loop
	reader *measure.Reader
	rate   measure.TickRate
	cpu    *cpuAccount

	// continued gets a SIGCONT for each time this process was stopped and let go on. A stopped reader looks to every
	// counter like one that sleeps, while its queues overflow.
	continued chan os.Signal

	begin   chan struct{} // closed when the loops may run
	wg      sync.WaitGroup
	errMu   sync.Mutex // guards errs
	errs    []error
	mu      sync.Mutex // guards started and done
	started bool
	done    bool
}

// loop is a worker's loop in workload.
type loop interface {
	Run() error
	Stop()
	Live() uint64
	Result() workload.ReceiveResult
}

// open makes the set of the arm that p names.
func open(p agent.Prepare) (*set, error) {
	switch {
	case p.Engine == compare.XDP && p.Variant == "asavie":
		return openAsavie(p)
	case p.Engine == compare.XDP:
		return openXDP(p)
	case p.Engine == compare.Kernel:
		return openKernel(p)
	}
	return nil, fmt.Errorf("no engine %q", p.Engine)
}

func newReceive(p agent.Prepare) (*receivePart, agent.Prepared, error) {
	return newReaders(p, open, func(w worker, o workload.ReceiveOptions) (loop, error) {
		o.Receiver = w
		return workload.NewReceive(o)
	})
}

// newReaders opens an arm and makes a loop for each of its workers.
func newReaders(p agent.Prepare, open func(agent.Prepare) (*set, error), loopOf func(worker, workload.ReceiveOptions) (loop, error)) (_ *receivePart, got agent.Prepared, err error) {
	r := &receivePart{p: p, begin: make(chan struct{}), continued: make(chan os.Signal, 64)}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if len(p.CPUs) == 0 {
		return nil, got, errors.New("receive: no CPUs given")
	}
	if r.rate, err = measure.CalibrateTicks(20 * time.Millisecond); err != nil {
		return nil, got, err
	}
	if r.set, err = open(p); err != nil {
		return nil, got, err
	}
	work, err := compare.ParseWork(p.Work)
	if err != nil {
		return nil, got, err
	}
	if p.Fragments != nil {
		if err := r.set.reassemble(p); err != nil {
			return nil, got, err
		}
	}
	for i, w := range r.set.workers {
		o := workload.ReceiveOptions{Frames: r.set.frames, Run: p.Run, Streams: p.Streams, Batch: r.set.batch, Content: p.Content, Every: p.Every,
			Spins: r.set.spins, Ticks: r.rate, Verifier: packet.Verifier{DstPort: p.Flow.DstPort, Checksum: p.Options["csum"] != "off"}}
		if i < len(r.set.assemblers) {
			o.Assembler = r.set.assemblers[i]
		}
		if d := measure.NewWork(work, r.rate); !d.None() {
			o.Work = d
		}
		l, err := loopOf(w, o)
		if err != nil {
			return nil, got, err
		}
		r.loops = append(r.loops, l)
	}
	if r.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = r.set.effective, r.set.notes
	return r, got, nil
}

// Start puts every loop on its thread and CPU, starts the CPU account, and lets them run.
func (r *receivePart) Start() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started {
		return errors.New("start: started already")
	}
	r.started = true
	tids := make(chan int, len(r.loops))
	for i, l := range r.loops {
		cpu := r.p.CPUs[i%len(r.p.CPUs)]
		r.wg.Go(func() {
			r.fail(onCPU(cpu, func() error {
				tids <- unix.Gettid()
				<-r.begin
				return l.Run()
			}))
		})
	}
	ids := make([]int, 0, len(r.loops))
	for range r.loops {
		select {
		case id := <-tids:
			ids = append(ids, id)
		case <-time.After(5 * time.Second):
			close(r.begin)
			return errors.Join(errors.New("start: a reader's thread does not come up"), r.failures())
		}
	}
	r.cpu = newCPUAccount(ids, r.p.NAPI, r.p.CPUs)
	err := r.cpu.read()
	signal.Notify(r.continued, unix.SIGCONT)
	close(r.begin)
	return err
}

// fail notes why a loop ended.
func (r *receivePart) fail(err error) {
	if err == nil {
		return
	}
	r.errMu.Lock()
	defer r.errMu.Unlock()
	r.errs = append(r.errs, err)
}

func (r *receivePart) failures() error {
	r.errMu.Lock()
	defer r.errMu.Unlock()
	return errors.Join(r.errs...)
}

// Counters reads the device, the namespace and the engine. Before Start the loops have counted nothing.
func (r *receivePart) Counters() (map[string]uint64, error) {
	s, err := r.reader.Read()
	if err != nil {
		return nil, err
	}
	c, err := r.set.counters()
	if err != nil {
		return nil, err
	}
	maps.Copy(s.Counters, c)
	r.mu.Lock()
	running := r.started && !r.done
	r.mu.Unlock()
	if r.set.idle != nil && !running {
		if c, err = r.set.idle(); err != nil {
			return nil, err
		}
		maps.Copy(s.Counters, c)
	}
	return s.Counters, nil
}

func (r *receivePart) Live() agent.Live {
	var l agent.Live
	for _, loop := range r.loops {
		l.Received += loop.Live()
	}
	return l
}

// stop ends the loops and waits for them.
func (r *receivePart) stop() error {
	r.mu.Lock()
	started, done := r.started, r.done
	r.done = true
	r.mu.Unlock()
	if !started || done {
		return nil
	}
	r.cpu.note()
	var errs []error
	for i, l := range r.loops {
		l.Stop()
		errs = append(errs, r.set.workers[i].Wake())
	}
	r.wg.Wait()
	return errors.Join(append(errs, r.failures())...)
}

// Finish stops the loops and adds up what they received. The account of the CPU ends before anything else is done.
func (r *receivePart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := r.stop(); err != nil {
		return t, err
	}
	var err error
	if r.cpu != nil {
		if t.CPU, err = r.cpu.end(r.rate); err != nil {
			return t, err
		}
	}
	t.Stopped = uint64(len(r.continued))
	t.Counters = r.set.own()
	t.Highest = make([]uint64, max(r.p.Streams, 1))
	for i, l := range r.loops {
		add(&t, l.Result())
		q, err := r.set.workers[i].Queued()
		if err != nil {
			return t, fmt.Errorf("count what is queued: %w", err)
		}
		t.Queued += q
	}
	t.ByDevice = r.set.device
	return t, nil
}

func add(t *agent.Received, w workload.ReceiveResult) {
	tally := w.Streams.Tally()
	t.Received += w.Received
	t.Unique += tally.Unique
	t.Duplicate += tally.Duplicate
	t.Reordered += tally.Reordered
	t.Late += tally.Late + tally.Unknown
	t.Foreign += w.Foreign
	t.WrongRun += w.WrongRun
	t.Short += w.Short
	t.CorruptIP += w.CorruptIP
	t.CorruptUDP += w.CorruptUDP
	t.BadContent += w.BadContent
	t.Bytes += w.Bytes
	t.EmptyPolls += w.EmptyPolls
	t.SpinNS += w.SpinNS
	t.StallNS += w.StallNS
	t.MaxStallNS = max(t.MaxStallNS, w.MaxStallNS)
	if w.FirstNS != 0 && (t.FirstNS == 0 || w.FirstNS < t.FirstNS) {
		t.FirstNS = w.FirstNS
	}
	t.LastNS = max(t.LastNS, w.LastNS)
	for _, m := range w.Milestones {
		t.Milestones = append(t.Milestones, agent.Milestone{Worker: len(t.PerWorker), Packets: m.Packets, Bytes: m.Bytes, ElapsedNS: m.NS, Waits: m.Waits, Calls: m.Calls})
	}
	t.PerWorker = append(t.PerWorker, w.Received)
	for i := range t.Highest {
		t.Highest[i] = max(t.Highest[i], w.Streams.Stream(i).Next())
	}
}

func (r *receivePart) Close() error {
	var errs []error
	signal.Stop(r.continued)
	if r.set != nil {
		errs = append(errs, r.stop(), r.set.close())
	}
	errs = append(errs, r.cpu.close())
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	return errors.Join(errs...)
}

func selfPID() int { return os.Getpid() }
