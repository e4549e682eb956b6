// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
)

// ConcludeSearch fills in d's comparisons, verdict and requirements from the bounds on its arms. The headline is the best
// kernel arm against the best xdp arm by the first goal, or the first arm against the best of the others; it compares
// conditional throughputs. What the bounds leave open is the comparison's range: a search is one sample, so it has no
// confidence interval.
func ConcludeSearch(d *Document) {
	for i := range d.Arms {
		a := &d.Arms[i]
		a.Trials, a.Valid = 0, 0
		for k := range d.Trials {
			if t := &d.Trials[k]; t.Arm == a.Name && t.Kind == SearchRun {
				a.Trials++
				if t.Valid {
					a.Valid++
				}
			}
		}
		if a.Effective.Placement == "" {
			a.Effective.Placement = d.Rig.Placement
		}
	}
	margin := d.Plan.Margin
	if margin <= 0 {
		margin = DefaultMargin
	}
	d.Comparisons, d.Verdict = nil, nil
	if a, b := searchHeadline(d.Arms); a != nil {
		c := compareBounds(a, b, margin)
		d.Comparisons, d.Verdict = append(d.Comparisons, c), &c
		for i := range d.Arms {
			if other := &d.Arms[i]; other != a && other != b {
				d.Comparisons = append(d.Comparisons, compareBounds(a, other, margin))
			}
		}
	}
	d.judgeRequirements()
}

// judgeRequirements evaluates the plan's requirements on the record.
func (d *Document) judgeRequirements() {
	d.Requirements = nil
	for _, text := range d.Plan.Require {
		r, err := ParseRequirement(text)
		if err != nil {
			d.Requirements = append(d.Requirements, RequirementResult{Text: text, Because: err.Error()})
			continue
		}
		d.Requirements = append(d.Requirements, r.Evaluate(d))
	}
}

func searchHeadline(arms []Arm) (a, b *Arm) {
	bestOf := func(use func(*Arm) bool) (top *Arm) {
		for i := range arms {
			if arm := &arms[i]; use(arm) && (top == nil || zeroIfNaN(Val(arm.ConditionalPPS)) > zeroIfNaN(Val(top.ConditionalPPS))) {
				top = arm
			}
		}
		return top
	}
	for _, references := range []bool{false, true} {
		may := func(arm *Arm) bool { return references || !isReference(arm.Name) }
		kernel := bestOf(func(arm *Arm) bool { return may(arm) && arm.Engine == Kernel })
		xdp := bestOf(func(arm *Arm) bool { return may(arm) && arm.Engine == XDP })
		if kernel != nil && xdp != nil {
			return kernel, xdp
		}
	}
	if len(arms) < 2 {
		return nil, nil
	}
	return &arms[0], bestOf(func(arm *Arm) bool { return arm != &arms[0] })
}

// compareBounds compares the first goal's conditional throughput of two arms.
func compareBounds(a, b *Arm, margin float64) Comparison {
	c := Comparison{A: a.Name, B: b.Name, Metric: MetricConditional, RatioIs: "b/a", Margin: margin, Bound: NoBound,
		AValue: a.ConditionalPPS, BValue: b.ConditionalPPS, Notes: modeNotes(a, b)}
	for _, arm := range []*Arm{a, b} {
		if attach := arm.Effective.Attach; arm.Engine == Kernel && attach != "" && attach != "none" {
			c.Word, c.Because = NotComparable, fmt.Sprintf("%s ran with an XDP program attached (%s)", arm.Name, attach)
			return c
		}
		if arm.LowerPPS == nil || !(Val(arm.ConditionalPPS) > 0) {
			c.Word, c.Because = NotComparable, fmt.Sprintf("%s has no lower bound", arm.Name)
			return c
		}
	}
	c.Ratio = Num(*b.ConditionalPPS / *a.ConditionalPPS)
	low, high := 0.0, math.Inf(1)
	if a.UpperPPS != nil {
		low = *b.ConditionalPPS / *a.UpperPPS
	}
	if b.UpperPPS != nil {
		high = *b.UpperPPS / *a.ConditionalPPS
	}
	if a.UpperPPS != nil && b.UpperPPS != nil {
		c.Range = &[2]float64{low, high}
	}
	switch {
	case a.UpperPPS == nil && b.UpperPPS == nil:
		c.Word, c.Because = Inconclusive, "both bore the highest load that was tried, so neither's knee is known"
		return c
	case low > 1+margin:
		c.Word = Faster
	case high < 1/(1+margin):
		c.Word = Slower
	case low > 1/(1+margin) && high < 1+margin:
		c.Word = Equivalent
	default:
		c.Word = Inconclusive
		c.Because = fmt.Sprintf("the bounds of A and B do not keep them apart by the margin of %s; a goal of less width may", formatPercent(margin))
	}
	better, who := b, "B"
	if *c.Ratio < 1 {
		better, who = a, "A"
	}
	if better.UpperPPS == nil && (c.Word == Faster || c.Word == Slower) {
		c.Bound = LowerBound
		c.Notes = append(c.Notes, fmt.Sprintf("%s (%s) took all that was offered: the difference may be larger", who, better.Name))
	}
	return c
}
