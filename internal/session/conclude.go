// SPDX-License-Identifier: Apache-2.0

package session

import (
	"math"
	"slices"
	"strings"

	"twopath/compare"
)

// conclude turns the trials into arms, comparisons and a verdict.
func (s *cell) conclude() error {
	d := &s.doc
	arms, err := s.o.Plan.ArmSpecs()
	if err != nil {
		return err
	}
	var out []compare.Arm
	add := func(name string, a compare.ArmSpec) {
		arm := compare.Arm{Name: name, Engine: a.Engine, Requested: a.Requested()}
		for _, c := range d.Arms {
			if c.Name == a.String() {
				arm.Candidates = c.Candidates
			}
		}
		if e := effective(d.Trials, name); e != nil {
			arm.Effective = *e
		}
		out = append(out, arm)
	}
	for _, a := range arms {
		if !slices.ContainsFunc(out, func(o compare.Arm) bool { return o.Name == a.String() }) {
			add(a.String(), a)
		}
	}
	for _, t := range d.Trials { // an A/A control's twins are in the schedule only
		name, _, twin := strings.Cut(t.Arm, "#")
		if !twin || slices.ContainsFunc(out, func(o compare.Arm) bool { return o.Name == t.Arm }) {
			continue
		}
		if a, err := compare.ParseArm(name); err == nil {
			add(t.Arm, a)
		}
	}
	d.Arms = out
	if d.Limit != nil {
		d.Limit.LossRatioAtLoad = limitLoss(d.Trials)
		d.Limit.LatencyNs = limitLatency(d.Trials)
	}
	if s.o.Search {
		for i := range d.Arms {
			d.Arms[i].SetGoals(s.bounds[d.Arms[i].Name])
		}
		compare.ConcludeSearch(d)
		return nil
	}
	compare.Conclude(d)
	return nil
}

// effective is how an arm ran in its newest measured trial.
func effective(trials []compare.Trial, arm string) *compare.Effective {
	for _, t := range slices.Backward(trials) {
		if t.Arm == arm && t.Effective != nil && (t.Kind == compare.Measured || t.Kind == compare.AA || t.Kind == compare.SearchRun) {
			return t.Effective
		}
	}
	return nil
}

// limitLoss is the median loss of XDP_DROP at the cell's load; nil when it was not measured.
func limitLoss(trials []compare.Trial) *float64 {
	var losses []float64
	for _, t := range trials {
		if l := t.LossRatio(); t.Kind == compare.LimitRun && t.Valid && !math.IsNaN(l) {
			losses = append(losses, l)
		}
	}
	if len(losses) == 0 {
		return nil
	}
	slices.Sort(losses)
	n := len(losses)
	return compare.Num((losses[(n-1)/2] + losses[n/2]) / 2)
}
