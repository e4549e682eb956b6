// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"twopath/compare"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// pilotShare is how long a pilot trial lasts, of a measured one, and pilotMost how long at most: a trial of a night's length
// is no reason to choose for hours.
const (
	pilotShare = 0.5
	pilotMost  = 1500 * time.Millisecond
)

// pilotLoad is the cell's traffic for a pilot trial.
func (s *cell) pilotLoad() trial.Load {
	l := s.load(pilotShare)
	switch most := pilotMost.Seconds(); {
	case l.Count == 0:
		l.Seconds = min(l.Seconds, most)
	case s.pps > 0:
		l.Count = min(l.Count, max(uint64(most*s.pps), 1))
	case float64(l.Count) > most*pilotFlood: // a flood has no rate to make a count of
		l.Count, l.Seconds = 0, most
	}
	return l
}

// pilotFlood is the fewest packets/s that a flood has anywhere: a count that takes longer at this rate than a pilot may is
// given up for a time.
const pilotFlood = 500_000

// pilots chooses each arm's setting where the user left it open: how the reader waits and how the SUT's NAPI threads are
// scheduled, for the best of each arm differs, and one policy for all would make a strawman of one of them. Pilot trials
// count for nothing else.
func (s *cell) pilots(ctx context.Context) error {
	s.settings = map[string]trial.Setting{}
	arms, err := s.o.Plan.ArmSpecs()
	if err != nil {
		return err
	}
	for _, a := range arms {
		name := a.String()
		if _, done := s.settings[name]; done {
			continue
		}
		arm := compare.Arm{Name: name, Engine: a.Engine}
		if set, c, err := s.again(ctx, a); err != nil {
			return err
		} else if c != nil {
			arm.Candidates = []compare.Candidate{*c}
			s.settings[name] = set
			s.doc.Arms = append(s.doc.Arms, arm)
			continue
		}
		set := trial.Setting{}
		if s.test().Sends { // a sender has no wait, and its NAPI nothing to do
			s.settings[name] = set
			continue
		}
		// At a paced load the ring follows from the load, so that the rest is tried with it; under a flood it comes last.
		choices := []func(compare.ArmSpec, trial.Setting) []trial.Setting{s.rings, s.candidates}
		if s.pps == 0 {
			slices.Reverse(choices)
		}
		for _, open := range choices {
			list := open(a, set)
			set = list[0]
			if len(list) == 1 {
				continue
			}
			best, tried, err := s.choose(ctx, a, list)
			if err != nil {
				return err
			}
			set = best
			for i := range arm.Candidates { // chosen is what the last choice ended with
				arm.Candidates[i].Chosen = false
			}
			arm.Candidates = append(arm.Candidates, tried...)
		}
		s.settings[name] = set
		if s.found != nil && len(arm.Candidates) > 0 {
			s.found[name] = finding{setting: set, cell: s.c}
		}
		if len(arm.Candidates) > 0 {
			s.doc.Arms = append(s.doc.Arms, arm)
		}
	}
	return nil
}

// finding is the setting that an arm ended with, and in which cell.
type finding struct {
	setting trial.Setting
	cell    compare.Cell
}

// again tries the setting that a cell before chose for this arm. Where that loses no more here than pilots can tell apart, it
// is kept, and one trial has done for all; a nil candidate means that it did not. The ring follows from the load, as ever.
func (s *cell) again(ctx context.Context, a compare.ArmSpec) (trial.Setting, *compare.Candidate, error) {
	before, ok := s.found[a.String()]
	if !ok || s.pps == 0 {
		return trial.Setting{}, nil, nil
	}
	set := before.setting
	set.Ring = s.rings(a, set)[0].Ring
	s.o.report(Progress{Phase: PhasePilot, Cell: s.c, What: fmt.Sprintf("%s %s", a, set)})
	t, err := s.pilot(ctx, a, set)
	if ctx.Err() != nil {
		return set, nil, ctx.Err()
	}
	if err != nil || !t.Valid || !(t.LossRatio() <= sameLoss) {
		return set, nil, nil
	}
	c := &scored{setting: set}
	c.add(t, nil)
	r := c.record(true)
	r.Note = fmt.Sprintf("chosen at size %s, and kept: here it loses %s", before.cell.Size, lossWords(t.Lost))
	return set, &r, nil
}

func lossWords(lost uint64) string {
	if lost == 0 {
		return "nothing"
	}
	return "too little for others to be seen better"
}

// candidates lists how an arm may wait and its NAPI be scheduled; one means that there is nothing to choose.
func (s *cell) candidates(a compare.ArmSpec, set trial.Setting) []trial.Setting {
	waits := []string{a.Option("wait")}
	switch {
	case waits[0] != "":
	case a.Engine == compare.XDP && a.Variant != "asavie":
		waits = []string{"spin", "poll"}
	case a.Engine == compare.Kernel && a.Variant == "recvmmsg" && s.echo():
		waits = []string{"block", "busypoll", "spin"}
	case a.Engine == compare.Kernel && a.Variant == "recvmmsg":
		waits = []string{"block", "busypoll"}
	}
	scheds := []rig.Policy{""}
	if s.o.Bench.CPUs.Placement != rig.Sender {
		switch s.o.Plan.SoftirqSched {
		case "best":
			scheds = []rig.Policy{rig.FIFO, rig.Other}
		default:
			scheds = []rig.Policy{rig.Policy(s.o.Plan.SoftirqSched)}
		}
	}
	var out []trial.Setting
	for _, p := range scheds {
		for _, w := range waits {
			out = append(out, trial.Setting{Wait: w, Sched: p, Ring: set.Ring})
		}
	}
	return out
}

// rings lists the receive rings open to an arm that is otherwise set. A small one stays in the cache, which decides under a
// flood. At a paced load what decides is how long a reader may be away: the ring holds absence of it, as far as it can.
func (s *cell) rings(a compare.ArmSpec, set trial.Setting) []trial.Setting {
	sizes := []int{1024, 8192}
	switch {
	case a.Engine != compare.XDP || a.Variant == "asavie" || a.Option("ring") != "":
		sizes = []int{0}
	case s.pps > 0:
		pps := s.pps
		if f := s.doc.Traffic.Fragments; f != nil { // each of a datagram's fragments takes a place, and most may come twice
			pps *= float64(2 * f.Fragments)
		}
		sizes = []int{ringFor(pps, s.absence())}
	}
	var out []trial.Setting
	for _, n := range sizes {
		next := set
		next.Ring = n
		out = append(out, next)
	}
	return out
}

// absence is how long a reader may be away before its ring overflows. On a core that it shares with NAPI larger rings lose
// more by the cache than they hold; elsewhere what counts is to outlast what else the machine does.
func (s *cell) absence() time.Duration {
	if b := s.o.Bench; b.Queues > len(b.CPUs.Readers) && len(b.CPUs.Readers) > 0 {
		return 100 * time.Millisecond // readers of one CPU wait for each other's time slices
	}
	if s.o.Bench.CPUs.Placement == rig.Shared {
		return 5 * time.Millisecond
	}
	return 20 * time.Millisecond
}

// ringFor is the smallest power of two that holds absence of a load, within what a socket may have.
func ringFor(pps float64, absence time.Duration) int {
	n := 1024
	for float64(n) < pps*absence.Seconds() && n < 32768 {
		n *= 2
	}
	return n
}

// limitSetting is how the limit runs: XDP_DROP is all NAPI, so the policy that lets NAPI run is its best.
func (s *cell) limitSetting() trial.Setting {
	if s.o.Bench.CPUs.Placement == rig.Sender {
		return trial.Setting{}
	}
	if s.o.Plan.SoftirqSched == "other" {
		return trial.Setting{Sched: rig.Other}
	}
	return trial.Setting{Sched: rig.FIFO}
}

// scored is a candidate and how it did in its pilot trials.
type scored struct {
	setting trial.Setting
	rank    int             // in the list of candidates
	trials  []compare.Trial // the valid ones, or all if none was
	valid   bool
	err     error
}

// pps is the mean received rate.
func (c *scored) pps() float64 { return c.mean((*compare.Trial).ReceivedPPS) }

// loss is the mean loss ratio, of what could be received at all.
func (c *scored) loss() float64 { return c.mean((*compare.Trial).AvoidableLoss) }

// work is the mean CPU work per packet, ns; 0 when it is not known.
func (c *scored) work() float64 {
	return c.mean(func(t *compare.Trial) float64 {
		if t.CPU == nil || t.CPU.WorkNsPerPacket == nil {
			return 0
		}
		return *t.CPU.WorkNsPerPacket
	})
}

func (c *scored) mean(of func(*compare.Trial) float64) float64 {
	sum := 0.0
	for i := range c.trials {
		sum += of(&c.trials[i])
	}
	return sum / float64(len(c.trials))
}

// pilotRounds is how often each candidate is tried. The second round runs in the opposite order, so that a drift of the
// machine falls on all alike.
const pilotRounds = 2

func (s *cell) choose(ctx context.Context, a compare.ArmSpec, list []trial.Setting) (trial.Setting, []compare.Candidate, error) {
	tried := make([]scored, len(list))
	for i, set := range list {
		tried[i].setting, tried[i].rank = set, i
	}
	for round := range pilotRounds {
		for i := range tried {
			c := &tried[i]
			if round%2 == 1 {
				c = &tried[len(tried)-1-i]
			}
			if c.err != nil {
				continue
			}
			s.o.report(Progress{Phase: PhasePilot, Cell: s.c, What: fmt.Sprintf("%s %s", a, c.setting)})
			t, err := s.pilot(ctx, a, c.setting)
			if ctx.Err() != nil {
				return c.setting, nil, ctx.Err()
			}
			c.add(t, err)
		}
	}
	var ran []*scored
	var last error
	for i := range tried {
		if tried[i].err != nil {
			last = tried[i].err
			continue
		}
		ran = append(ran, &tried[i])
	}
	if len(ran) == 0 {
		return trial.Setting{}, nil, fmt.Errorf("%s: %w: %w", a, errNoSetting, last)
	}
	best := slices.MaxFunc(ran, s.better)
	var out []compare.Candidate
	for i := range tried {
		out = append(out, tried[i].record(&tried[i] == best))
	}
	return best.setting, out, nil
}

// add takes a pilot trial's outcome. An invalid trial counts only while there is no valid one.
func (c *scored) add(t compare.Trial, err error) {
	switch {
	case err != nil:
		c.err = err
	case t.Valid && !c.valid:
		c.trials, c.valid = []compare.Trial{t}, true
	case t.Valid == c.valid:
		c.trials = append(c.trials, t)
	}
}

func (c *scored) record(chosen bool) compare.Candidate {
	r := compare.Candidate{Setting: c.setting.String(), Chosen: chosen}
	if c.err != nil {
		r.Note = c.err.Error()
		return r
	}
	r.LatencyP50Ns, r.LatencyP99Ns = compare.Num(c.latency(compare.MetricP50)), compare.Num(c.latency(compare.MetricP99))
	r.ReceivedPPS, r.LossRatio = compare.Num(c.pps()), compare.Num(c.loss())
	if !c.valid {
		r.Note = c.trials[0].InvalidBecause
	}
	return r
}

// pilot runs one candidate, again once if the trial came out invalid.
func (s *cell) pilot(ctx context.Context, a compare.ArmSpec, set trial.Setting) (t compare.Trial, err error) {
	for attempt := 1; attempt <= 2; attempt++ {
		spec := s.spec(a, set, pilotShare)
		spec.Load = s.pilotLoad()
		t, err = s.o.Bench.Run(ctx, spec)
		if err != nil {
			return t, err
		}
		t.Arm, t.Kind, t.Attempt = a.String(), compare.Pilot, attempt
		s.doc.Trials = append(s.doc.Trials, t)
		if t.Valid {
			return t, nil
		}
	}
	return t, nil
}

// sameLoss is the difference of loss below which pilot trials cannot tell two candidates apart: one absence of the CPU, of
// a millisecond or two, makes as much.
const sameLoss = 0.003

// better orders candidates: valid trials before invalid ones, then who received more. Where neither lost anything, who took
// less CPU is better; where both lost about as little, the one listed first is, for pilots are too short to tell. In an echo
// test who answered sooner is better, not who took less CPU.
func (s *cell) better(x, y *scored) int {
	switch {
	case x.valid != y.valid:
		if x.valid {
			return 1
		}
		return -1
	case s.closedLoop():
		return cmp.Compare(x.pps(), y.pps())
	}
	lx, ly := x.loss(), y.loss()
	switch {
	case lx < ly-sameLoss || lx > ly+sameLoss:
		return cmp.Compare(ly, lx)
	case s.echo():
		return betterLatency(x, y)
	case lx == 0 && ly == 0:
		return cmp.Compare(y.work(), x.work())
	}
	return cmp.Compare(y.rank, x.rank)
}
