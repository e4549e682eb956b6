// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/workload"
	"twopath/xsk"
)

// sendPart is the SUT of udp-tx: an arm's senders, each with its loop on a thread of its own.
type sendPart struct {
	set     *sendSet
	loops   []*workload.Send
	reader  *measure.Reader
	crew    *crew
	limit   time.Duration // ends a load without a count; 0 is none
	streams []stream
}

func newSend(p agent.Prepare) (*sendPart, agent.Prepared, error) {
	return newSendOver(p, max(p.Queues, 1), func(streams []stream) (*sendSet, error) { return openSend(p, streams) })
}

// newSendOver prepares n streams and the senders that open makes for them.
func newSendOver(p agent.Prepare, n int, open func([]stream) (*sendSet, error)) (_ *sendPart, got agent.Prepared, err error) {
	s := &sendPart{}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	l := p.Generate
	if l == nil || len(p.CPUs) == 0 {
		return nil, got, errors.New("send: no load or no CPUs given")
	}
	if l.Count == 0 && l.Seconds <= 0 {
		return nil, got, errors.New("send: the load has neither count nor time")
	}
	if l.Faults != (agent.Faults{BadDescriptor: l.Faults.BadDescriptor, TooLong: l.Faults.TooLong}) {
		return nil, got, errors.New("send: these faults are the live-frame generator's")
	}
	s.limit = time.Duration(l.Seconds * float64(time.Second))
	if s.crew, err = newCrew(p); err != nil {
		return nil, got, err
	}
	s.crew.together = true // a load with a stream missing is not the load that was asked for
	if s.streams, err = streams(p, n); err != nil {
		return nil, got, err
	}
	if s.set, err = open(s.streams); err != nil {
		return nil, got, err
	}
	if err := s.set.prepare(s.streams); err != nil {
		return nil, got, err
	}
	work, err := compare.ParseWork(p.Work)
	if err != nil {
		return nil, got, err
	}
	share := uint64(len(s.streams))
	for i, st := range s.streams {
		o := workload.SendOptions{Sender: s.set.senders[i], Template: st.template, Frames: s.set.frames, Flows: st.flows, Rate: l.Rate / float64(share),
			Count: l.Count / share, Batch: s.set.batch, Ticks: s.crew.rate}
		if uint64(i) < l.Count%share {
			o.Count++
		}
		if d := measure.NewWork(work, s.crew.rate); !d.None() {
			o.Work = d
		}
		if l.Count > 0 && o.Count == 0 {
			continue // fewer packets than queues
		}
		loop, err := workload.NewSend(o)
		if err != nil {
			return nil, got, err
		}
		s.loops = append(s.loops, loop)
		s.crew.loops = append(s.crew.loops, loop)
	}
	if s.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective, got.Notes = s.set.effective, s.set.notes
	return s, got, nil
}

// Start does nothing: the senders start with Run.
func (s *sendPart) Start() error { return nil }

func (s *sendPart) Counters() (map[string]uint64, error) {
	c, err := s.set.counters()
	if err != nil {
		return nil, err
	}
	return withOwn(s.reader, c)
}

func (s *sendPart) Live() agent.Live {
	var l agent.Live
	for _, loop := range s.loops {
		l.Sent += loop.Live()
	}
	return l
}

func (s *sendPart) Stop() { s.crew.quit() }

// errWayGone marks errors of senders whose device or route went away: something was reconfigured, or pulled.
var errWayGone = errors.New("the way is gone")

// wayGone tells whether an error says that the link, the device or the route went away under a sender. The trial says
// nothing about its arm then.
func wayGone(err error) bool {
	for _, e := range []error{errWayGone, xsk.ErrNetDown, unix.ENETDOWN, unix.ENETUNREACH, unix.EHOSTUNREACH, unix.ENODEV, unix.ENXIO} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// Run lets the loops send until they are done.
func (s *sendPart) Run() (agent.Generated, error) {
	var g agent.Generated
	if err := s.crew.start(); err != nil {
		return g, errors.Join(append(s.crew.wait(), err)...)
	}
	if s.limit > 0 {
		defer time.AfterFunc(s.limit, s.Stop).Stop()
	}
	errs := s.crew.wait()
	account, err := s.crew.account()
	if err != nil {
		return g, err
	}
	g.Sending = &agent.Sending{Counters: s.set.own(), CPU: account, Continued: s.crew.stops()}
	for _, l := range s.loops {
		s.add(&g, l.Result())
	}
	if g.Sent > 0 {
		g.Seconds = float64(g.EndNS-g.StartNS) / 1e9
	}
	var fatal []error
	for i, err := range errs {
		switch {
		case err == nil:
		case wayGone(err):
			g.Sending.Failed = fmt.Sprintf("sender on CPU %d: %v", s.streams[i].cpu, err)
		default:
			fatal = append(fatal, err)
		}
	}
	return g, errors.Join(fatal...)
}

func (s *sendPart) add(g *agent.Generated, r workload.SendResult) {
	g.Sent += r.Handed
	g.PerStream = append(g.PerStream, r.Handed)
	if r.StartNS != 0 && (g.StartNS == 0 || r.StartNS < g.StartNS) {
		g.StartNS = r.StartNS
	}
	g.EndNS = max(g.EndNS, r.EndNS)
	g.LateSlots += r.Late
	g.MaxLateNS = max(g.MaxLateNS, r.MaxLateNS)
	g.Stopped = g.Stopped || r.Stopped
	t := g.Sending
	t.PerWorker = append(t.PerWorker, r.Handed)
	t.EmptyTurns += r.EmptyTurns
	t.NoRoom += r.NoRoom
	t.SpinNS += r.SpinNS
	t.StallNS += r.StallNS
	t.MaxStallNS = max(t.MaxStallNS, r.MaxStallNS)
}

func (s *sendPart) Close() error {
	errs := []error{s.crew.close()}
	if s.set != nil {
		errs = append(errs, s.set.close())
	}
	if s.reader != nil {
		errs = append(errs, s.reader.Close())
	}
	return errors.Join(errs...)
}
