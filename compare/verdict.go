// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strings"
)

const (
	// CILevel is the level of the interval that is printed.
	CILevel = 0.95
	// claimLevel is what "faster" and "slower" need on top: an interval of
	// this level that excludes 1. At six blocks, 95 % alone would call one
	// A/A run in twenty; a reader looks at many runs, and one false word in a
	// thousand is as much as he should get. It also keeps the chance of any
	// false word in a sweep of 50 cells below 5 % (Bonferroni).
	claimLevel = 0.999
	// equivalenceLevel is two one-sided tests at 5 % (TOST).
	equivalenceLevel = 0.90
	// offeredTolerance is how far the loads of two arms may differ.
	offeredTolerance = 0.01
	// tookAll is the loss up to which an arm counts as having taken all that
	// was offered. A stall of the machine costs a few packets in 10,000.
	tookAll = 1e-3
)

// terms are the conditions of a comparison beside its two arms.
type terms struct {
	margin     float64
	floor      float64 // |log-ratio| an A/A control reached, 0 without one
	seed       uint64
	closedLoop bool
	sends      bool    // the SUT is the sender: what it offers is its result
	asked      float64 // packets/s; 0 for max
	headline   string  // the test's own metric where neither lost; "" is CPU work
	pingPong   bool    // each arm sets its own rate: offered loads differ, and received rates are latencies in disguise
}

// sentAll reports whether the arm of a send test brought over what the plan asked for.
func (t terms) sentAll(a *Arm) bool {
	return t.asked > 0 && Val(a.ReceivedPPS) >= t.asked*(1-t.margin)
}

// compareArms compares b with a on one metric.
func compareArms(a, b *Arm, trials []Trial, m Metric, t terms) Comparison {
	c := Comparison{A: a.Name, B: b.Name, Metric: m.Name, RatioIs: "b/a", CILevel: CILevel, Margin: t.margin, Bound: NoBound,
		AValue: m.OfArm(a), BValue: m.OfArm(b)}
	if m.Lower {
		c.RatioIs = "a/b"
	}
	p := pairBlocks(trials, a.Name, b.Name, m)
	c.Blocks, c.ValidTrials, c.Trials = len(p.logs), p.valid, p.trials
	if p.silent > 0 {
		c.Notes = append(c.Notes, fmt.Sprintf("%d trials received nothing; each counts as half a packet, so the ratio is a rough one", p.silent))
	}
	c.Notes = append(c.Notes, modeNotes(a, b)...)

	e := Summarise(p.logs, t.seed, Resamples)
	c.Ratio = Num(e.Ratio)
	if low, high := e.Interval(CILevel); e.N >= 2 {
		c.CI = &[2]float64{low, high}
		c.P, c.PSign = Num(e.P), Num(e.PSign)
	}
	if why := obstacle(a, b, m, t); why != "" {
		c.Word, c.Because = NotComparable, why
		return c
	}
	c.Word, c.Because = word(e, &c, t)
	if m.Name == MetricReceived && !t.closedLoop && c.Ratio != nil {
		c.bound(a, b, t)
	}
	return c
}

// bound marks the ratio as a lower one when the better arm took all.
func (c *Comparison) bound(a, b *Arm, t terms) {
	better, who := b, "B"
	if *c.Ratio < 1 {
		better, who = a, "A"
	}
	all := better.AvoidableLoss() <= tookAll
	if t.sends {
		all = t.sentAll(better)
	}
	if c.Word != Equivalent && all {
		c.Bound = LowerBound
		c.Notes = append(c.Notes, fmt.Sprintf("%s (%s) took all that was offered: the difference may be larger", who, better.Name))
	}
}

// word is the outcome of an estimate, seen from B, and what stands in the way
// of a plain one.
func word(e Estimate, c *Comparison, t terms) (Word, string) {
	if e.N < MinBlocks {
		return Insufficient, fmt.Sprintf("%d blocks with valid trials of both arms; a verdict needs %d (%d of %d trials were valid)", e.N, MinBlocks, c.ValidTrials, c.Trials)
	}
	edge := math.Log1p(t.margin)
	low, high := logInterval(e, CILevel)
	claimLow, claimHigh := logInterval(e, claimLevel)
	need := max(edge, t.floor)
	switch {
	case low > need && claimLow > 0:
		return Faster, ""
	case high < -need && claimHigh < 0:
		return Slower, ""
	}
	if l, h := logInterval(e, equivalenceLevel); l > -edge && h < edge {
		return Equivalent, fmt.Sprintf("the 90 %% interval %s lies within %s of equal", formatInterval(l, h), formatPercent(t.margin))
	}
	interval := formatInterval(low, high)
	switch {
	case low > edge || high < -edge:
		if t.floor > edge && !(low > t.floor || high < -t.floor) {
			return Inconclusive, fmt.Sprintf("the A/A control differs from itself by up to %s, and the interval %s does not clear that", formatPercent(math.Expm1(t.floor)), interval)
		}
		return Inconclusive, fmt.Sprintf("the interval %s excludes equal at 95 %%, but not at the 99.9 %% a claim needs; more blocks may tell", interval)
	case low > 0 || high < 0:
		return Inconclusive, fmt.Sprintf("there is a difference, but the interval %s does not clear the margin of %s", interval, formatPercent(t.margin))
	}
	return Inconclusive, fmt.Sprintf("the interval %s reaches across 1; more blocks or a calmer machine may tell", interval)
}

// logInterval is an interval of the log-ratio.
func logInterval(e Estimate, level float64) (low, high float64) {
	low, high = e.Interval(level)
	return math.Log(low), math.Log(high)
}

func formatInterval(low, high float64) string {
	return fmt.Sprintf("%.3g .. %.3g", math.Exp(low), math.Exp(high))
}

func formatPercent(share float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", 100*share), ".0") + " %"
}
