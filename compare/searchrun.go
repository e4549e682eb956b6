// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// Searcher is an arm under search.
type Searcher struct {
	Label  string
	Search *Search
}

// SearchTrial is one trial a search wants to be made.
type SearchTrial struct {
	Label   string
	Input   TrialInput
	Round   int // from 1: each open search has one trial a round
	Attempt int // from 1
}

// String names the trial for progress and errors.
func (t SearchTrial) String() string {
	again := ""
	if t.Attempt > 1 {
		again = fmt.Sprintf(", attempt %d", t.Attempt)
	}
	return fmt.Sprintf("round %d, %s at %.0f packets/s%s", t.Round, t.Label, t.Input.Load, again)
}

// SearchProgress tells how far searches are. It is reported before each trial, with Trial nil, and after it.
type SearchProgress struct {
	Trial  SearchTrial
	Result *Trial // that just ended; nil before a trial
	Loss   float64
	// Lower and Upper are the bounds so far of the goal in whose favour the trial is; 0 where there is none.
	Lower, Upper float64
	Open         int // searches not at their end
}

// SearchRunOptions adjust [RunSearches].
type SearchRunOptions struct {
	// SUTSends is set where the load is the SUT's own: what it does not send counts as lost, and makes no trial invalid.
	SUTSends bool
	// Until (optional) is when searches are stopped, by Now.
	Until    time.Time
	Now      func() time.Time // (optional) for tests
	Progress func(SearchProgress)
}

const (
	// maxBarren is how many trials in a row may come to nothing, all attempts invalid, before an arm's search is given up.
	maxBarren = 3
	// maxShort is how many of these, because the load was not offered, say that the generator cannot offer it. One alone may
	// be the doing of whoever disturbed the machine.
	maxShort = 2
)

// severeShortfall is the share of the intended load up to which what was not offered does not count as lost (RFC 9971 asks to
// count a severe deviation): the end of a trial that is late by some microseconds says nothing about the SUT.
const severeShortfall = 0.001

// SearchLoss is a trial's loss ratio for a search at a load, packets/s: lost packets, and what fell short of the load.
func SearchLoss(t *Trial, load float64) float64 {
	intended := math.Max(float64(t.Offered), math.Round(load*t.Seconds))
	sent := float64(t.Sent)
	if sent < intended*(1-severeShortfall) {
		sent = intended
	}
	if !(sent > 0) {
		return 1
	}
	return min(max(1-float64(t.Received)/sent, 0), 1)
}

// RunSearches makes the trials that the searches ask for through do, which performs one and fills in its counts. Each round
// gives every open search one trial, in turn forwards and backwards, so that a drift of the machine falls on all alike. An
// invalid trial is repeated at once, at most twice. When all attempts fail, the search asks again in the next round. If that keeps
// failing, it is stopped; but if what failed is that the load was not offered, its highest load is lowered.
//
// When ctx is cancelled, RunSearches drops the trial under way and returns the rest as incomplete, with a nil error. When do
// fails with an [*ArmError], that arm's search is stopped and the others go on; any other error ends them all.
func RunSearches(ctx context.Context, searches []Searcher, o SearchRunOptions, do func(context.Context, SearchTrial) (Trial, error)) (Outcome, error) {
	r := searchRun{o: o, do: do, searches: slices.Clone(searches), barren: map[string]int{}, short: map[string]shortfall{}}
	if r.o.Now == nil {
		r.o.Now = time.Now
	}
	if r.o.Progress == nil {
		r.o.Progress = func(SearchProgress) {}
	}
	for round := 1; ; round++ {
		open := 0
		for _, s := range r.searches {
			in, ok := s.Search.Next()
			if !ok {
				continue
			}
			if !r.o.Until.IsZero() && !r.o.Now().Before(r.o.Until) {
				s.Search.Stop("out of time")
				continue
			}
			open++
			if err := r.one(ctx, s, SearchTrial{Label: s.Label, Input: in, Round: round, Attempt: 1}); err != nil {
				if errors.Is(err, errInterrupted) {
					err = nil
				}
				return r.out, err
			}
		}
		if open == 0 {
			return r.out, nil
		}
		slices.Reverse(r.searches)
	}
}

// errInterrupted ends a run whose context is over.
var errInterrupted = errors.New("interrupted")

// searchRun is the state of [RunSearches].
type searchRun struct {
	o        SearchRunOptions
	do       func(context.Context, SearchTrial) (Trial, error)
	searches []Searcher
	out      Outcome
	barren   map[string]int       // trials in a row without a valid attempt, by label
	short    map[string]shortfall // of these, the last ones
}

// shortfall is a load that was not offered.
type shortfall struct {
	load    float64
	times   int
	offered float64 // the most that was
}

// one makes one trial, with its repeats, and tells the search.
func (r *searchRun) one(ctx context.Context, s Searcher, spec SearchTrial) error {
	var offered float64
	short, why := true, ""
	for ; spec.Attempt <= MaxAttempts; spec.Attempt++ {
		p := SearchProgress{Trial: spec}
		for _, other := range r.searches {
			if other.Search.stopped == "" && slices.ContainsFunc(other.Search.goals, func(g goalSearch) bool { return !g.done }) {
				p.Open++
			}
		}
		p.Lower, p.Upper = s.Search.Bounds(spec.Input.Goal)
		r.o.Progress(p)
		t, err := r.do(ctx, spec)
		if ctx.Err() != nil {
			r.out.Incomplete, r.out.Reason = true, fmt.Sprintf("interrupted at %s, after %d trials", spec, len(r.out.Trials))
			return errInterrupted
		}
		var own *ArmError
		if errors.As(err, &own) {
			s.Search.Stop(err.Error())
			return nil
		}
		if err != nil {
			r.out.Incomplete, r.out.Reason = true, fmt.Sprintf("failed at %s, after %d trials", spec, len(r.out.Trials))
			return fmt.Errorf("%s: %w", spec, err)
		}
		t.Arm, t.Kind, t.Block, t.Position, t.Attempt = spec.Label, SearchRun, spec.Round, spec.Input.Goal+1, spec.Attempt
		t.LoadPPS = Num(spec.Input.Load)
		judge(&t, r.o.SUTSends)
		r.out.Trials = append(r.out.Trials, t)
		p.Result, p.Loss = &t, SearchLoss(&t, spec.Input.Load)
		if t.Valid {
			s.Search.Add(LoadTrial{Load: spec.Input.Load, Seconds: spec.Input.Seconds, LossRatio: p.Loss})
			p.Lower, p.Upper = s.Search.Bounds(spec.Input.Goal)
			r.o.Progress(p)
			r.barren[s.Label], r.short[s.Label] = 0, shortfall{}
			return nil
		}
		r.o.Progress(p)
		why = t.InvalidBecause
		short = short && t.SentPPS() < MinOfferedShare*spec.Input.Load
		offered = math.Max(offered, zeroIfNaN(t.SentPPS()))
	}
	if short && !r.o.SUTSends {
		f := r.short[s.Label]
		if f.load != spec.Input.Load {
			f = shortfall{load: spec.Input.Load}
		}
		f.times, f.offered = f.times+1, math.Max(f.offered, offered)
		if r.short[s.Label] = f; f.times >= maxShort {
			s.Search.CannotOffer(f.load, f.offered)
			r.barren[s.Label], r.short[s.Label] = 0, shortfall{}
			return nil
		}
	}
	if r.barren[s.Label]++; r.barren[s.Label] >= maxBarren {
		s.Search.Stop(fmt.Sprintf("%d trials in a row were invalid, all attempts, the last because %s", maxBarren, why))
	}
	return nil
}

// ArmError is an error of one arm alone: it cannot run here, and the others can.
type ArmError struct{ Err error }

func (e *ArmError) Error() string { return e.Err.Error() }
func (e *ArmError) Unwrap() error { return e.Err }
