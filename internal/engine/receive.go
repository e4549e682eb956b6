// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"os"

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
	crew   *crew
}

// loop is a worker's loop in workload.
type loop interface {
	runner
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
	r := &receivePart{p: p}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	if len(p.CPUs) == 0 {
		return nil, got, errors.New("receive: no CPUs given")
	}
	if r.crew, err = newCrew(p); err != nil {
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
			Spins: r.set.spins, Ticks: r.crew.rate, Verifier: packet.Verifier{DstPort: p.Flow.DstPort, Checksum: p.Options["csum"] != "off"}}
		if i < len(r.set.assemblers) {
			o.Assembler = r.set.assemblers[i]
		}
		if d := measure.NewWork(work, r.crew.rate); !d.None() {
			o.Work = d
		}
		l, err := loopOf(w, o)
		if err != nil {
			return nil, got, err
		}
		r.loops = append(r.loops, l)
		r.crew.loops = append(r.crew.loops, l)
	}
	r.crew.wake = func(i int) error { return r.set.workers[i].Wake() }
	if r.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = r.set.effective, r.set.notes
	return r, got, nil
}

// Start lets the loops run.
func (r *receivePart) Start() error { return r.crew.start() }

// Counters reads the device, the namespace and the engine. Before Start the loops have counted nothing.
func (r *receivePart) Counters() (map[string]uint64, error) {
	c, err := r.set.counters()
	if err != nil {
		return nil, err
	}
	all, err := withOwn(r.reader, c)
	if err != nil || r.set.idle == nil || r.crew.running() {
		return all, err
	}
	if c, err = r.set.idle(); err != nil {
		return nil, err
	}
	maps.Copy(all, c)
	return all, nil
}

func (r *receivePart) Live() agent.Live {
	var l agent.Live
	for _, loop := range r.loops {
		l.Received += loop.Live()
	}
	return l
}

// Finish stops the loops and adds up what they received. The account of the CPU ends before anything else is done.
func (r *receivePart) Finish() (agent.Received, error) {
	var t agent.Received
	err := r.crew.stop()
	if err != nil {
		return t, err
	}
	if t.CPU, err = r.crew.account(); err != nil {
		return t, err
	}
	t.Stopped = r.crew.stops()
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
	errs := []error{r.crew.close()}
	if r.set != nil {
		errs = append(errs, r.set.close())
	}
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	return errors.Join(errs...)
}

func selfPID() int { return os.Getpid() }
