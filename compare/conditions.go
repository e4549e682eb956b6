// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
)

// obstacle says why two arms were not under the same conditions; "" if they were.
func obstacle(a, b *Arm, m Metric, t terms) string {
	for _, arm := range []*Arm{a, b} {
		if arm.Valid == 0 {
			return fmt.Sprintf("%s has no valid trial", arm.Name)
		}
		if attach := arm.Effective.Attach; arm.Engine == Kernel && attach != "" && attach != "none" {
			return fmt.Sprintf("%s ran with an XDP program attached (%s)", arm.Name, attach)
		}
	}
	if m.OfArm(a) == nil || m.OfArm(b) == nil {
		return fmt.Sprintf("%s was not measured for both arms", m.Name)
	}
	ea, eb := &a.Effective, &b.Effective
	if ea.Placement != eb.Placement {
		return fmt.Sprintf("NAPI was placed %q for A and %q for B", ea.Placement, eb.Placement)
	}
	if ea.Queues != 0 && eb.Queues != 0 && ea.Queues != eb.Queues {
		return fmt.Sprintf("A had %d queues, B had %d", ea.Queues, eb.Queues)
	}
	if len(ea.CPUs) > 0 && len(eb.CPUs) > 0 && !sameSet(ea.CPUs, eb.CPUs) {
		return fmt.Sprintf("A ran on CPUs %v, B on CPUs %v", ea.CPUs, eb.CPUs)
	}
	if t.closedLoop || t.sends || t.pingPong {
		return "" // the offer follows the receiver there, or is the result
	}
	oa, ob := Val(a.OfferedPPS), Val(b.OfferedPPS)
	if differ := math.Abs(oa-ob) / max(oa, ob); !(differ <= offeredTolerance) {
		return fmt.Sprintf("the offered loads differ by %s: %.0f and %.0f packets/s", formatPercent(differ), oa, ob)
	}
	return ""
}

func sameSet(a, b []int) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// modeNotes lists what a reader must know about how the arms ran: a mode that
// is not the one asked for, and settings of the machine that differ.
func modeNotes(a, b *Arm) []string {
	var notes []string
	for _, arm := range []*Arm{a, b} {
		e := &arm.Effective
		switch asked := arm.Requested["variant"]; {
		case asked == "zerocopy" && e.Bind != "" && e.Bind != "zerocopy",
			asked == "copy" && e.Bind != "" && e.Bind != "copy":
			notes = append(notes, fmt.Sprintf("%s was bound %s, not %s as asked", arm.Name, e.Bind, asked))
		case asked == "generic" && e.Attach != "" && e.Attach != "generic":
			notes = append(notes, fmt.Sprintf("%s was attached %s, not generic as asked", arm.Name, e.Attach))
		}
		if asked := arm.Requested["wait"]; asked != "" && e.Wait != "" && asked != e.Wait {
			notes = append(notes, fmt.Sprintf("%s waited by %s, not %s as asked", arm.Name, e.Wait, asked))
		}
		if e.Csum == "off" {
			notes = append(notes, fmt.Sprintf("%s did not verify checksums", arm.Name))
		}
	}
	differ := func(what, va, vb string) {
		if va != "" && vb != "" && va != vb {
			notes = append(notes, fmt.Sprintf("%s: %s for A, %s for B", what, va, vb))
		}
	}
	differ("NAPI", a.Effective.NAPI, b.Effective.NAPI)
	differ("NAPI scheduling", a.Effective.Sched, b.Effective.Sched)
	return notes
}
