// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

// Run carries out the plan, one document for each cell. When ctx is cancelled it returns what there is, the last document
// marked incomplete, with a nil error. With an error the documents so far are returned too.
func Run(ctx context.Context, o Options) ([]compare.Document, error) {
	cells, err := o.Plan.Cells()
	if err != nil {
		return nil, err
	}
	var docs []compare.Document
	ids := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), o.Plan.Seed))
	found := map[string]finding{}
	report := o.Progress
	for i, c := range cells {
		if ctx.Err() != nil {
			break
		}
		if report != nil {
			o.Progress = func(p Progress) {
				p.Index, p.Cells = i+1, len(cells)
				report(p)
			}
		}
		s := &cell{o: &o, c: c, ids: ids, found: found}
		d, err := s.run(ctx)
		docs = append(docs, d)
		if err != nil {
			return docs, err
		}
	}
	return docs, nil
}

// cell is one size at one rate, over one number of queues.
type cell struct {
	o   *Options
	c   compare.Cell
	ids *rand.Rand
	doc compare.Document
	pps float64 // load in frames/s, 0 for max

	settings map[string]trial.Setting // by the arm's name
	found    map[string]finding       // what cells before found, by the arm's name

	maxLoadIs string                          // what set a search's highest load
	bounds    map[string][]compare.GoalResult // of a search, by the arm's name
}

func (s *cell) run(ctx context.Context) (compare.Document, error) {
	p := s.o.Plan
	if f := s.o.Frames; f.WithFCS > 0 {
		s.c.Size = compare.Size{Bytes: int(math.Round(f.WithFCS))}
	}
	s.doc = compare.Document{Schema: compare.SchemaID, Version: s.o.Version, Started: time.Now(), Argv: s.o.Argv, Test: p.Test, Seed: p.Seed,
		Plan: p, Rig: s.o.Rig, Host: s.o.Host, Warnings: append([]compare.Warning(nil), s.o.Warnings...)}
	s.doc.Traffic = compare.Traffic{Size: s.c.Size, FrameBytes: s.c.Size.FrameBytes(), PayloadBytes: s.c.Size.PayloadBytes(p.IP), IPVersion: p.IP,
		Rate: s.c.Rate, Flows: p.Flows, Queues: s.c.Queues}
	if f := s.o.Frames; f.WithFCS > 0 {
		s.doc.Traffic.FrameBytes, s.doc.Traffic.PayloadBytes = f.WithFCS, f.Payload
	}
	if f := p.FragmentTraffic(s.c); f != nil {
		s.doc.Traffic.Fragments, s.doc.Traffic.PayloadBytes = f, float64(p.Payload)
	}
	err := s.describeCapture()
	if err == nil {
		err = s.carryOut(ctx)
	}
	if ctx.Err() != nil {
		s.doc.Incomplete = true
		if s.doc.Reason == "" {
			s.doc.Reason = "interrupted"
		}
		err = nil
	}
	if err != nil {
		s.doc.Incomplete = true
		s.doc.Reason = err.Error()
	}
	if e := s.conclude(); e != nil && err == nil {
		err = e
	}
	if !s.doc.Incomplete {
		now := time.Now()
		s.doc.Finished = &now
	}
	return s.doc, err
}

func (s *cell) carryOut(ctx context.Context) error {
	if s.o.Search {
		return s.search(ctx)
	}
	if err := s.ceiling(ctx); err != nil {
		return err
	}
	if err := s.pilots(ctx); err != nil {
		return err
	}
	p := s.o.Plan
	schedule, err := p.Schedule()
	if err != nil {
		return err
	}
	if s.o.Single { // nothing to balance: once a block
		schedule.Trials = slices.DeleteFunc(schedule.Trials, func(t compare.TrialSpec) bool { return t.Position > len(p.Arms) })
	}
	block := 0
	out, err := compare.Run(ctx, schedule, compare.RunOptions{ClosedLoop: s.closedLoop() || s.test().Sends, Progress: s.progress},
		func(ctx context.Context, t compare.TrialSpec) (compare.Trial, error) {
			if t.Block != block && (!s.o.Single || s.echo()) {
				block = t.Block
				if err := s.limitAtLoad(ctx, block); err != nil {
					return compare.Trial{}, err
				}
			}
			return s.o.Bench.Run(ctx, s.spec(t.Arm, s.settings[t.Arm.String()], 1))
		})
	s.doc.Trials = append(s.doc.Trials, out.Trials...)
	s.doc.Incomplete, s.doc.Reason = out.Incomplete, out.Reason
	return err
}

func (s *cell) progress(p compare.Progress) {
	s.o.report(Progress{Phase: PhaseTrial, Cell: s.c, What: p.Spec.Label, Block: p.Spec.Block, Blocks: p.Blocks, Done: p.Done, Total: p.Total,
		Left: p.Left, Trial: p.Trial})
}

// closedLoop is a flood in which the receiver slows the sender.
func (s *cell) closedLoop() bool {
	return s.pps == 0 && s.doc.Rig.Placement == compare.PlaceSender
}

// test is what the registry says of the plan's test.
func (s *cell) test() compare.TestInfo {
	t, _ := compare.LookupTest(s.o.Plan.Test)
	return t
}

// spec is a trial of an arm that lasts share of the plan's time or count.
func (s *cell) spec(a compare.ArmSpec, set trial.Setting, share float64) trial.Spec {
	p := s.o.Plan
	role := agent.Receive
	switch {
	case s.echo():
		role = agent.Echo
	case s.test().Captures:
		role = agent.Following
	case s.test().Sends:
		role = agent.Send
	}
	return trial.Spec{Test: p.Test, Role: role, Arm: a, Setting: set, RunID: s.runID(), Load: s.load(share), Work: p.Work, Strict: p.Strict,
		Every: s.o.Every, DNS: s.o.DNS, Driver: p.Driver, Connect: s.connect()}
}

// The ports of a connection test: the server's, and of the client all that are no one else's.
const (
	httpPort    = 80
	clientPort  = 1024
	clientPorts = 64000
)

// connect is the load of a connection test; the rate, count and time are the load's.
func (s *cell) connect() agent.Connecting {
	p := s.o.Plan
	return agent.Connecting{ServerPort: httpPort, ServerPorts: 1, ClientPort: clientPort, ClientPorts: clientPorts, Body: p.Body, Keep: p.Requests > 1,
		Requests: p.Requests, Concurrent: p.CC}
}

// load is the cell's traffic, for share of a trial.
func (s *cell) load(share float64) trial.Load {
	p := s.o.Plan
	if s.test().Captures {
		return s.replayLoad(share)
	}
	l := trial.Load{Flow: s.o.Bench.Flow(p.IP == 6, p.Flows), Sizes: s.c.Size.Cycle(), PPS: s.pps, PingPong: s.pingPong()}
	if p.Test == compare.TestFragments {
		l.Fragments = &agent.Fragments{Pattern: s.c.Pattern, Payload: p.Payload, MTU: p.MTU, Seed: p.Seed, TimeoutNS: int64(p.FragTime), Memory: p.FragMemory, Distance: p.FragDistance}
	}
	switch {
	case p.Count > 0:
		l.Count = max(uint64(float64(p.Count)*share), 1)
	case s.pps > 0 && !l.PingPong:
		l.Count = max(uint64(time.Duration(p.Duration).Seconds()*s.pps*share), 1)
	default:
		l.Seconds = time.Duration(p.Duration).Seconds() * share
	}
	return l
}

// runID is different for every trial, and not 0, which a frame of zeros would have.
func (s *cell) runID() uint32 {
	for {
		if id := s.ids.Uint32(); id != 0 {
			return id
		}
	}
}

// ceiling measures what the rig can carry at all, where the test has something that stands for it.
func (s *cell) ceiling(ctx context.Context) (err error) {
	switch {
	case s.pingPong(): // sets its own rate, so that there is no flood; how long the limit's answers take is measured at load
		s.doc.Limit = &compare.Limit{Name: s.limitName()}
	case s.test().Limit == compare.LimitDrop, s.test().Limit == compare.LimitReflect:
		return s.limit(ctx)
	case s.test().Limit == compare.LimitLive:
		if err := s.liveLimit(ctx); err != nil {
			return err
		}
	}
	most := math.NaN()
	if s.doc.Limit != nil {
		most = compare.Val(s.doc.Limit.PPS)
	}
	s.pps, err = s.c.Rate.Resolve(s.c.Size, s.o.LinkBPS, most)
	if err == nil && s.pps > 0 {
		s.doc.Traffic.PPS = compare.Num(s.pps)
		s.doc.Traffic.WireBPS = compare.Num(s.pps * s.c.Size.WireBits())
	}
	return err
}

// limit floods what stands for the ceiling (XDP_DROP, or XDP_TX where answers are wanted): what it counts is the rig's limit,
// what was offered is the generator's headroom. A generator that stood still meanwhile is asked again, as for any other trial.
func (s *cell) limit(ctx context.Context) error {
	var best compare.Trial
	for attempt := 1; attempt <= compare.MaxAttempts; attempt++ {
		s.o.report(Progress{Phase: PhaseLimit, Cell: s.c, What: limitWords(s.limitName()) + " at full flood"})
		spec := s.limitSpec()
		spec.Load.PPS, spec.Load.Count, spec.Load.Seconds = 0, 0, floodSeconds
		t, err := s.o.Bench.Run(ctx, spec)
		if err != nil {
			return fmt.Errorf("measure the limit: %w", err)
		}
		t.Arm, t.Kind, t.Position, t.Attempt = s.limitName(), compare.Headroom, 1, attempt
		s.doc.Trials = append(s.doc.Trials, t)
		if attempt == 1 || t.ReceivedPPS() > best.ReceivedPPS() {
			best = t
		}
		if t.Valid {
			break
		}
	}
	s.doc.Limit = &compare.Limit{Name: s.limitName(), PPS: compare.Num(best.ReceivedPPS())}
	offered := compare.Num(best.SentPPS())
	s.doc.Rig.Generator.OfferedPPS = offered
	return s.resolve(offered)
}

// resolve makes frames per second of the cell's rate, and refuses a load that the generator cannot offer.
func (s *cell) resolve(offered *float64) (err error) {
	s.pps, err = s.c.Rate.Resolve(s.c.Size, s.o.LinkBPS, compare.Val(s.doc.Limit.PPS))
	if err != nil || s.pps == 0 || offered == nil {
		return err
	}
	s.doc.Traffic.PPS = compare.Num(s.pps)
	s.doc.Traffic.WireBPS = compare.Num(s.pps * s.c.Size.WireBits())
	s.doc.Rig.Generator.Headroom = compare.Num(*offered / s.pps)
	if *offered < minHeadroom*s.pps {
		return &CannotOffer{Asked: s.pps, Most: *offered}
	}
	return nil
}

// limitAtLoad runs the limit under the cell's own load: what it loses, and the time that its answers take, is the rig's doing
// and not an arm's.
func (s *cell) limitAtLoad(ctx context.Context, block int) error {
	if s.pps == 0 && !s.pingPong() || s.doc.Limit == nil || s.test().Limit == compare.LimitLive {
		return nil
	}
	for attempt := 1; attempt <= compare.MaxAttempts; attempt++ {
		s.o.report(Progress{Phase: PhaseLimit, Cell: s.c, What: limitWords(s.limitName()) + " at the same load", Block: block, Blocks: s.o.Plan.Blocks})
		spec := s.limitSpec()
		t, err := s.o.Bench.Run(ctx, spec)
		if err != nil {
			return fmt.Errorf("measure the limit: %w", err)
		}
		t.Arm, t.Kind, t.Block, t.Attempt = s.limitName(), compare.LimitRun, block, attempt
		if err := t.Check(); err != nil {
			t.Invalidate("the counts do not add up: %v", err)
		}
		s.doc.Trials = append(s.doc.Trials, t)
		if t.Valid {
			return nil
		}
	}
	return nil
}

var errNoSetting = errors.New("no setting of this arm could be run")
