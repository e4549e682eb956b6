// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"
	"slices"

	"twopath/compare"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// pilotShare is how long a pilot trial lasts, of a measured one.
const pilotShare = 0.35

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
		list := s.candidates(a)
		if len(list) == 1 {
			s.settings[name] = list[0]
			continue
		}
		best, tried, err := s.choose(ctx, a, list)
		if err != nil {
			return err
		}
		s.settings[name] = best
		s.doc.Arms = append(s.doc.Arms, compare.Arm{Name: name, Engine: a.Engine, Candidates: tried})
	}
	return nil
}

// candidates lists the settings open to an arm; one means that there is nothing to choose.
func (s *cell) candidates(a compare.ArmSpec) []trial.Setting {
	waits := []string{a.Option("wait")}
	if waits[0] == "" && a.Engine == compare.XDP && a.Variant != "asavie" {
		waits = []string{"spin", "poll"}
	}
	scheds := []rig.Policy{""}
	if s.o.Bench.CPUs.Placement != rig.Sender {
		switch s.o.Plan.SoftirqSched {
		case "best":
			scheds = []rig.Policy{rig.Other, rig.FIFO}
		default:
			scheds = []rig.Policy{rig.Policy(s.o.Plan.SoftirqSched)}
		}
	}
	var out []trial.Setting
	for _, w := range waits {
		for _, p := range scheds {
			out = append(out, trial.Setting{Wait: w, Sched: p})
		}
	}
	return out
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

// scored is a candidate and how it did.
type scored struct {
	setting trial.Setting
	trial   compare.Trial
	record  compare.Candidate
}

func (s *cell) choose(ctx context.Context, a compare.ArmSpec, list []trial.Setting) (trial.Setting, []compare.Candidate, error) {
	var ran []scored
	var failed []compare.Candidate
	var last error
	for _, set := range list {
		s.o.report(Progress{Phase: PhasePilot, Cell: s.c, What: fmt.Sprintf("%s %s", a, set)})
		t, err := s.pilot(ctx, a, set)
		if ctx.Err() != nil {
			return set, nil, ctx.Err()
		}
		if err != nil {
			last = err
			failed = append(failed, compare.Candidate{Setting: set.String(), Note: err.Error()})
			continue
		}
		ran = append(ran, scored{set, t, compare.Candidate{Setting: set.String(), ReceivedPPS: compare.Num(t.ReceivedPPS()), LossRatio: compare.Num(t.LossRatio()),
			Note: t.InvalidBecause}})
	}
	if len(ran) == 0 {
		return trial.Setting{}, nil, fmt.Errorf("%s: %w: %w", a, errNoSetting, last)
	}
	best := slices.MaxFunc(ran, s.better)
	out := failed
	for i := range ran {
		ran[i].record.Chosen = ran[i].setting == best.setting
		out = append(out, ran[i].record)
	}
	return best.setting, out, nil
}

// pilot runs one candidate, again once if the trial came out invalid.
func (s *cell) pilot(ctx context.Context, a compare.ArmSpec, set trial.Setting) (t compare.Trial, err error) {
	for attempt := 1; attempt <= 2; attempt++ {
		t, err = s.o.Bench.Run(ctx, s.spec(a, set, pilotShare))
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

// sameLoss is the difference of loss below which two candidates are taken for equals, and the cheaper one wins.
const sameLoss = 0.0005

// better orders candidates: a valid trial before an invalid one, then who received more, then who took less CPU.
func (s *cell) better(x, y scored) int {
	if x.trial.Valid != y.trial.Valid {
		if x.trial.Valid {
			return 1
		}
		return -1
	}
	if s.closedLoop() {
		return cmpFloat(x.trial.ReceivedPPS(), y.trial.ReceivedPPS())
	}
	if lx, ly := x.trial.LossRatio(), y.trial.LossRatio(); lx < ly-sameLoss || lx > ly+sameLoss {
		return cmpFloat(ly, lx)
	}
	return cmpFloat(work(y.trial), work(x.trial))
}

func work(t compare.Trial) float64 {
	if t.CPU == nil || t.CPU.WorkNsPerPacket == nil {
		return 0
	}
	return *t.CPU.WorkNsPerPacket
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
