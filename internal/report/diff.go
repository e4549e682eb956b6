// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"

	"twopath/compare"
)

// DiffWord says what became of one metric of one arm.
type DiffWord string

const (
	Better  DiffWord = "better"       // beyond the limit, to the good
	Worse   DiffWord = "worse"        // beyond the limit, to the bad: a regression
	Same    DiffWord = "within limit" // no more than the limit either way
	Unclear DiffWord = "unclear"      // beyond the limit, but the runs' own trials scatter as much
	Absent  DiffWord = "no number"    // one of the two has no number to compare
)

// DiffRow is one metric of one arm in one cell, old against new.
type DiffRow struct {
	Cell   string   `json:"cell"` // size and rate
	Arm    string   `json:"arm"`
	Metric string   `json:"metric"`
	Unit   string   `json:"unit"`
	Old    *float64 `json:"old"`
	New    *float64 `json:"new"`
	// Change is how much worse (above 0) or better (below 0) the new number is,
	// as a share of the old one; for a loss ratio, the difference of the two.
	Change *float64 `json:"change"`
	// Spread is the larger of the two runs' own spread of that metric over
	// trials: half the interquartile range over the median.
	Spread *float64 `json:"spread"`
	Word   DiffWord `json:"word"`
}

// DiffResult is the comparison of two sets of records.
type DiffResult struct {
	MaxRegress float64   `json:"max_regress"` // 0.05 is 5 %
	Rows       []DiffRow `json:"rows"`
	// Environment lists what differs between the machines, rigs and modes: any
	// of it may be the reason for a change.
	Environment []string `json:"environment"`
	// Unmatched are arms or cells only one side has.
	Unmatched []string `json:"unmatched"`
	// Doubts are reasons not to trust one of the records.
	Doubts []string `json:"doubts"`
}

// DiffOutcome is what a caller decides on.
type DiffOutcome string

const (
	DiffOK        DiffOutcome = "ok"        // nothing got worse than allowed
	DiffRegressed DiffOutcome = "regressed" // something did
	DiffNothing   DiffOutcome = "nothing"   // there was nothing to compare, or not reliably
)

// Outcome sums up: regressed when any row is worse; nothing when no row could
// be compared, a number of the old run is gone, or a change beyond the limit
// is unclear.
func (r *DiffResult) Outcome() DiffOutcome {
	usable, unclear := 0, 0
	for _, row := range r.Rows {
		switch row.Word {
		case Worse:
			return DiffRegressed
		case Unclear:
			unclear++
		case Absent:
			if row.Old != nil {
				unclear++
			}
		case Better, Same:
			usable++
		}
	}
	if usable == 0 || unclear > 0 {
		return DiffNothing
	}
	return DiffOK
}

// ExitCode is the program's exit code for the outcome: 0, 1 for a regression,
// 4 when nothing could be said.
func (r *DiffResult) ExitCode() int {
	switch r.Outcome() {
	case DiffOK:
		return 0
	case DiffRegressed:
		return 1
	}
	return 4
}

// diffMetrics are the metrics a change of which is a regression. Offered rate
// is the plan's, not the arm's; ns_per_packet says again what received says.
func diffMetrics() []compare.Metric {
	var out []compare.Metric
	for _, name := range []string{compare.MetricReceived, compare.MetricLoss, compare.MetricWork, "latency_p50_ns", "latency_p99_ns", "lower_pps"} {
		if m, ok := compare.LookupMetric(name); ok {
			out = append(out, m)
		}
	}
	return out
}

// Diff compares records of two runs, arm by arm in cells of the same test, size
// and rate. maxRegress is the share by which a number may get worse.
func Diff(before, after []compare.Document, maxRegress float64) *DiffResult {
	r := &DiffResult{MaxRegress: maxRegress, Rows: []DiffRow{}, Environment: []string{}, Unmatched: []string{}, Doubts: []string{}}
	used := map[int]bool{}
	for i := range before {
		k := matching(&before[i], after, used)
		if k < 0 {
			r.Unmatched = append(r.Unmatched, "old only: "+diffCell(&before[i]))
			continue
		}
		used[k] = true
		r.cell(&before[i], &after[k])
	}
	for k := range after {
		if !used[k] {
			r.Unmatched = append(r.Unmatched, "new only: "+diffCell(&after[k]))
		}
	}
	return r
}

func matching(d *compare.Document, in []compare.Document, used map[int]bool) int {
	want := diffCell(d)
	for i := range in {
		if !used[i] && diffCell(&in[i]) == want {
			return i
		}
	}
	return -1
}

// diffCell identifies a cell across runs. The rate is compared as asked for,
// since a resolved one may differ in its last digit.
func diffCell(d *compare.Document) string {
	rate := d.Traffic.Rate.String()
	if d.Traffic.PPS != nil {
		rate = pps(math.Round(*d.Traffic.PPS)) + " pps"
	}
	return fmt.Sprintf("%s, %s B, %s, %s", d.Test, d.Traffic.Size, rate, flowsText(&d.Traffic))
}

func (r *DiffResult) cell(before, after *compare.Document) {
	cell := diffCell(before)
	for _, line := range environment(before, after) {
		if !slices.Contains(r.Environment, line) {
			r.Environment = append(r.Environment, line)
		}
	}
	for _, side := range []struct {
		name string
		doc  *compare.Document
	}{{"old", before}, {"new", after}} {
		if side.doc.Incomplete {
			r.Doubts = append(r.Doubts, side.name+" record is incomplete at "+cell)
		}
	}
	bv, av := newView(before), newView(after)
	for _, b := range bv.arms {
		a := av.arm(b.Name)
		if a == nil {
			r.Unmatched = append(r.Unmatched, "old only: "+b.Name+" at "+cell)
			continue
		}
		for _, m := range diffMetrics() {
			if row, ok := diffRow(m, bv, av, b, a, r.MaxRegress); ok {
				row.Cell = cell
				r.Rows = append(r.Rows, row)
			}
		}
	}
	for _, a := range av.arms {
		if bv.arm(a.Name) == nil {
			r.Unmatched = append(r.Unmatched, "new only: "+a.Name+" at "+cell)
		}
	}
}

// diffRow compares one metric; ok is false when neither side has it, or when
// it means nothing there.
func diffRow(m compare.Metric, bv, av *view, b, a *compare.Arm, limit float64) (row DiffRow, ok bool) {
	row = DiffRow{Arm: b.Name, Metric: m.Name, Unit: m.Unit, Old: m.OfArm(b), New: m.OfArm(a), Word: Absent}
	if row.Old == nil && row.New == nil {
		return row, false
	}
	// In a closed loop loss is not judged.
	if m.Name == compare.MetricLoss && (bv.doc.ClosedLoop() || av.doc.ClosedLoop()) {
		return row, false
	}
	if row.Old == nil || row.New == nil {
		return row, true
	}
	before, after := *row.Old, *row.New
	var change float64
	switch {
	case m.Name == compare.MetricLoss:
		change = after - before // a ratio of ratios near zero would mean nothing
	case before == after:
		change = 0
	case before == 0:
		// From nothing to something: beyond any limit, but no share of anything.
		row.Word = Better
		if m.Lower {
			row.Word = Worse
		}
		return row, true
	default:
		change = (after - before) / before
		if !m.Lower {
			change = -change
		}
	}
	row.Change = compare.Num(change)
	if row.Change == nil {
		return row, true
	}
	row.Spread = spread(m, bv.trialsOf(b), av.trialsOf(a))
	switch {
	case math.Abs(change) <= limit:
		row.Word = Same
	case row.Spread != nil && math.Abs(change) <= *row.Spread:
		row.Word = Unclear
	case change > 0:
		row.Word = Worse
	default:
		row.Word = Better
	}
	return row, true
}

// spread is the larger half interquartile range of the two sides, relative to
// the median (of a loss ratio: absolute); nil with fewer than four trials a side.
func spread(m compare.Metric, sides ...[]*compare.Trial) *float64 {
	if m.OfTrial == nil {
		return nil
	}
	worst := 0.0
	for _, trials := range sides {
		var values []float64
		for _, t := range trials {
			if v := m.OfTrial(t); v != nil && finite(*v) {
				values = append(values, *v)
			}
		}
		if len(values) < 4 {
			return nil
		}
		slices.Sort(values)
		half := (compare.Quantile(values, 0.75) - compare.Quantile(values, 0.25)) / 2
		if m.Name != compare.MetricLoss {
			half /= compare.Quantile(values, 0.5)
		}
		if !finite(half) {
			return nil
		}
		worst = max(worst, half)
	}
	return &worst
}
