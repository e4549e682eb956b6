// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strings"
)

// Conclude fills in d's arms, comparisons, verdict and requirements from its
// trials. The caller has set the plan, the traffic, the rig and, for each
// arm, Name, Engine, Requested and Effective; an arm that is missing is added
// from the trials' names. Calling it again gives the same.
//
// The headline is the best kernel arm against the best xdp arm; with one
// engine only, the first arm against the best of the others. xdp:asavie and
// kernel:nosocket are compared, but never in the headline while there is
// another arm. It is judged on the metric that can differ: the received rate
// when either lost more than the margin (below that, received rates cannot
// differ by more), else the test's own metric (the median latency of an echo
// test, with the 99th percentile beside it) or the CPU work per packet. The losses are noted either way.
func Conclude(d *Document) {
	addMissingArms(d)
	for i := range d.Arms {
		d.Arms[i].Aggregate(d.Trials, d.Traffic.Size)
	}
	test, _ := LookupTest(d.Test)
	t := terms{margin: d.Plan.Margin, seed: d.Seed, closedLoop: d.ClosedLoop(), sends: d.Sends(), asked: zeroIfNaN(Val(d.Traffic.PPS)),
		headline: test.Headline, pingPong: d.Plan.Mode == ModePingPong}
	if t.margin <= 0 {
		t.margin = DefaultMargin
	}
	d.Comparisons, d.Verdict = nil, nil
	floors := d.controls(t)

	if a, b := headline(d.Arms, t); a != nil {
		for _, m := range []Metric{headlineMetric(a, b, t), otherMetric(a, b, t)} {
			if d.Verdict != nil && (m.OfArm(a) == nil || m.OfArm(b) == nil) {
				continue
			}
			t.floor = floors[m.Name]
			c := compareArms(a, b, d.Trials, m, t)
			c.Notes = append(c.Notes, lossNote(a, b, t)...)
			d.Comparisons = append(d.Comparisons, c)
			if d.Verdict == nil {
				d.Verdict = &c
			}
		}
		for i := range d.Arms {
			other := &d.Arms[i]
			if other.Name == a.Name || other.Name == b.Name || isTwin(other.Name) {
				continue
			}
			m := headlineMetric(a, other, t)
			t.floor = floors[m.Name]
			d.Comparisons = append(d.Comparisons, compareArms(a, other, d.Trials, m, t))
		}
	} else if len(d.Comparisons) > 0 {
		verdict := d.Comparisons[0] // nothing but an A/A control
		d.Verdict = &verdict
	}
	d.judgeRequirements()
}

// ClosedLoop reports whether the offered load followed the receiver, so that loss means nothing.
func (d *Document) ClosedLoop() bool {
	return d.Plan.Mode != ModePingPong && d.Traffic.Rate.Unit == MaxRate && d.Rig.Placement == PlaceSender
}

// controls compares each arm with its A/A twin and returns, by metric, the
// largest |log-ratio| their 95 % intervals reach: the noise floor.
func (d *Document) controls(t terms) map[string]float64 {
	floors := map[string]float64{}
	for i := range d.Arms {
		twin := &d.Arms[i]
		if !isTwin(twin.Name) {
			continue
		}
		name, _, _ := strings.Cut(twin.Name, "#")
		arm := findArm(d.Arms, name)
		if arm == nil {
			continue
		}
		metric := headlineMetric(arm, twin, t)
		for _, m := range []Metric{metric, otherMetric(arm, twin, t)} {
			if m.OfArm(arm) == nil || m.OfArm(twin) == nil {
				continue
			}
			c := compareArms(arm, twin, d.Trials, m, t)
			c.Control = true
			d.Comparisons = append(d.Comparisons, c)
			if c.CI != nil && c.Blocks >= MinBlocks {
				floors[m.Name] = max(floors[m.Name], -math.Log(c.CI[0]), math.Log(c.CI[1]))
			}
		}
	}
	return floors
}

// headline picks the two arms of the verdict; nil when there are no two.
func headline(arms []Arm, t terms) (a, b *Arm) {
	var kernel, xdp, all []*Arm
	for _, references := range []bool{false, true} {
		kernel, xdp, all = nil, nil, nil
		for i := range arms {
			arm := &arms[i]
			if isTwin(arm.Name) || (isReference(arm.Name) && !references) {
				continue
			}
			all = append(all, arm)
			switch arm.Engine {
			case Kernel:
				kernel = append(kernel, arm)
			case XDP:
				xdp = append(xdp, arm)
			}
		}
		if len(all) > 1 {
			break
		}
	}
	switch {
	case len(kernel) > 0 && len(xdp) > 0:
		return best(kernel, t), best(xdp, t)
	case len(all) > 1:
		return all[0], best(all[1:], t)
	}
	return nil, nil
}

// best is the arm with the highest received rate; among those within the
// margin of it, the one with the least of the test's own metric, or CPU work per packet.
func best(arms []*Arm, t terms) *Arm {
	own := ownMetric(t)
	if t.pingPong { // their rates are their latencies: only loss comes before those
		return bestAnswering(arms, own, t)
	}
	top := arms[0]
	for _, a := range arms[1:] {
		if Val(a.ReceivedPPS) > Val(top.ReceivedPPS) || top.ReceivedPPS == nil {
			top = a
		}
	}
	least := top
	for _, a := range arms {
		if Val(a.ReceivedPPS)*(1+t.margin) >= Val(top.ReceivedPPS) && Val(own.OfArm(a)) < Val(own.OfArm(least)) {
			least = a
		}
	}
	return least
}

// bestAnswering is the arm that lost least; among those within the margin of it, the one with the least latency.
func bestAnswering(arms []*Arm, own Metric, t terms) *Arm {
	lost := func(a *Arm) float64 { return zeroIfNaN(Val(a.LossRatio)) }
	least := arms[0]
	for _, a := range arms[1:] {
		if lost(a) < lost(least) {
			least = a
		}
	}
	top := least
	for _, a := range arms {
		if lost(a) <= lost(least)+t.margin && Val(own.OfArm(a)) < Val(own.OfArm(top)) {
			top = a
		}
	}
	return top
}

// ownMetric is what decides where neither arm lost.
func ownMetric(t terms) Metric {
	name := t.headline
	if name == "" {
		name = MetricWork
	}
	m, _ := LookupMetric(name)
	return m
}

func headlineMetric(a, b *Arm, t terms) Metric {
	received, _ := LookupMetric(MetricReceived)
	own := ownMetric(t)
	if t.sends && !(t.sentAll(a) && t.sentAll(b)) {
		return received
	}
	lost := max(zeroIfNaN(a.AvoidableLoss()), zeroIfNaN(b.AvoidableLoss())) > t.margin
	if t.closedLoop || lost || own.OfArm(a) == nil || own.OfArm(b) == nil {
		return received
	}
	return own
}

// otherMetric is compared beside what headlineMetric chose: the tail of a latency beside its middle, else the received rate
// beside the test's own metric, and the other way round.
func otherMetric(a, b *Arm, t terms) Metric {
	name := MetricReceived
	switch headlineMetric(a, b, t).Name {
	case MetricReceived:
		name = ownMetric(t).Name
	case MetricP50:
		name = MetricP99
	}
	m, _ := LookupMetric(name)
	return m
}

func lossNote(a, b *Arm, t terms) []string {
	la, lb := Val(a.LossRatio), Val(b.LossRatio)
	if t.closedLoop || !(max(la, lb) > 0) {
		return nil
	}
	return []string{fmt.Sprintf("lost: A %.3g %%, B %.3g %%", 100*la, 100*lb)}
}

func zeroIfNaN(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

func isTwin(name string) bool { return strings.Contains(name, "#") }

func isReference(name string) bool {
	a, err := ParseArm(name)
	return err == nil && !a.Headline()
}

func findArm(arms []Arm, name string) *Arm {
	for i := range arms {
		if arms[i].Name == name {
			return &arms[i]
		}
	}
	return nil
}

// addMissingArms adds an arm for each name that only trials have; the warm-up
// is in the order the arms were given.
func addMissingArms(d *Document) {
	for i := range d.Trials {
		t := &d.Trials[i]
		if findArm(d.Arms, t.Arm) != nil || (t.Kind != Measured && t.Kind != AA && t.Kind != Warmup) {
			continue
		}
		arm := Arm{Name: t.Arm}
		name, _, _ := strings.Cut(t.Arm, "#")
		if spec, err := ParseArm(name); err == nil {
			arm.Engine, arm.Requested = spec.Engine, spec.Requested()
		}
		if t.Effective != nil {
			arm.Effective = *t.Effective
		}
		d.Arms = append(d.Arms, arm)
	}
}
