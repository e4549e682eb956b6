// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"twopath/compare"
)

// search is the screen of a rate search: for each goal a table of the arms.
func (p *page) search(v *view) {
	p.line(p.paint(bold, "effective"))
	for i, a := range v.arms {
		p.lines(hang("  "+letter(i)+" "+oneLine(a.Name), effectiveText(a), p.options.Width, 6+columns(longestName(v))))
	}
	for k := range v.doc.Search.Goals {
		g := &grid{page: p, noteLast: true, columns: []align{left, right, right, right, right, right, right, left}}
		g.text(goalTitle(v.doc.Search.Goals[k]), bold)
		g.row(append([]string{"  pps"}, goalHead()...)...)
		for i, a := range v.arms {
			r := goalOf(a, k)
			row := g.row(append([]string{"  " + letter(i) + " " + a.Name}, v.goalCells(a, r)...)...)
			if r == nil || r.LowerPPS == nil {
				row.colour(1, red)
			} else if !r.Regular {
				row.colour(1, yellow)
			}
		}
		p.lines(g.lines(0, p.options.Width))
	}
}

func longestName(v *view) string {
	longest := ""
	for _, a := range v.arms {
		if name := oneLine(a.Name); columns(name) > columns(longest) {
			longest = name
		}
	}
	return longest
}

// goalTitle names a goal with every attribute, which RFC 9971 asks a report to show.
func goalTitle(g compare.Goal) string {
	name := g.Name
	if name == g.Attributes(",") {
		name = "as given"
	}
	return fmt.Sprintf("Goal %s: loss ratio %s, exceed ratio %s, width %s of the upper bound; trials of %s (the first of %s), duration sum %s", name,
		percent(g.LossRatio), percent(g.ExceedRatio), percent(g.Width), secondsText(g.FinalSeconds), secondsText(g.InitialSeconds), secondsText(g.SumSeconds))
}

func goalOf(a *compare.Arm, k int) *compare.GoalResult {
	if k < len(a.Goals) {
		return &a.Goals[k]
	}
	return nil
}

func goalHead() []string {
	return []string{"lower bound", "upper bound", "conditional", "Gb/s", "trials", "s", "lost at the upper bound"}
}

// goalCells are an arm's cells under goalHead.
func (v *view) goalCells(a *compare.Arm, r *compare.GoalResult) []string {
	n, s := 0, 0.0
	for i := range v.doc.Trials {
		if t := &v.doc.Trials[i]; t.Arm == a.Name && t.Kind == compare.SearchRun {
			n, s = n+1, s+t.Seconds
		}
	}
	cells := []string{missing, missing, missing, missing, thousands(int64(n)), fixed(s, 0), "not searched"}
	if r == nil {
		return cells
	}
	cells[0], cells[1], cells[2] = opt(r.LowerPPS, pps), opt(r.UpperPPS, pps), opt(r.ConditionalPPS, pps)
	if r.ConditionalPPS != nil && v.doc.Traffic.FrameBytes > 0 {
		cells[3] = gbps(*r.ConditionalPPS * (v.doc.Traffic.FrameBytes + compare.WireOverhead) * 8)
	}
	cells[6] = strings.Join(nonEmpty(v.lostAt(a, r), v.irregular(r)), "; ")
	return cells
}

// irregular says why a result is not a regular one; RFC 9971 wants it clearly marked.
func (v *view) irregular(r *compare.GoalResult) string {
	if r.Regular {
		return ""
	}
	what := "IRREGULAR: "
	switch {
	case r.Irregular == compare.AtMaxLoad && r.LowerPPS != nil:
		what = "LOWER BOUND ONLY: "
	case r.LowerPPS == nil:
		what = "NO LOWER BOUND: "
	}
	text := r.Because
	if r.Irregular == compare.AtMaxLoad && v.doc.Search.MaxLoadIs == "generator" && !strings.Contains(text, "generator") {
		text += ", and the generator tops out there"
	}
	return what + text
}

// lostAt is how much an arm lost in its trials at the upper bound of a goal, and where.
func (v *view) lostAt(a *compare.Arm, r *compare.GoalResult) string {
	if r.UpperPPS == nil {
		return ""
	}
	sum, n, sent := compare.Arm{}, 0, 0.0
	for i := range v.doc.Trials {
		t := &v.doc.Trials[i]
		if t.Arm != a.Name || t.Kind != compare.SearchRun || !t.Valid || t.LoadPPS == nil || *t.LoadPPS != *r.UpperPPS {
			continue
		}
		n, sent = n+1, sent+t.SentPPS()
		sum.Sent, sum.Lost, sum.Unexplained = sum.Sent+t.Sent, sum.Lost+t.Lost, sum.Unexplained+t.Unexplained
		for _, row := range t.Ledger {
			i := slices.IndexFunc(sum.Ledger, func(l compare.LedgerRow) bool { return l.At == row.At })
			if i < 0 {
				sum.Ledger = append(sum.Ledger, row)
			} else {
				sum.Ledger[i].Packets += row.Packets
			}
		}
	}
	if sum.Sent == 0 {
		return ""
	}
	if mean := sent / float64(n); mean < *r.UpperPPS*(1-r.Goal.LossRatio)*0.999 {
		return "sent " + pps(mean) + " pps of these"
	}
	if sum.Lost == 0 {
		return "nothing"
	}
	return strings.Join(nonEmpty(percent(float64(sum.Lost)/float64(sum.Sent)), lostWhere(&sum)), ": ")
}

// searchLoads is the title's word on what was tried.
func searchLoads(doc *compare.Document) string {
	s := doc.Search
	if s.MinLoadPPS == nil || s.MaxLoadPPS == nil {
		return "search"
	}
	from := map[string]string{"generator": "what the sender can offer", "line": "line rate", "plan": "as asked"}[s.MaxLoadIs]
	trials := 0
	for i := range doc.Trials {
		if doc.Trials[i].Kind == compare.SearchRun || doc.Trials[i].Kind == compare.Pilot {
			trials++
		}
	}
	return fmt.Sprintf("search from %s to %s pps %s in %s, %s", pps(*s.MinLoadPPS), pps(*s.MaxLoadPPS), parens(from), secondsText(math.Round(s.Seconds)), plural(int64(trials), "trial"))
}

// goalTables are the results of a search for the page, one table a goal.
func goalTables(v *view) []htmlGoal {
	if v.doc.Search == nil {
		return nil
	}
	var out []htmlGoal
	for k, goal := range v.doc.Search.Goals {
		t := htmlTable{Head: append([]string{"arm"}, goalHead()...), Words: 1, Last: true}
		for i, a := range v.arms {
			t.Rows = append(t.Rows, append([]string{letter(i) + " " + a.Name}, v.goalCells(a, goalOf(a, k))...))
		}
		out = append(out, htmlGoal{Title: goalTitle(goal), Table: t})
	}
	return out
}

// searchSweepGrid is one arm over all cells of a sweep of searches, by the first goal.
func searchSweepGrid(p *page, docs []compare.Document, name string) *grid {
	g := &grid{page: p, noteLast: true, columns: []align{right, right, right, right, right, right, right, left}}
	g.row(append([]string{"  bytes"}, goalHead()...)...)
	for i := range docs {
		v := newView(&docs[i])
		if a := v.arm(name); a != nil {
			g.row(append([]string{"  " + sizeText(&docs[i])}, v.goalCells(a, goalOf(a, 0))...)...)
		}
	}
	return g
}

// searchCells are all cells of a sweep of searches for the page.
func searchCells(docs []compare.Document) htmlTable {
	t := htmlTable{Head: append([]string{"bytes", "arm"}, goalHead()...), Words: 2, Last: true}
	for i := range docs {
		v := newView(&docs[i])
		for k, a := range v.arms {
			t.Rows = append(t.Rows, append([]string{sizeText(&docs[i]), letter(k) + " " + a.Name}, v.goalCells(a, goalOf(a, 0))...))
		}
	}
	return t
}

// htmlGoal is one goal's results on the page.
type htmlGoal struct {
	Title string
	Table htmlTable
}

// searchCaveats are about what a search cannot tell.
func searchCaveats(v *view) []Caveat {
	s := v.doc.Search
	if s == nil {
		return nil
	}
	var out []Caveat
	if len(s.Goals) > 0 && s.Goals[0].LossRatio > 0 {
		out = append(out, one("search-loss", "--goal rfc2544", "the goal bears %s of loss, which a machine that stalls now and then needs: this is no RFC 2544 throughput", percent(s.Goals[0].LossRatio))...)
	}
	return append(out, one("search-once", "repeat it", "a search is one sample: its range comes from its bounds and is no confidence interval")...)
}
