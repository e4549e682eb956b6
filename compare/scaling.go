// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"cmp"
	"fmt"
	"slices"
)

// ScalingPoint is what an arm did over one number of queues, and what that is against the fewest it was tried with.
type ScalingPoint struct {
	Queues      int
	ReceivedPPS *float64
	LossRatio   *float64
	// SpeedUp is ReceivedPPS over that of the first point; Efficiency is what each added worker brought of what the first
	// ones do each: 1 is all of it, 0 nothing. Both are null at the first point.
	SpeedUp, Efficiency *float64
	// TSCPerPacket is the cycles of the reading threads; TSCGrowth is over the first point's: 1 is no growth.
	TSCPerPacket, TSCGrowth *float64
	PerWorker               []uint64
	// Untold says why rates here tell nothing about scaling; "" if they do.
	Untold string
}

// Scaling is an arm over the cells that differ in their queues alone, fewest first; nil for fewer than two.
func Scaling(cells []*Document, arm string) []ScalingPoint {
	cells = slices.Clone(cells)
	slices.SortStableFunc(cells, func(a, b *Document) int { return cmp.Compare(a.Traffic.Queues, b.Traffic.Queues) })
	var out []ScalingPoint
	var first *Arm
	for _, d := range cells {
		i := slices.IndexFunc(d.Arms, func(a Arm) bool { return a.Name == arm })
		if i < 0 || d.Arms[i].Valid == 0 {
			continue
		}
		a := &d.Arms[i]
		p := ScalingPoint{Queues: d.Traffic.Queues, ReceivedPPS: a.ReceivedPPS, LossRatio: a.LossRatio, TSCPerPacket: a.TSCPerPacket,
			PerWorker: a.PerWorker, Untold: untold(d, a)}
		if first == nil {
			first = a
		} else {
			base := out[0]
			ratio := Val(a.ReceivedPPS) / Val(first.ReceivedPPS)
			p.SpeedUp = Num(ratio)
			if more := float64(p.Queues)/float64(base.Queues) - 1; more > 0 {
				p.Efficiency = Num((ratio - 1) / more)
			}
			p.TSCGrowth = Num(Val(a.TSCPerPacket) / Val(first.TSCPerPacket))
			if p.Untold == "" && first.Lost == 0 && !cells[0].ClosedLoop() {
				p.Untold = fmt.Sprintf("all that was offered arrived over %d already: more workers could not show", base.Queues)
			}
		}
		out = append(out, p)
	}
	if len(out) < 2 {
		return nil
	}
	return out
}

// untold says why the rate of an arm over its queues says nothing about how it scales: its workers, what feeds them, or
// the load's source share CPUs.
func untold(d *Document, a *Arm) string {
	n := d.Traffic.Queues
	readers := distinct(a.Effective.CPUs)
	if len(a.Effective.CPUs) > 0 && readers < n {
		return fmt.Sprintf("%d workers on %s: this shows that counts are right and how even the shares are, not scaling", n, cpusWord(readers))
	}
	switch d.Rig.Placement {
	case PlaceSplit:
		if napi := distinct(a.Effective.NAPICPUs); napi > 0 && napi < n {
			return fmt.Sprintf("NAPI of %d queues on %s: this shows that counts are right, not scaling", n, cpusWord(napi))
		}
	case PlaceSender:
		if gen := distinct(d.Rig.CPUs["peer"]); gen > 0 && gen < n {
			return fmt.Sprintf("NAPI of %d queues on the %s that send: this shows that counts are right, not scaling", n, cpusWord(gen))
		}
	}
	return ""
}

func cpusWord(n int) string {
	if n == 1 {
		return "1 CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}

func distinct(cpus []int) int {
	seen := map[int]bool{}
	for _, c := range cpus {
		seen[c] = true
	}
	return len(seen)
}
