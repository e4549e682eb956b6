// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"strings"

	"twopath/compare"
)

// view is a document as the reports look at it: the arms to show, with the
// letters they are called by.
type view struct {
	doc  *compare.Document
	arms []*compare.Arm
	// callBy names arms instead of their letters here: over a sweep, where an
	// arm may be missing from a cell, letters are those of the whole.
	callBy func(name string) string
}

func newView(doc *compare.Document) *view {
	v := &view{doc: doc}
	for i := range doc.Arms {
		if a := &doc.Arms[i]; !controlTwin(doc, a.Name) {
			v.arms = append(v.arms, a)
		}
	}
	return v
}

// controlTwin says whether an arm only exists to be compared with itself.
func controlTwin(doc *compare.Document, name string) bool {
	if !strings.Contains(name, "#") {
		return false
	}
	if v := doc.Verdict; v != nil && (v.A == name || v.B == name) {
		return false
	}
	return slices.ContainsFunc(doc.Comparisons, func(c compare.Comparison) bool {
		return c.Control && (c.A == name || c.B == name)
	})
}

// letter is what an arm is called on the screen: A, B, ... Z, A2, B2, ...
func letter(i int) string {
	s := string(rune('A' + i%26))
	if i >= 26 {
		s += thousands(int64(i/26 + 1))
	}
	return s
}

// call is an arm's letter by its name, or the name itself when it is not shown.
func (v *view) call(name string) string {
	if v.callBy != nil {
		return v.callBy(name)
	}
	for i, a := range v.arms {
		if a.Name == name {
			return letter(i)
		}
	}
	return oneLine(name)
}

func (v *view) arm(name string) *compare.Arm {
	for i := range v.doc.Arms {
		if v.doc.Arms[i].Name == name {
			return &v.doc.Arms[i]
		}
	}
	return nil
}

// trialsOf are the valid measured trials of an arm: those its totals sum over.
func (v *view) trialsOf(a *compare.Arm) []*compare.Trial {
	var out []*compare.Trial
	for i := range v.doc.Trials {
		t := &v.doc.Trials[i]
		if t.Arm == a.Name && t.Valid && counted(t) {
			out = append(out, t)
		}
	}
	return out
}

// counted says whether a trial belongs to the comparison, not to its preparation.
func counted(t *compare.Trial) bool {
	return t.Kind == compare.Measured || t.Kind == compare.AA || t.Kind == ""
}

// has says whether an arm has anything to show in counts.
func has(a *compare.Arm) bool { return a.Valid > 0 || a.Sent > 0 }

// any says whether f holds for any shown arm.
func (v *view) any(f func(*compare.Arm) bool) bool {
	return slices.ContainsFunc(v.arms, f)
}

func (v *view) engine(engine string) *compare.Arm {
	for _, a := range v.arms {
		if engineOf(a) == engine {
			return a
		}
	}
	return nil
}

// engineOf is "kernel" or "xdp", from the arm's name when the field is empty.
func engineOf(a *compare.Arm) string {
	if a.Engine != "" {
		return a.Engine
	}
	engine, _, _ := strings.Cut(a.Name, ":")
	return engine
}

// bestKernel is the kernel arm others are related to: the verdict's when it
// has one, else the one that received most, cheapest first among equals.
func (v *view) bestKernel() *compare.Arm {
	if c := v.doc.Verdict; c != nil {
		for _, name := range []string{c.A, c.B} {
			if a := v.arm(name); a != nil && engineOf(a) == "kernel" {
				return a
			}
		}
	}
	var best *compare.Arm
	for _, a := range v.arms {
		if engineOf(a) == "kernel" && a.ReceivedPPS != nil && (best == nil || *a.ReceivedPPS > *best.ReceivedPPS) {
			best = a
		}
	}
	return best
}

// comparison finds the record that compares two arms, in either order, and
// says whether it is turned round. The verdict's metric wins over others.
func (v *view) comparison(a, b string) (c *compare.Comparison, turned bool) {
	metric := ""
	if v.doc.Verdict != nil {
		metric = v.doc.Verdict.Metric
	}
	for i := range v.doc.Comparisons {
		x := &v.doc.Comparisons[i]
		if x.Control {
			continue
		}
		same, other := x.A == a && x.B == b, x.A == b && x.B == a
		if !same && !other {
			continue
		}
		if c == nil || (x.Metric == metric && c.Metric != metric) {
			c, turned = x, other
		}
	}
	return c, turned
}

// perSecond is a count per second over an arm's valid trials.
func (v *view) perSecond(a *compare.Arm, count func(*compare.Trial) *uint64) *float64 {
	var n, s float64
	some := false
	for _, t := range v.trialsOf(a) {
		if c := count(t); c != nil && t.Seconds > 0 {
			d := t.Seconds
			if t.ReceiveSeconds != nil { // until the last one was over
				d = max(d, *t.ReceiveSeconds)
			}
			n, s, some = n+float64(*c), s+d, true
		}
	}
	if !some {
		return nil
	}
	return compare.Num(n / s)
}

// mean is a figure's mean over an arm's valid trials that have it; nil when none has.
func (v *view) mean(a *compare.Arm, of func(*compare.Trial) *float64) *float64 {
	var sum, n float64
	for _, t := range v.trialsOf(a) {
		if f := of(t); f != nil {
			sum, n = sum+*f, n+1
		}
	}
	if n == 0 {
		return nil
	}
	return compare.Num(sum / n)
}

// total sums a count over an arm's valid trials; nil when no trial has it.
func (v *view) total(a *compare.Arm, count func(*compare.Trial) *uint64) *uint64 {
	var n uint64
	some := false
	for _, t := range v.trialsOf(a) {
		if c := count(t); c != nil {
			n, some = n+*c, true
		}
	}
	if !some {
		return nil
	}
	return &n
}

// seconds is the time an arm's valid trials took together.
func (v *view) seconds(a *compare.Arm) float64 {
	var s float64
	for _, t := range v.trialsOf(a) {
		s += t.Seconds
	}
	return s
}

// cpuPerPacket is all CPU time per packet, work and empty polls.
func cpuPerPacket(c compare.CPU) *float64 {
	if c.WorkNsPerPacket == nil {
		return nil
	}
	n := *c.WorkNsPerPacket
	if c.SpinNsPerPacket != nil {
		n += *c.SpinNsPerPacket
	}
	return compare.Num(n)
}

// opt formats an optional number.
func opt(p *float64, format func(float64) string) string {
	if p == nil || math.IsNaN(*p) || math.IsInf(*p, 0) {
		return missing
	}
	return format(*p)
}
