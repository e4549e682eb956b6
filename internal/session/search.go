// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"twopath/compare"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

const (
	// offeredShare is how much of what the generator reached under the limit a search asks of it: at its very end every
	// disturbance of its core is a hole in the load.
	offeredShare = 0.95
	// easyShare is how much of it needs no proof that it can be offered at a pace too.
	easyShare = 0.5
	// leastLoad is the lowest load tried when the plan names none, frames/s.
	leastLoad = 1000
)

// searchGround is what the searches of a cell have in common.
type searchGround struct {
	goals    []compare.Goal
	from, to float64 // loads, frames/s
	until    time.Time
}

// search finds the bounds of every arm: first coarsely for each setting that the plan leaves open, then for its goals with the
// best setting. The arms take turns in both.
func (s *cell) search(ctx context.Context) error {
	began := time.Now()
	g, err := s.ground(ctx)
	if err != nil {
		return err
	}
	info := &compare.SearchInfo{Goals: g.goals, MinLoadPPS: compare.Num(g.from), MaxLoadPPS: compare.Num(g.to), MaxLoadIs: s.maxLoadIs}
	s.doc.Search = info
	defer func() { info.Seconds = time.Since(began).Seconds() }()
	arms, err := s.o.Plan.ArmSpecs()
	if err != nil {
		return err
	}
	starts, err := s.coarse(ctx, arms, g)
	if err != nil || ctx.Err() != nil {
		return err
	}
	var searches []compare.Searcher
	for _, a := range arms {
		name := a.String()
		at := starts[name]
		one, err := compare.NewSearch(compare.SearchOptions{Goals: g.goals, MinLoad: g.from, MaxLoad: g.to, Lower: at.lower, Upper: at.upper,
			MaxTrials: s.o.Plan.MaxTrials})
		if err != nil {
			return err
		}
		if at.err != nil {
			one.Stop(at.err.Error())
		}
		searches = append(searches, compare.Searcher{Label: name, Search: one})
	}
	out, err := compare.RunSearches(ctx, searches, s.searchOptions(PhaseSearch, g.until), func(ctx context.Context, t compare.SearchTrial) (compare.Trial, error) {
		a, err := compare.ParseArm(t.Label)
		if err != nil {
			return compare.Trial{}, err
		}
		return s.searchTrial(ctx, a, s.settings[t.Label], t.Input)
	})
	s.doc.Trials = append(s.doc.Trials, out.Trials...)
	s.doc.Incomplete, s.doc.Reason = out.Incomplete, out.Reason
	s.bounds = map[string][]compare.GoalResult{}
	for _, one := range searches {
		s.bounds[one.Label] = one.Search.Results()
	}
	return err
}

// ground measures what can be offered, and takes the plan's limits of a search.
func (s *cell) ground(ctx context.Context) (searchGround, error) {
	p := s.o.Plan
	goals, err := p.SearchGoals()
	if err != nil {
		return searchGround{}, err
	}
	g := searchGround{goals: goals, from: leastLoad}
	if p.MaxTime > 0 {
		g.until = time.Now().Add(time.Duration(p.MaxTime))
	}
	if g.to, err = s.highest(ctx); err != nil {
		return g, err
	}
	limit := math.NaN()
	if s.doc.Limit != nil {
		limit = compare.Val(s.doc.Limit.PPS)
	}
	if p.MaxLoad != (compare.Rate{}) {
		most, err := p.MaxLoad.Resolve(s.c.Size, s.o.LinkBPS, limit)
		if err != nil {
			return g, err
		}
		if most < g.to {
			g.to, s.maxLoadIs = most, "plan"
		}
	}
	if offered := s.doc.Rig.Generator.OfferedPPS; offered != nil && g.to > *offered*easyShare {
		sure, err := s.paced(ctx, g.to)
		if err != nil {
			return g, err
		}
		if sure < g.to {
			g.to, s.maxLoadIs = sure, "generator"
		}
	}
	if p.MinLoad != (compare.Rate{}) {
		if g.from, err = p.MinLoad.Resolve(s.c.Size, s.o.LinkBPS, limit); err != nil {
			return g, err
		}
	}
	g.from, g.to = math.Max(math.Ceil(g.from), 1), math.Floor(g.to)
	if g.from > g.to {
		return g, &compare.UsageError{What: "min_load", Token: fmt.Sprintf("%.0f", g.from), Problem: fmt.Sprintf("above the highest load that can be offered, %.0f frames/s", g.to),
			Hint: "give a lower --min-load"}
	}
	return g, nil
}

// highest is the highest load that can be offered: what the generator reached under the limit, less a margin, and no more
// than the line carries.
func (s *cell) highest(ctx context.Context) (float64, error) {
	test := s.test()
	most := math.Inf(1)
	switch {
	case !test.Sends: // the generator is the same in every test
		if err := s.limit(ctx); err != nil {
			return 0, err
		}
		if test.Limit == "" {
			s.doc.Limit = nil // nothing in this test stands for the rig's ceiling
		}
		if offered := s.doc.Rig.Generator.OfferedPPS; offered != nil {
			most, s.maxLoadIs = *offered*offeredShare, "generator"
		}
	default:
		offered, err := s.flood(ctx)
		if err != nil {
			return 0, err
		}
		most, s.maxLoadIs = offered, "generator"
	}
	if line := s.o.LinkBPS / s.c.Size.WireBits(); line > 0 && line < most {
		most, s.maxLoadIs = line, "line"
	}
	if math.IsInf(most, 1) || !(most >= 1) {
		return 0, errors.New("the highest load is not known: name one with --max-load")
	}
	return most, nil
}

// paced lowers a load until the generator offers it when it is paced: that costs more than a flood, a look at the clock for
// each frame. A load is tried twice before it is lowered, for one trial may be disturbed.
func (s *cell) paced(ctx context.Context, load float64) (float64, error) {
	why := ""
	for range compare.MaxAttempts {
		best := 0.0
		for attempt := 1; attempt <= 2; attempt++ {
			s.o.report(Progress{Phase: PhaseLimit, Cell: s.c, What: fmt.Sprintf("%s at %.0f frames/s", limitWords(s.limitName()), load)})
			spec := s.limitSpec()
			spec.Load.PPS, spec.Load.Count, spec.Load.Seconds = load, max(uint64(load*floodSeconds), 2), 0
			t, err := s.o.Bench.Run(ctx, spec)
			if err != nil {
				return 0, fmt.Errorf("measure the headroom: %w", err)
			}
			t.Arm, t.Kind, t.Position, t.Attempt, t.LoadPPS = s.limitName(), compare.Headroom, 2, attempt, compare.Num(load)
			s.doc.Trials = append(s.doc.Trials, t)
			why = t.InvalidBecause
			if sent := t.SentPPS(); sent > best {
				best = sent
			}
			if best >= load*compare.MinOfferedShare {
				return load, nil
			}
		}
		if best > 0 {
			load = best * offeredShare
		}
	}
	if why != "" {
		s.doc.Warnings = append(s.doc.Warnings, compare.Warning{ID: "headroom", Text: fmt.Sprintf("what the generator can offer at a pace could not be measured undisturbed (%s)", why)})
	}
	return load, nil
}

// flood is how fast the fastest arm sends when nothing paces it, and a tenth: beyond, every load is the same to it.
func (s *cell) flood(ctx context.Context) (float64, error) {
	arms, err := s.o.Plan.ArmSpecs()
	if err != nil {
		return 0, err
	}
	best := 0.0
	for _, a := range arms {
		s.o.report(Progress{Phase: PhaseLimit, Cell: s.c, What: a.String() + " at full speed"})
		spec := s.spec(a, s.searchCandidates(a, 0)[0], 1)
		spec.Load.PPS, spec.Load.Count, spec.Load.Seconds = 0, 0, floodSeconds
		t, err := s.o.Bench.Run(ctx, spec)
		if err != nil {
			return 0, fmt.Errorf("%s at full speed: %w", a, err)
		}
		t.Arm, t.Kind, t.Attempt = a.String(), compare.Headroom, 1
		s.doc.Trials = append(s.doc.Trials, t)
		if pps := t.SentPPS(); pps > best {
			best = pps
		}
	}
	return best * 1.1, nil
}

// searchOptions are those of both passes.
func (s *cell) searchOptions(phase Phase, until time.Time) compare.SearchRunOptions {
	return compare.SearchRunOptions{SUTSends: s.test().Sends, Until: until, Progress: func(p compare.SearchProgress) {
		s.o.report(Progress{Phase: phase, Cell: s.c, What: p.Trial.Label, Search: &p, Trial: p.Result})
	}}
}

// searchTrial makes one trial at a load. That an arm cannot run is that arm's own affair.
func (s *cell) searchTrial(ctx context.Context, a compare.ArmSpec, set trial.Setting, in compare.TrialInput) (compare.Trial, error) {
	spec := s.spec(a, set, 1)
	spec.Load.PPS, spec.Load.Seconds = in.Load, 0
	spec.Load.Count = max(uint64(math.Round(in.Load*in.Seconds)), 2)
	t, err := s.o.Bench.Run(ctx, spec)
	if err != nil && ctx.Err() == nil {
		err = &compare.ArmError{Err: fmt.Errorf("%s cannot run: %w", a, err)}
	}
	return t, err
}

// start is where an arm's search begins.
type start struct {
	lower, upper float64 // frames/s, 0 when not known
	err          error
}

// coarse searches each setting of each arm that the plan leaves open, by short trials and wide bounds, and chooses the
// setting that bears most. Those trials count for nothing else; they also warm everything up.
func (s *cell) coarse(ctx context.Context, arms []compare.ArmSpec, g searchGround) (map[string]start, error) {
	var all []tried
	var searches []compare.Searcher
	for _, a := range arms {
		for _, set := range s.searchCandidates(a, g.to) {
			label := a.String() + " " + set.String()
			if slices.ContainsFunc(all, func(t tried) bool { return t.label == label }) {
				continue
			}
			one, err := compare.NewSearch(compare.SearchOptions{Goals: []compare.Goal{coarseGoal(g.goals[0])}, MinLoad: g.from, MaxLoad: g.to, Lower: g.to * coarseStart})
			if err != nil {
				return nil, err
			}
			all = append(all, tried{a, set, label, one})
			searches = append(searches, compare.Searcher{Label: label, Search: one})
		}
	}
	out, err := compare.RunSearches(ctx, searches, s.searchOptions(PhasePilot, g.until), func(ctx context.Context, t compare.SearchTrial) (compare.Trial, error) {
		i := slices.IndexFunc(all, func(c tried) bool { return c.label == t.Label })
		if outdone(all, i) {
			return compare.Trial{}, &compare.ArmError{Err: errOutdone}
		}
		return s.searchTrial(ctx, all[i].arm, all[i].setting, t.Input)
	})
	for _, t := range out.Trials {
		i := slices.IndexFunc(all, func(c tried) bool { return c.label == t.Arm })
		t.Arm, t.Kind = all[i].arm.String(), compare.Pilot
		t.Notes = append(t.Notes, all[i].setting.String())
		s.doc.Trials = append(s.doc.Trials, t)
	}
	s.doc.Incomplete, s.doc.Reason = out.Incomplete, out.Reason
	s.settings = map[string]trial.Setting{}
	starts := map[string]start{}
	for _, a := range arms {
		name := a.String()
		if _, done := starts[name]; done {
			continue
		}
		arm := compare.Arm{Name: name, Engine: a.Engine}
		best, most := -1, 0.0
		for i, c := range all {
			if c.arm.String() != name {
				continue
			}
			r := c.search.Results()[0]
			one, borne := compare.Candidate{Setting: c.setting.String(), ReceivedPPS: r.ConditionalPPS}, 0.0
			if r.ConditionalPPS != nil {
				borne = *r.ConditionalPPS
			} else {
				one.Note = r.Because
			}
			arm.Candidates = append(arm.Candidates, one)
			// Within the width of the coarse search two settings bear the same, and the one listed first is taken.
			if best < 0 || borne > most*(1+coarseWidth) {
				best, most = i, borne
			}
		}
		c := all[best]
		r := c.search.Results()[0]
		st := start{}
		if r.LowerPPS != nil {
			st.lower = *r.LowerPPS
		}
		if r.UpperPPS != nil {
			st.upper = *r.UpperPPS
		}
		if c.search.Trials() == 0 && !out.Incomplete {
			st.err = fmt.Errorf("%w: %s", errNoSetting, r.Because)
		}
		starts[name], s.settings[name] = st, c.setting
		for i := range arm.Candidates {
			arm.Candidates[i].Chosen = arm.Candidates[i].Setting == c.setting.String() && c.search.Trials() > 0
		}
		s.doc.Arms = append(s.doc.Arms, arm)
	}
	return starts, err
}

// tried is a setting under coarse search.
type tried struct {
	arm     compare.ArmSpec
	setting trial.Setting
	label   string
	search  *compare.Search
}

// outdone says whether another setting of the same arm has borne a load that this one has not: where exactly it fails does not
// matter then.
func outdone(all []tried, i int) bool {
	_, upper := all[i].search.Bounds(0)
	return upper > 0 && slices.ContainsFunc(all, func(other tried) bool {
		lower, _ := other.search.Bounds(0)
		return other.arm.String() == all[i].arm.String() && lower > upper
	})
}

var errOutdone = errors.New("given up: another setting has borne a load that this one has not")

// coarseStart is where a coarse search begins, as a share of the highest load: small loads first, as the RFC advises, and far
// from where the generator is at its end.
const coarseStart = 0.125

// coarseWidth is how close the bounds of a coarse search come.
const coarseWidth = 0.1

// coarseGoal is what a setting is tried with: the goal's loss ratio, short trials and wide bounds. A load that fails is tried a
// second time, and only both failures count: a single stall of the machine must not decide between two settings.
func coarseGoal(g compare.Goal) compare.Goal {
	seconds := math.Min(g.FinalSeconds, 0.5)
	return compare.Goal{Name: "coarse", FinalSeconds: seconds, SumSeconds: 2 * seconds, InitialSeconds: seconds, ExceedRatio: 0.5, LossRatio: math.Max(g.LossRatio, 0.001),
		Width: math.Max(g.Width, coarseWidth)}
}

// searchCandidates are an arm's settings that the plan leaves open in a search, with a receive ring that stays the same at
// every load, since a search must not change what it measures.
func (s *cell) searchCandidates(a compare.ArmSpec, most float64) []trial.Setting {
	if s.test().Sends { // a sender has no wait, and its NAPI nothing to do
		return []trial.Setting{{}}
	}
	ring := 0
	if a.Engine == compare.XDP && a.Variant != "asavie" && a.Option("ring") == "" {
		ring = 8192
		if s.o.Bench.CPUs.Placement != rig.Shared {
			ring = ringFor(most, s.absence())
		}
	}
	return s.candidates(a, trial.Setting{Ring: ring})
}
