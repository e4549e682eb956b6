// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/netstack/tcp"
	"twopath/internal/workload"
)

// tcpWorker is one end of a connection test on one thread.
type tcpWorker interface {
	connected() agent.Connected
	Wake() error
	Close() error
}

// tcpSet is an opened engine: its workers and what they share.
type tcpSet struct {
	workers   []tcpWorker
	effective map[string]any
	notes     []string
	counters  func() (map[string]uint64, error)
	undo      []func() error
}

func (s *tcpSet) close() error {
	var errs []error
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	for _, w := range s.workers {
		errs = append(errs, w.Close())
	}
	s.undo, s.workers = nil, nil
	return errors.Join(errs...)
}

// openTCP opens an end of a connection test on the engine that p names.
func openTCP(p agent.Prepare, role tcp.Role) (*tcpSet, error) {
	if p.Connect == nil || len(p.CPUs) == 0 {
		return nil, errors.New("connect: no load or no CPUs given")
	}
	n := max(p.Queues, 1)
	if p.Engine == compare.XDP {
		return openXDPTCP(p, role, n)
	}
	open := openKernelServers
	if role == tcp.Client {
		open = openKernelDialers
	}
	workers, err := open(p, n)
	s := &tcpSet{workers: workers, counters: func() (map[string]uint64, error) { return nil, nil },
		effective: map[string]any{"attach": "none", "wait": "block", "sockets": n}}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
	}
	return s, nil
}

// servePart is the SUT of a connection test.
type servePart struct {
	set    *tcpSet
	crew   *crew
	reader *measure.Reader
}

func newServe(p agent.Prepare) (_ *servePart, got agent.Prepared, err error) {
	s := &servePart{}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	if s.crew, err = newCrew(p); err != nil {
		return nil, got, err
	}
	if s.set, err = openTCP(p, tcp.Server); err != nil {
		return nil, got, err
	}
	for _, w := range s.set.workers {
		s.crew.loops = append(s.crew.loops, &workload.ServeLoop{S: w.(workload.Server)})
	}
	s.crew.wake = func(i int) error { return s.set.workers[i].Wake() }
	if s.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = s.set.effective, s.set.notes
	return s, got, nil
}

func (s *servePart) Start() error { return s.crew.start() }

func (s *servePart) Counters() (map[string]uint64, error) { return tcpCounters(s.reader, s.set) }

func tcpCounters(r *measure.Reader, set *tcpSet) (map[string]uint64, error) {
	own, err := set.counters()
	if err != nil {
		return nil, err
	}
	return withOwn(r, own)
}

// Live is not known while the workers run: their counts are theirs.
func (s *servePart) Live() agent.Live { return agent.Live{} }

// Finish stops serving and tells what was served.
func (s *servePart) Finish() (agent.Received, error) {
	if err := s.crew.stop(); err != nil {
		return agent.Received{}, err
	}
	cpu, err := s.crew.account()
	if err != nil {
		return agent.Received{}, err
	}
	c := total(s.set.workers)
	return agent.Received{Received: c.Responses, Unique: c.Responses, CPU: cpu, Stopped: s.crew.stops(), Connected: &c}, nil
}

// total adds up what the workers of one end saw.
func total(workers []tcpWorker) agent.Connected {
	t := agent.Connected{Errors: map[string]uint64{}, Counters: map[string]uint64{}, Drained: true}
	for _, w := range workers {
		c := w.connected()
		t.Opened += c.Opened
		t.Established += c.Established
		t.Completed += c.Completed
		t.Open += c.Open
		t.Skipped += c.Skipped
		t.Requests += c.Requests
		t.Responses += c.Responses
		t.BytesIn += c.BytesIn
		t.BytesOut += c.BytesOut
		for k, v := range c.Errors {
			t.Errors[k] += v
		}
		for k, v := range c.Counters {
			t.Counters[k] += v
		}
	}
	return t
}

func (s *servePart) Close() error { return closeTCP(s.crew, s.set, s.reader) }

func closeTCP(c *crew, set *tcpSet, r *measure.Reader) error {
	errs := []error{c.close()}
	if set != nil {
		errs = append(errs, set.close())
	}
	if r != nil {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

// dialPart is the peer of a connection test.
type dialPart struct {
	set    *tcpSet
	loops  []*workload.DialLoop
	crew   *crew
	reader *measure.Reader
	limit  time.Duration // ends a load without a count; 0 is none
}

func newDial(p agent.Prepare) (_ *dialPart, got agent.Prepared, err error) {
	d := &dialPart{}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	if d.crew, err = newCrew(p); err != nil {
		return nil, got, err
	}
	if d.set, err = openTCP(p, tcp.Client); err != nil {
		return nil, got, err
	}
	c, n := p.Connect, uint64(len(d.set.workers))
	if c.Count == 0 && c.Seconds <= 0 {
		return nil, got, errors.New("dial: the load has neither count nor time")
	}
	d.limit = time.Duration(c.Seconds * float64(time.Second))
	for i, w := range d.set.workers {
		o := workload.DialOptions{Dialer: w.(workload.Dialer), Concurrent: max(c.Concurrent/int(n), 1), Rate: c.Rate / float64(n), Count: c.Count / n}
		if uint64(i) < c.Count%n {
			o.Count++
		}
		l, err := workload.NewDialLoop(o)
		if err != nil {
			return nil, got, err
		}
		d.loops = append(d.loops, l)
		d.crew.loops = append(d.crew.loops, l)
	}
	if d.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = d.set.effective, d.set.notes
	return d, got, nil
}

func (d *dialPart) Start() error { return nil }

func (d *dialPart) Counters() (map[string]uint64, error) { return tcpCounters(d.reader, d.set) }

func (d *dialPart) Live() agent.Live {
	var l agent.Live
	for _, loop := range d.loops {
		l.Received += loop.Live()
	}
	return l
}

func (d *dialPart) Stop() { d.crew.quit() }

// Run opens all connections and waits for their ends.
func (d *dialPart) Run() (agent.Generated, error) {
	if err := d.crew.start(); err != nil {
		return agent.Generated{}, errors.Join(append(d.crew.wait(), err)...)
	}
	if d.limit > 0 {
		defer time.AfterFunc(d.limit, d.Stop).Stop()
	}
	if err := errors.Join(d.crew.wait()...); err != nil {
		return agent.Generated{}, err
	}
	cpu, err := d.crew.account()
	if err != nil {
		return agent.Generated{}, err
	}
	c := total(d.set.workers)
	c.CPU = cpu
	g := agent.Generated{Sent: c.Opened, Connected: &c}
	for _, l := range d.loops {
		if g.StartNS == 0 || l.Start < g.StartNS {
			g.StartNS = l.Start
		}
		g.EndNS = max(g.EndNS, l.End)
		c.FinishNS = max(c.FinishNS, l.Finish)
		c.Late += l.Late
		c.MaxLateNS = max(c.MaxLateNS, l.MaxLate)
		c.Drained = c.Drained && l.Drained
	}
	g.Seconds = float64(g.EndNS-g.StartNS) / 1e9
	return g, nil
}

func (d *dialPart) Close() error { return closeTCP(d.crew, d.set, d.reader) }
