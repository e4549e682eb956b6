// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"twopath/compare"
)

// column is one column of a CSV table: its head, which is the record's JSON
// name, and its cell. A number that is missing is an empty cell, never 0.
type column[T any] struct {
	head string
	cell func(*compare.Document, *T) string
}

// CSV writes one row per trial, of every kind and validity. The ledger is in
// one column, "place=packets" joined by spaces.
func CSV(w io.Writer, docs []compare.Document) error {
	return writeCSV(w, docs, trialColumns(), func(d *compare.Document) []compare.Trial { return d.Trials })
}

// CSVArms writes one row per arm.
func CSVArms(w io.Writer, docs []compare.Document) error {
	return writeCSV(w, docs, armColumns(), func(d *compare.Document) []compare.Arm { return d.Arms })
}

// CSVComparisons writes one row per comparison; the headline is marked.
func CSVComparisons(w io.Writer, docs []compare.Document) error {
	return writeCSV(w, docs, comparisonColumns(), func(d *compare.Document) []compare.Comparison { return d.Comparisons })
}

// CSVGoals writes one row per arm and goal of a search.
func CSVGoals(w io.Writer, docs []compare.Document) error {
	return writeCSV(w, docs, goalColumns(), func(d *compare.Document) []armGoal {
		var rows []armGoal
		for i := range d.Arms {
			for k := range d.Arms[i].Goals {
				rows = append(rows, armGoal{d.Arms[i].Name, d.Arms[i].Goals[k]})
			}
		}
		return rows
	})
}

// armGoal is an arm's result for one goal.
type armGoal struct {
	arm string
	compare.GoalResult
}

func goalColumns() []column[armGoal] {
	text := func(head string, f func(*armGoal) string) column[armGoal] {
		return column[armGoal]{head, func(_ *compare.Document, g *armGoal) string { return f(g) }}
	}
	return []column[armGoal]{
		text("arm", func(g *armGoal) string { return g.arm }),
		text("goal", func(g *armGoal) string { return g.Goal.Name }),
		text("final_trial_seconds", func(g *armGoal) string { return csvFloat(g.Goal.FinalSeconds) }),
		text("duration_sum_seconds", func(g *armGoal) string { return csvFloat(g.Goal.SumSeconds) }),
		text("loss_ratio", func(g *armGoal) string { return csvFloat(g.Goal.LossRatio) }),
		text("exceed_ratio", func(g *armGoal) string { return csvFloat(g.Goal.ExceedRatio) }),
		text("width", func(g *armGoal) string { return csvFloat(g.Goal.Width) }),
		text("initial_trial_seconds", func(g *armGoal) string { return csvFloat(g.Goal.InitialSeconds) }),
		text("regular", func(g *armGoal) string { return strconv.FormatBool(g.Regular) }),
		text("irregular", func(g *armGoal) string { return string(g.Irregular) }),
		text("because", func(g *armGoal) string { return g.Because }),
		text("lower_pps", func(g *armGoal) string { return csvNumber(g.LowerPPS) }),
		text("upper_pps", func(g *armGoal) string { return csvNumber(g.UpperPPS) }),
		text("conditional_pps", func(g *armGoal) string { return csvNumber(g.ConditionalPPS) }),
	}
}

func writeCSV[T any](w io.Writer, docs []compare.Document, columns []column[T], rows func(*compare.Document) []T) error {
	all := append(cellColumns[T](), columns...)
	c := csv.NewWriter(w)
	record := make([]string, len(all))
	for i, col := range all {
		record[i] = col.head
	}
	if err := c.Write(record); err != nil {
		return fmt.Errorf("csv report: %w", err)
	}
	for i := range docs {
		d := &docs[i]
		list := rows(d)
		for k := range list {
			for n, col := range all {
				record[n] = col.cell(d, &list[k])
			}
			if err := c.Write(record); err != nil {
				return fmt.Errorf("csv report: %w", err)
			}
		}
	}
	c.Flush()
	if err := c.Error(); err != nil {
		return fmt.Errorf("csv report: %w", err)
	}
	return nil
}

// cellColumns say which cell of which run a row belongs to.
func cellColumns[T any]() []column[T] {
	return []column[T]{
		{"test", func(d *compare.Document, _ *T) string { return d.Test }},
		{"run_started", func(d *compare.Document, _ *T) string { return timeText(d.Started) }},
		{"host", func(d *compare.Document, _ *T) string { return d.Host.Name }},
		{"kernel", func(d *compare.Document, _ *T) string { return d.Host.Kernel }},
		{"rig", func(d *compare.Document, _ *T) string { return d.Rig.Kind }},
		{"placement", func(d *compare.Document, _ *T) string { return d.Rig.Placement }},
		{"size_bytes", func(d *compare.Document, _ *T) string { return d.Traffic.Size.String() }},
		{"rate_pps", func(d *compare.Document, _ *T) string { return csvNumber(d.Traffic.PPS) }},
		{"flows", func(d *compare.Document, _ *T) string { return strconv.Itoa(d.Traffic.Flows) }},
		{"queues", func(d *compare.Document, _ *T) string { return strconv.Itoa(d.Traffic.Queues) }},
	}
}

func trialColumns() []column[compare.Trial] {
	type trial = compare.Trial
	text := func(head string, f func(*trial) string) column[trial] {
		return column[trial]{head, func(_ *compare.Document, t *trial) string { return f(t) }}
	}
	count := func(head string, f func(*trial) uint64) column[trial] {
		return text(head, func(t *trial) string { return strconv.FormatUint(f(t), 10) })
	}
	optional := func(head string, f func(*trial) *uint64) column[trial] {
		return text(head, func(t *trial) string { return csvCount(f(t)) })
	}
	cpu := func(head string, f func(*compare.CPU) *float64) column[trial] {
		return text(head, func(t *trial) string {
			if t.CPU == nil {
				return ""
			}
			return csvNumber(f(t.CPU))
		})
	}
	latency := func(head string, f func(*compare.Latency) *float64) column[trial] {
		return text(head, func(t *trial) string {
			if t.LatencyNs == nil {
				return ""
			}
			return csvNumber(f(t.LatencyNs))
		})
	}
	return []column[trial]{
		text("arm", func(t *trial) string { return t.Arm }),
		text("kind", func(t *trial) string { return string(t.Kind) }),
		text("block", func(t *trial) string { return strconv.Itoa(t.Block) }),
		text("position", func(t *trial) string { return strconv.Itoa(t.Position) }),
		text("attempt", func(t *trial) string { return strconv.Itoa(t.Attempt) }),
		text("run_id", func(t *trial) string { return strconv.FormatUint(uint64(t.RunID), 10) }),
		text("started", func(t *trial) string { return timeText(t.Started) }),
		text("valid", func(t *trial) string { return strconv.FormatBool(t.Valid) }),
		text("invalid_because", func(t *trial) string { return t.InvalidBecause }),
		text("seconds", func(t *trial) string { return csvFloat(t.Seconds) }),
		text("load_pps", func(t *trial) string { return csvNumber(t.LoadPPS) }),
		count("offered", func(t *trial) uint64 { return t.Offered }),
		optional("handed", func(t *trial) *uint64 { return t.Handed }),
		count("sent", func(t *trial) uint64 { return t.Sent }),
		count("received", func(t *trial) uint64 { return t.Received }),
		count("lost", func(t *trial) uint64 { return t.Lost }),
		count("unexplained", func(t *trial) uint64 { return t.Unexplained }),
		text("unsent", func(t *trial) string { return ledgerCell(t.Unsent) }),
		text("ledger", func(t *trial) string { return ledgerCell(t.Ledger) }),
		count("duplicate", func(t *trial) uint64 { return t.Duplicate }),
		count("reordered", func(t *trial) uint64 { return t.Reordered }),
		count("corrupt", func(t *trial) uint64 { return t.Corrupt }),
		count("foreign", func(t *trial) uint64 { return t.Foreign }),
		count("late", func(t *trial) uint64 { return t.Late }),
		count("late_max_ns", func(t *trial) uint64 { return t.LateMaxNs }),
		text("per_worker", func(t *trial) string { return countsCell(t.PerWorker) }),
		text("sent_pps", func(t *trial) string { return csvFloat(t.SentPPS()) }),
		text("received_pps", func(t *trial) string { return csvFloat(t.ReceivedPPS()) }),
		text("loss_ratio", func(t *trial) string { return csvFloat(t.LossRatio()) }),
		cpu("cpu.work_ns_per_packet", func(c *compare.CPU) *float64 { return c.WorkNsPerPacket }),
		cpu("cpu.spin_ns_per_packet", func(c *compare.CPU) *float64 { return c.SpinNsPerPacket }),
		cpu("cpu.cores", func(c *compare.CPU) *float64 { return c.Cores }),
		text("tsc_per_packet", func(t *trial) string { return csvNumber(t.TSCPerPacket) }),
		optional("opened", func(t *trial) *uint64 { return t.Opened }),
		optional("completed", func(t *trial) *uint64 { return t.Completed }),
		optional("requests", func(t *trial) *uint64 { return t.Requests }),
		optional("errors", func(t *trial) *uint64 {
			if t.Errors == nil {
				return nil
			}
			return &t.Errors.Total
		}),
		text("latency_count", func(t *trial) string {
			if t.LatencyNs == nil {
				return ""
			}
			return strconv.FormatUint(t.LatencyNs.Count, 10)
		}),
		latency("latency_min_ns", func(l *compare.Latency) *float64 { return l.Min }),
		latency("latency_p50_ns", func(l *compare.Latency) *float64 { return l.P50 }),
		latency("latency_p90_ns", func(l *compare.Latency) *float64 { return l.P90 }),
		latency("latency_p99_ns", func(l *compare.Latency) *float64 { return l.P99 }),
		latency("latency_p999_ns", func(l *compare.Latency) *float64 { return l.P999 }),
		latency("latency_p9999_ns", func(l *compare.Latency) *float64 { return l.P9999 }),
		latency("latency_max_ns", func(l *compare.Latency) *float64 { return l.Max }),
		latency("latency_mean_ns", func(l *compare.Latency) *float64 { return l.Mean }),
		latency("latency_jitter_ns", func(l *compare.Latency) *float64 { return l.Jitter }),
		text("latency_base", func(t *trial) string {
			if t.LatencyNs == nil {
				return ""
			}
			return t.LatencyNs.Base
		}),
		text("late_mean_ns", func(t *trial) string { return csvNumber(t.LateMeanNs) }),
	}
}

// countsCell is a list of counts in one cell, as in "12;13".
func countsCell(counts []uint64) string {
	parts := make([]string, len(counts))
	for i, n := range counts {
		parts[i] = strconv.FormatUint(n, 10)
	}
	return strings.Join(parts, ";")
}

func armColumns() []column[compare.Arm] {
	type arm = compare.Arm
	text := func(head string, f func(*arm) string) column[arm] {
		return column[arm]{head, func(_ *compare.Document, a *arm) string { return f(a) }}
	}
	count := func(head string, f func(*arm) uint64) column[arm] {
		return text(head, func(a *arm) string { return strconv.FormatUint(f(a), 10) })
	}
	out := []column[arm]{
		text("arm", func(a *arm) string { return a.Name }),
		text("engine", engineOf),
		{"effective", func(d *compare.Document, a *arm) string { return newView(d).effective(a) }},
		text("trials", func(a *arm) string { return strconv.Itoa(a.Trials) }),
		text("valid", func(a *arm) string { return strconv.Itoa(a.Valid) }),
		text("handed", func(a *arm) string { return csvCount(a.Handed) }),
		count("sent", func(a *arm) uint64 { return a.Sent }),
		count("received", func(a *arm) uint64 { return a.Received }),
		count("lost", func(a *arm) uint64 { return a.Lost }),
		text("unsent", func(a *arm) string { return ledgerCell(a.Unsent) }),
		text("ledger", func(a *arm) string { return ledgerCell(a.Ledger) }),
		count("duplicate", func(a *arm) uint64 { return a.Duplicate }),
		count("reordered", func(a *arm) uint64 { return a.Reordered }),
		count("corrupt", func(a *arm) uint64 { return a.Corrupt }),
		count("foreign", func(a *arm) uint64 { return a.Foreign }),
		text("per_worker", func(a *arm) string { return countsCell(a.PerWorker) }),
		text("wire_bps", func(a *arm) string { return csvNumber(a.WireBPS) }),
	}
	for _, q := range quantiles() {
		out = append(out, text("all_trials_latency_"+strings.ReplaceAll(q.name, ".", "")+"_ns", func(a *arm) string {
			if a.LatencyNs == nil {
				return ""
			}
			return csvNumber(q.of(a.LatencyNs))
		}))
	}
	for _, m := range compare.Metrics() {
		out = append(out, text(m.Name, func(a *arm) string { return csvNumber(m.OfArm(a)) }))
	}
	return out
}

func comparisonColumns() []column[compare.Comparison] {
	type comparison = compare.Comparison
	text := func(head string, f func(*comparison) string) column[comparison] {
		return column[comparison]{head, func(_ *compare.Document, c *comparison) string { return f(c) }}
	}
	end := func(i int) func(*comparison) string {
		return func(c *comparison) string {
			if c.CI == nil {
				return ""
			}
			return csvFloat(c.CI[i])
		}
	}
	return []column[comparison]{
		{"headline", func(d *compare.Document, c *comparison) string {
			v := d.Verdict
			return strconv.FormatBool(v != nil && v.A == c.A && v.B == c.B && v.Metric == c.Metric && v.Control == c.Control)
		}},
		text("a", func(c *comparison) string { return c.A }),
		text("b", func(c *comparison) string { return c.B }),
		text("metric", func(c *comparison) string { return c.Metric }),
		text("a_value", func(c *comparison) string { return csvNumber(c.AValue) }),
		text("b_value", func(c *comparison) string { return csvNumber(c.BValue) }),
		text("ratio_is", func(c *comparison) string { return c.RatioIs }),
		text("ratio", func(c *comparison) string { return csvNumber(c.Ratio) }),
		text("ci_low", end(0)),
		text("ci_high", end(1)),
		text("ci_level", func(c *comparison) string { return csvFloat(c.CILevel) }),
		text("blocks", func(c *comparison) string { return strconv.Itoa(c.Blocks) }),
		text("valid_trials", func(c *comparison) string { return strconv.Itoa(c.ValidTrials) }),
		text("trials", func(c *comparison) string { return strconv.Itoa(c.Trials) }),
		text("p", func(c *comparison) string { return csvNumber(c.P) }),
		text("p_holm", func(c *comparison) string { return csvNumber(c.PHolm) }),
		text("bound", func(c *comparison) string { return string(c.Bound) }),
		text("word", func(c *comparison) string { return string(c.Word) }),
		text("because", func(c *comparison) string { return c.Because }),
		text("control", func(c *comparison) string { return strconv.FormatBool(c.Control) }),
	}
}

func ledgerCell(rows []compare.LedgerRow) string {
	var parts []string
	for _, r := range rows {
		parts = append(parts, r.At+"="+strconv.FormatUint(r.Packets, 10))
	}
	return strings.Join(parts, " ")
}

func csvNumber(p *float64) string {
	if p == nil {
		return ""
	}
	return csvFloat(*p)
}

func csvFloat(v float64) string {
	if !finite(v) {
		return ""
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

func csvCount(p *uint64) string {
	if p == nil {
		return ""
	}
	return strconv.FormatUint(*p, 10)
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
