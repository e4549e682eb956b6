// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
)

// SearchOptions are what a search of one arm needs to know.
type SearchOptions struct {
	Goals            []Goal
	MinLoad, MaxLoad float64 // packets/s; no trial goes beyond them
	// Lower and Upper (optional) are where the bounds are thought to lie, packets/s.
	Lower, Upper float64
	MaxTrials    int // 0 is no limit
}

// TrialInput is what a search wants to be measured next.
type TrialInput struct {
	Load    float64 // packets/s, a whole number
	Seconds float64
	Goal    int // in whose favour, from 0
}

// Search is the controller of RFC 9971 for one arm: it says which load to try next, and is told what came of it. It touches
// no clock and no machine, so the same outcomes give the same search.
//
// A goal is searched for in stages, each with longer trials and closer bounds than the one before, up to the goal itself. In
// a stage a load is tried until it is classified. The first loads are those at which the stage before has ended, the lower one first, since an
// upper bound that a disturbance made cannot be taken back; from there it steps outwards, twice as far each time, until both
// bounds are found, and then halves the ratio between them.
type Search struct {
	o      SearchOptions
	trials map[float64][]LoadTrial
	count  int
	goals  []goalSearch
	// stopped says why there are no more trials, though goals are open.
	stopped string
	// lowered is the load that could not be offered, where max load was lowered for it.
	lowered float64
}

// goalSearch is how far a goal is.
type goalSearch struct {
	stages       []Goal // the last is the goal
	stage        int
	lower, upper float64 // where this stage begins
	focus        float64 // load under trial, 0 for none
	steps        int     // outwards, in this stage
	done         bool
}

// maxGrowth is how much longer the trials of a stage are at most than those of the one before.
const maxGrowth = 4

// NewSearch checks the options. Loads are rounded to whole packets/s inwards.
func NewSearch(o SearchOptions) (*Search, error) {
	o.MinLoad, o.MaxLoad = math.Ceil(o.MinLoad), math.Floor(o.MaxLoad)
	switch {
	case len(o.Goals) == 0:
		return nil, fmt.Errorf("search: no goal")
	case !(o.MinLoad >= 1 && finite(o.MaxLoad)):
		return nil, fmt.Errorf("search: loads from %v to %v packets/s", o.MinLoad, o.MaxLoad)
	case o.MinLoad > o.MaxLoad:
		return nil, fmt.Errorf("search: the lowest load, %.0f packets/s, is above the highest, %.0f", o.MinLoad, o.MaxLoad)
	}
	s := &Search{o: o, trials: map[float64][]LoadTrial{}}
	for _, g := range o.Goals {
		if err := g.check(); err != nil {
			return nil, err
		}
		s.goals = append(s.goals, goalSearch{stages: stages(g), lower: o.Lower, upper: o.Upper})
	}
	return s, nil
}

// stages are a goal's preliminary ones and itself. A preliminary stage decides a load by one trial.
func stages(g Goal) []Goal {
	n := int(math.Ceil(math.Log(g.FinalSeconds/g.InitialSeconds)/math.Log(maxGrowth) - slack))
	var out []Goal
	for i := range n {
		p := g
		p.FinalSeconds = g.InitialSeconds * math.Pow(g.FinalSeconds/g.InitialSeconds, float64(i)/float64(n))
		p.SumSeconds = p.FinalSeconds
		p.Width = min(g.Width*math.Pow(2, float64(n-i)), 0.5)
		out = append(out, p)
	}
	return append(out, g)
}

// Next is the trial to make now; false when the search is over.
func (s *Search) Next() (TrialInput, bool) {
	if s.stopped != "" {
		return TrialInput{}, false
	}
	for i := range s.goals {
		g := &s.goals[i]
		for !g.done {
			if load, ok := s.pick(g); ok {
				if s.o.MaxTrials > 0 && s.count >= s.o.MaxTrials {
					s.Stop(fmt.Sprintf("after %d trials, as many as it may have", s.count))
					return TrialInput{}, false
				}
				g.focus = load
				return TrialInput{Load: load, Seconds: g.stages[g.stage].FinalSeconds, Goal: i}, true
			}
			g.advance(s.bounds(g.stages[g.stage]))
		}
	}
	// A trial for one goal may have undone another's bounds, by the same loads.
	for i := range s.goals {
		if load, open := s.pick(&s.goals[i]); open {
			s.goals[i].done, s.goals[i].focus = false, load
			return s.Next()
		}
	}
	return TrialInput{}, false
}

// advance goes to the next stage, from where this one has ended.
func (g *goalSearch) advance(lower, upper float64) {
	if g.stage == len(g.stages)-1 {
		g.done = true
		return
	}
	g.stage++
	g.lower, g.upper, g.focus, g.steps = lower, upper, 0, 0
}

// pick is the load to try for a goal; false when its stage has nothing left to try.
func (s *Search) pick(g *goalSearch) (float64, bool) {
	goal := g.stages[g.stage]
	lower, upper := s.bounds(goal)
	if g.focus > 0 && g.focus <= s.o.MaxLoad && (upper == 0 || g.focus < upper) && g.focus > lower && goal.Classify(s.trials[g.focus]) == Undecided {
		return g.focus, true
	}
	load := 0.0
	switch {
	case lower == 0 && upper == 0:
		load = s.o.MaxLoad
		if g.lower > 0 {
			load = s.inside(g.lower)
		} else if g.upper > 0 {
			load = s.inside(g.upper)
		}
	case upper == 0:
		if lower >= s.o.MaxLoad {
			return 0, false
		}
		if load = s.inside(g.upper); load <= lower {
			load = s.inside(math.Max(lower*g.stride(), lower+1))
		}
	case lower == 0:
		if upper <= s.o.MinLoad {
			return 0, false
		}
		if load = s.inside(g.lower); g.lower == 0 || load >= upper {
			load = s.below(g, upper)
		}
	case (upper-lower)/upper <= goal.Width:
		return 0, false
	default:
		load = math.Round(math.Sqrt(lower * upper))
		if load <= lower || load >= upper {
			return 0, false // no whole number is between them
		}
	}
	return load, true
}

// below is a load to try under an upper bound when no lower one is known: what was received there, where that is a
// hint, else a stride less.
func (s *Search) below(g *goalSearch, upper float64) float64 {
	if g.lower == 0 && g.upper == 0 && g.steps == 0 {
		loss := 1.0
		for _, t := range s.trials[upper] {
			loss = min(loss, t.LossRatio)
		}
		if got := s.inside(upper * (1 - loss)); got < upper*(1-g.stages[g.stage].Width) {
			g.steps++
			return got
		}
	}
	return s.inside(math.Min(upper/g.stride(), upper-1))
}

// stride is how far to step outwards: one width first, then twice as far each time, fourfold at most.
func (g *goalSearch) stride() float64 {
	width := g.stages[g.stage].Width
	n := math.Pow(2, float64(min(g.steps, 20)))
	g.steps++
	return math.Min(math.Pow(1/(1-width), n), 4)
}

// inside rounds a load to one that may be tried.
func (s *Search) inside(load float64) float64 {
	return min(max(math.Round(load), s.o.MinLoad), s.o.MaxLoad)
}

// Add is told what came of a trial that Next asked for.
func (s *Search) Add(t LoadTrial) {
	s.trials[t.Load] = append(s.trials[t.Load], t)
	s.count++
}

// CannotOffer lowers the highest load: of the load, the peer could send no more than offered, so nothing can be said of it.
func (s *Search) CannotOffer(load, offered float64) {
	s.lowered = load
	width := s.goals[0].stages[0].Width
	for _, g := range s.goals {
		width = min(width, g.stages[len(g.stages)-1].Width)
	}
	most := load * (1 - width)
	if offered > 0 {
		most = min(most, offered)
	}
	for tried := range s.trials { // what was offered once can be offered
		if tried < load {
			most = max(most, tried)
		}
	}
	s.o.MaxLoad = max(math.Floor(most), s.o.MinLoad)
	if s.o.MinLoad >= load {
		s.Stop(fmt.Sprintf("the peer cannot offer even %.0f packets/s", load))
	}
}

// Stop ends the search before its goals are reached. The first reason stands.
func (s *Search) Stop(why string) {
	if s.stopped == "" {
		s.stopped = why
	}
}

// Trials is how many there were so far.
func (s *Search) Trials() int { return s.count }

// bounds are the relevant ones of a goal so far, 0 where there is none: the smallest load classified as upper bound, and
// the largest below it that is a lower one. So an upper bound is believed against a lower bound above it (loss inversion).
func (s *Search) bounds(goal Goal) (lower, upper float64) {
	loads := make([]float64, 0, len(s.trials))
	for load := range s.trials {
		loads = append(loads, load)
	}
	slices.Sort(loads)
	for _, load := range loads {
		switch goal.Classify(s.trials[load]) {
		case UpperClass:
			return lower, load
		case LowerClass:
			lower = load
		}
	}
	return lower, 0
}

// Bounds are the relevant bounds of a goal so far, packets/s; 0 where there is none. While a goal's preliminary stages
// last, they are those of its stage.
func (s *Search) Bounds(goal int) (lower, upper float64) {
	g := &s.goals[goal]
	return s.bounds(g.stages[g.stage])
}

// Results are what the trials so far say, by goal.
func (s *Search) Results() []GoalResult {
	out := make([]GoalResult, len(s.goals))
	for i := range s.goals {
		out[i] = s.result(&s.goals[i])
	}
	return out
}

func (s *Search) result(g *goalSearch) GoalResult {
	goal := g.stages[len(g.stages)-1]
	r := GoalResult{Goal: goal}
	lower, upper := s.bounds(goal)
	if lower > 0 {
		r.LowerPPS, r.ConditionalPPS = Num(lower), Num(goal.ConditionalPPS(s.trials[lower]))
	}
	if upper > 0 {
		r.UpperPPS = Num(upper)
	}
	switch {
	case lower > 0 && upper > 0 && (upper-lower)/upper <= goal.Width:
		r.Regular = true
	case !g.done && s.stopped != "":
		r.Irregular, r.Because = EndedEarly, s.stopped
	case !g.done:
		r.Irregular, r.Because = EndedEarly, "ended before the bounds were found"
	case upper == 0 && s.lowered > 0:
		r.Irregular, r.Because = AtMaxLoad, fmt.Sprintf("the generator tops out first: it could not offer %.0f packets/s", s.lowered)
	case upper == 0:
		r.Irregular, r.Because = AtMaxLoad, fmt.Sprintf("the highest load that may be tried, %.0f packets/s, was borne", s.o.MaxLoad)
	case lower == 0:
		r.Irregular, r.Because = AtMinLoad, fmt.Sprintf("the lowest load that may be tried, %.0f packets/s, was not borne", s.o.MinLoad)
	default:
		r.Irregular, r.Because = EndedEarly, "no whole number of packets/s lies between the bounds"
	}
	return r
}
