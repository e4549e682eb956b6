// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strings"

	"twopath/compare"
)

// DiffText writes a diff as a table, its environment warnings first.
func DiffText(w io.Writer, r *DiffResult, o TextOptions) error {
	p := &page{options: o.withDefaults()}
	for i, line := range r.Environment {
		word := ""
		if i == 0 {
			word = "WARNING"
			p.label(word, yellow, "the two runs were not made under the same conditions; any of this may be the reason for a change:")
		}
		p.lines(wrap(line, p.options.Width, strings.Repeat(" ", labelWidth)))
	}
	for _, line := range r.Doubts {
		p.label("WARNING", yellow, line)
	}
	cell := ""
	var g *grid
	flush := func() {
		if g != nil {
			p.lines(g.lines(0, p.options.Width))
		}
	}
	for _, row := range r.Rows {
		if g == nil || row.Cell != cell {
			flush()
			cell = row.Cell
			g = &grid{page: p, columns: []align{left, left, right, right, right, right, left}}
			g.text(cell, bold)
			g.row("  arm", "metric", "old", "new", "change", "spread", "")
		}
		g.row("  "+row.Arm, metricText(row.Metric), diffNumber(row.Metric, row.Old), diffNumber(row.Metric, row.New), changeText(row), opt(row.Spread, percent), string(row.Word)).
			colour(6, diffColour(row.Word))
	}
	flush()
	for _, u := range r.Unmatched {
		p.label("ONLY", yellow, u)
	}
	p.label("RESULT", bold, r.resultText())
	return p.writeTo(w)
}

func diffNumber(metric string, v *float64) string {
	if metric == compare.MetricLoss {
		return opt(v, percent)
	}
	s := opt(v, pps)
	if unit := metricUnit(metric); unit != "" && s != missing {
		s += " " + unit
	}
	return s
}

// changeText is the change with the sign of the number itself, not of its merit.
func changeText(row DiffRow) string {
	if row.Change == nil || row.Old == nil || row.New == nil {
		return missing
	}
	share := math.Abs(*row.Change)
	sign := "+"
	switch {
	case *row.New == *row.Old:
		sign = ""
	case *row.New < *row.Old:
		sign = "-"
	}
	s := sign + percent(share)
	if row.Metric == compare.MetricLoss {
		s = sign + strings.TrimSuffix(percent(share), " %") + " points"
	}
	return s
}

func diffColour(w DiffWord) colour {
	switch w {
	case Better:
		return green
	case Worse:
		return red
	case Same:
		return dim
	}
	return yellow
}

func (r *DiffResult) resultText() string {
	count := map[DiffWord]int{}
	var worst *DiffRow
	for i := range r.Rows {
		row := &r.Rows[i]
		count[row.Word]++
		if row.Word == Worse && (worst == nil || compare.Val(row.Change) > compare.Val(worst.Change)) {
			worst = row
		}
	}
	limit := percent(r.MaxRegress)
	switch {
	case worst != nil:
		return fmt.Sprintf("%s beyond %s; worst: %s of %s, %s", plural(int64(count[Worse]), "regression"), limit, metricText(worst.Metric), worst.Arm, changeText(*worst))
	case len(r.Rows) == 0:
		return "nothing to compare: the two have no arm in the same test, size and rate"
	case count[Unclear] > 0:
		return fmt.Sprintf("%s beyond %s, but the trials of the runs themselves scatter as much: more blocks would tell (--blocks 12)", plural(int64(count[Unclear]), "change"), limit)
	case r.Outcome() == DiffNothing && count[Better]+count[Same] > 0:
		return "some numbers of the old run are missing from the new one, so nothing can be said for them"
	case count[Better]+count[Same] == 0:
		return "nothing to compare: no number is in both"
	}
	return fmt.Sprintf("nothing got worse by more than %s; %d better, %d within the limit", limit, count[Better], count[Same])
}

// DiffJSON writes a diff with its outcome.
func DiffJSON(w io.Writer, r *DiffResult) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	err := e.Encode(struct {
		Schema string `json:"schema"`
		*DiffResult
		Outcome DiffOutcome `json:"outcome"`
	}{"twopath/diff/v1", r, r.Outcome()})
	if err != nil {
		return fmt.Errorf("write diff: %w", err)
	}
	return nil
}
