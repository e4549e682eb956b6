// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"

	"twopath/compare"
)

// What is said otherwise where the SUT answers, and how long answers take is what is measured.

// echoes says whether answers' times are the matter.
func (v *view) echoes() bool {
	return v.any(func(a *compare.Arm) bool { return a.LatencyNs != nil })
}

// pingPong says whether requests waited for the answer before.
func pingPong(doc *compare.Document) bool { return doc.Plan.Mode == compare.ModePingPong }

// micros prints nanoseconds as microseconds without the unit: 4.21, 22.9, 104.9, 3,817.
func micros(ns float64) string {
	v := ns / 1000
	switch {
	case !finite(v):
		return missing
	case math.Abs(v) < 99.95:
		return significant(v)
	case math.Abs(v) < 999.95:
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

// quantiles are the percentiles that are shown, by their names.
func quantiles() []struct {
	name string
	of   func(*compare.Latency) *float64
} {
	return []struct {
		name string
		of   func(*compare.Latency) *float64
	}{
		{"p50", func(l *compare.Latency) *float64 { return l.P50 }},
		{"p90", func(l *compare.Latency) *float64 { return l.P90 }},
		{"p99", func(l *compare.Latency) *float64 { return l.P99 }},
		{"p99.9", func(l *compare.Latency) *float64 { return l.P999 }},
		{"p99.99", func(l *compare.Latency) *float64 { return l.P9999 }},
		{"max", func(l *compare.Latency) *float64 { return l.Max }},
	}
}

// latencyMetrics are the rows of a latency test, over all valid trials of an arm together. Beside each stands what the driver
// itself takes in the responder's place: rig, yardstick and all.
func (v *view) latencyMetrics() []metric {
	of := func(get func(*compare.Latency) *float64) func(*compare.Arm) string {
		return func(a *compare.Arm) string {
			if a.LatencyNs == nil {
				return missing
			}
			return opt(get(a.LatencyNs), micros)
		}
	}
	few := len(v.arms) > 2 // one line each: not all fit
	var out []metric
	for _, q := range quantiles() {
		if few && (q.name == "p90" || q.name == "p99.99") {
			continue
		}
		note := ""
		if l := v.doc.Limit; l != nil && l.LatencyNs != nil {
			if f := q.of(l.LatencyNs); f != nil {
				note = limitText(l.Name) + ": " + micros(*f)
			}
		}
		switch {
		case q.name == "p50":
			note = joinNotes(v.latencyBase(), note)
		case note == "" && v.any(func(a *compare.Arm) bool { return a.LatencyNs != nil && q.of(a.LatencyNs) == nil }):
			note = "-: fewer than 10 answers are beyond"
		}
		out = append(out, metric{"latency " + q.name, "us", of(q.of), note, true})
	}
	out = append(out, metric{"jitter", "us", of(func(l *compare.Latency) *float64 { return l.Jitter }),
		"mean difference from the answer before (RFC 3393)", true})
	if !few {
		out = append(out, metric{"answers", "", func(a *compare.Arm) string {
			if a.LatencyNs == nil {
				return missing
			}
			return uthousands(a.LatencyNs.Count)
		}, "whose times these are", true})
	}
	if !pingPong(v.doc) {
		out = append(out, metric{"asked late", "us", func(a *compare.Arm) string { return opt(a.LateMeanNs, micros) }, v.lateNote(), true})
	}
	return out
}

// lateNote is how far the requests were behind their schedule at worst.
func (v *view) lateNote() string {
	var most uint64
	for _, a := range v.arms {
		most = max(most, a.LateMaxNs)
	}
	return fmt.Sprintf("the sender's own lateness, in the above; at most %s us", micros(float64(most)))
}

func joinNotes(a, b string) string {
	if a != "" && b != "" {
		return a + "; " + b
	}
	return a + b
}

// echoCaveats say what the times hold besides the responder.
func echoCaveats(v *view) []Caveat {
	if !v.echoes() {
		return nil
	}
	var out []Caveat
	if v.doc.Rig.Kind == "veth" && v.doc.Plan.PeerNAPI != "threaded" {
		out = append(out, one("echo-meter", "--peer-napi threaded", "the answers are metered on the SUT's core, before it goes on: alike for all arms")...)
	}
	if pingPong(v.doc) {
		out = append(out, one("ping-pong", "--mode open", "one request at a time: while an answer is late nobody asks, so a stall counts once")...)
	}
	return out
}

// tailText is the line under a verdict on medians: how the 99th percentiles compare.
func (v *view) tailText(c *compare.Comparison) string {
	if c.Metric != compare.MetricP50 {
		return ""
	}
	for i := range v.doc.Comparisons {
		t := &v.doc.Comparisons[i]
		if t.Control || t.Metric != compare.MetricP99 || t.A != c.A || t.B != c.B || t.AValue == nil || t.BValue == nil || t.Ratio == nil {
			continue
		}
		ci := ""
		if t.CI != nil {
			ci = fmt.Sprintf(" [%s .. %s]", ratioNumber(t.CI[0]), ratioNumber(t.CI[1]))
		}
		return fmt.Sprintf("99th percentile of a trial: %s %s us, %s %s us; %s = %s%s -> %s", v.call(t.A), micros(*t.AValue), v.call(t.B), micros(*t.BValue),
			v.reletter(t, "A/B"), ratioText(*t.Ratio), ci, t.Word)
	}
	return ""
}
