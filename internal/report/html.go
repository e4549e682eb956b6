// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed" // the page's template
	"fmt"
	"html/template"
	"io"
	"slices"
	"strings"

	"twopath/compare"
)

//go:embed page.html.tmpl
var pageTemplate string

// htmlTable is a table of text. Columns are numbers unless words says not.
type htmlTable struct {
	Head  []string
	Words int // how many columns from the left hold words
	Last  bool
	Rows  [][]string
}

// Class is the class of a column's cells.
func (t htmlTable) Class(i int) string {
	if i < t.Words || (t.Last && i == len(t.Head)-1) {
		return "w"
	}
	return "n"
}

type htmlVerdict struct {
	Claim, Basis, Word, Class string
	Explanations              []string
}

// htmlSection is one document of the page.
type htmlSection struct {
	ID, Name, Test, Title string
	Incomplete            string
	Verdict               *htmlVerdict
	Controls              []string
	Goals                 []htmlGoal
	Arms                  htmlTable
	Forest                *forest
	Ledger                *ledgerChart
	LedgerTitle           string
	LedgerTable           htmlTable
	Dots                  *dotChart
	Caveats               []Caveat
	Warnings              []compare.Warning
	Invalid               []string
	Requirements          []compare.RequirementResult
	Environment           htmlTable
	Settings              htmlTable
	Candidates            htmlTable
	Trials                htmlTable
	Comparisons           htmlTable
	Latency               htmlTable
}

type htmlPage struct {
	Title    string
	Sweep    *sweepChart
	Cells    htmlTable
	Verdicts htmlTable
	Sections []htmlSection
	Commands []string
	Version  string
}

// HTML writes any number of documents as one self-contained page: no script,
// nothing loaded from elsewhere, readable in the dark and on paper.
func HTML(w io.Writer, docs []compare.Document) error {
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return fmt.Errorf("parse page template: %w", err)
	}
	page := htmlPage{Title: "twopath"}
	if len(docs) > 0 {
		page.Title += ": " + docs[0].Test
		page.Version = docs[0].Version
	}
	seen := map[string]bool{}
	for i := range docs {
		page.Sections = append(page.Sections, section(i, &docs[i]))
		if c := commandLine(docs[i].Argv); c != "" && !seen[c] {
			seen[c] = true
			page.Commands = append(page.Commands, c)
		}
	}
	if len(docs) > 1 {
		page.Cells, page.Verdicts = cellsTable(docs), verdictsTable(docs)
		if isSweep(docs) && docs[0].Search == nil {
			page.Sweep = newSweepChart(docs)
		}
	}
	if err := t.Execute(w, page); err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

func section(i int, doc *compare.Document) htmlSection {
	v := newView(doc)
	s := htmlSection{
		ID: fmt.Sprintf("r%d", i+1), Name: cellName(doc), Test: doc.Test, Title: strings.Join(titleParts(doc), "; "),
		Controls: v.controlTexts(), Caveats: Caveats(doc), Warnings: doc.Warnings, Requirements: doc.Requirements,
		LedgerTitle: v.ledgerTitle(),
		Forest:      newForest(v), Ledger: newLedgerChart(v), Dots: newDotChart(v),
		Goals: goalTables(v),
		Arms:  armsTable(v), LedgerTable: ledgerTable(v), Environment: environmentTable(doc), Settings: settingsTable(v),
		Candidates: candidatesTable(v), Trials: trialsTable(doc), Comparisons: comparisonsTable(doc), Latency: latencyTable(v),
	}
	if doc.Search != nil { // trials at many loads have no one loss, and the comparison no interval
		s.Forest, s.Ledger, s.Dots, s.LedgerTable, s.LedgerTitle = nil, nil, nil, htmlTable{}, ""
	}
	if doc.Incomplete {
		s.Incomplete = doc.Reason
		if s.Incomplete == "" {
			s.Incomplete = "the run did not come to its end"
		}
	}
	if c := doc.Verdict; c != nil {
		claim, interval := v.sentence(c)
		s.Verdict = &htmlVerdict{Claim: claim, Basis: strings.Join(nonEmpty(interval, basis(c)), ", "), Word: v.wordText(c), Class: wordClass(c.Word), Explanations: v.explanations(c)}
		if doc.Search == nil {
			s.Verdict.Explanations = append(s.Verdict.Explanations, statisticsText(c))
		}
	}
	for k := range doc.Trials {
		if !doc.Trials[k].Valid {
			s.Invalid = append(s.Invalid, invalidText(&doc.Trials[k]))
		}
	}
	return s
}

func wordClass(w compare.Word) string {
	switch w {
	case compare.Faster, compare.Slower:
		return "shown"
	case compare.NotComparable:
		return "bad"
	}
	return "open"
}

func armsTable(v *view) htmlTable {
	if len(v.arms) > 2 {
		return armsTableByRow(v)
	}
	t := htmlTable{Head: []string{""}, Words: 1, Last: true}
	effective := []string{"effective"}
	for i, a := range v.arms {
		t.Head = append(t.Head, letter(i)+" "+a.Name)
		effective = append(effective, v.effective(a))
	}
	t.Head = append(t.Head, "")
	t.Rows = append(t.Rows, append(effective, ""))
	for _, m := range v.metrics() {
		row := []string{strings.Join(nonEmpty(m.name, parens(m.unit)), " ")}
		for _, a := range v.arms {
			row = append(row, m.value(a))
		}
		t.Rows = append(t.Rows, append(row, m.note))
	}
	return t
}

// armsTableByRow is the table of three arms and more: each is a row.
func armsTableByRow(v *view) htmlTable {
	best := v.bestKernel()
	metrics := v.metrics()
	t := htmlTable{Head: []string{"arm"}, Words: 1}
	for _, m := range metrics {
		t.Head = append(t.Head, strings.Join(nonEmpty(m.name, parens(m.unit)), " "))
	}
	if best != nil {
		t.Head = append(t.Head, "ratio to "+v.call(best.Name))
	}
	for i, a := range v.arms {
		row := []string{letter(i) + " " + a.Name}
		for _, m := range metrics {
			row = append(row, m.value(a))
		}
		if best != nil {
			row = append(row, v.ratioTo(best, a))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func ledgerTable(v *view) htmlTable {
	t := htmlTable{Head: []string{"place"}, Words: 1, Last: true}
	for i := range v.arms {
		t.Head = append(t.Head, letter(i)+" packets")
	}
	t.Head = append(t.Head, "witness")
	for _, r := range v.ledgerRows(true) {
		t.Rows = append(t.Rows, append(append([]string{r.label}, r.values...), r.note))
	}
	return t
}

func environmentTable(doc *compare.Document) htmlTable {
	t := htmlTable{Head: []string{"", ""}, Words: 2}
	add := func(name, value string) {
		if value != "" {
			t.Rows = append(t.Rows, []string{name, value})
		}
	}
	host := func(who string, h *compare.Host) {
		add(who+"host", h.Name)
		add(who+"system", strings.Join(nonEmpty(h.OS, "Linux "+orDash(h.Kernel), h.Arch), ", "))
		cpu := h.CPUModel
		if h.CPUs > 0 {
			cpu = strings.Join(nonEmpty(plural(int64(h.CPUs), "CPU"), h.CPUModel), ", ")
		}
		add(who+"CPU", cpu)
		add(who+"virtual", h.Virtual)
		if h.MemoryBytes > 0 {
			add(who+"memory", memoryText(float64(h.MemoryBytes)))
		}
		for _, k := range sortedKeys(h.Facts) {
			add(who+k, h.Facts[k])
		}
	}
	add("started", timeText(doc.Started))
	if doc.Finished != nil {
		add("finished", timeText(*doc.Finished))
	}
	add("twopath", doc.Version)
	add("seed", uthousands(doc.Seed))
	host("", &doc.Host)
	if doc.PeerHost != nil {
		host("peer ", doc.PeerHost)
	}
	r := &doc.Rig
	add("rig", strings.Join(nonEmpty(r.Kind, r.Driver), ", "))
	add("interfaces", strings.Join(nonEmpty(r.SUT, r.Peer), " and "))
	add("placement", placeText(doc))
	add("sender", senderText(doc))
	if l := doc.Limit; l != nil && l.PPS != nil {
		add("limit of this rig", limitText(l.Name)+" "+pps(*l.PPS)+" pps")
	}
	return t
}

func settingsTable(v *view) htmlTable {
	t := htmlTable{Head: []string{"as read back"}, Words: 1 + len(v.arms)}
	inShort := []string{"in short"}
	values := map[string][]string{}
	var names []string
	for i, a := range v.arms {
		t.Head = append(t.Head, letter(i)+" "+a.Name)
		inShort = append(inShort, v.effective(a))
		for _, s := range settings(a) {
			if values[s[0]] == nil {
				values[s[0]] = make([]string, len(v.arms))
				names = append(names, s[0])
			}
			values[s[0]][i] = s[1]
		}
	}
	t.Rows = append(t.Rows, inShort)
	for _, n := range names {
		row := []string{n}
		for _, value := range values[n] {
			row = append(row, orDash(value))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

func candidatesTable(v *view) htmlTable {
	t := htmlTable{Head: []string{"arm", "setting tried", "received pps", "lost", ""}, Words: 2, Last: true}
	for i, a := range v.arms {
		for _, c := range a.Candidates {
			note := c.Note
			if c.Chosen {
				note = strings.Join(nonEmpty("chosen", note), ", ")
			}
			t.Rows = append(t.Rows, []string{letter(i), c.Setting, opt(c.ReceivedPPS, pps), opt(c.LossRatio, percent), note})
		}
	}
	return t
}

func trialsTable(doc *compare.Document) htmlTable {
	t := htmlTable{Head: []string{"arm", "kind", "block", "position", "attempt", "s", "offered", "sent", "received", "lost", "", "unexplained", "duplicate", "reordered", "corrupt", "foreign", "late", "received pps", "ledger, validity"}, Words: 2, Last: true}
	for i := range doc.Trials {
		r := &doc.Trials[i]
		note := ledgerCell(slices.Concat(r.Unsent, r.Ledger))
		if !r.Valid {
			note = strings.TrimSpace("INVALID: " + r.InvalidBecause + "; " + note)
		}
		if r.LoadPPS != nil {
			note = strings.TrimSpace("at " + pps(*r.LoadPPS) + " pps; " + note)
		}
		t.Rows = append(t.Rows, []string{r.Arm, string(r.Kind), thousands(int64(r.Block)), thousands(int64(r.Position)), thousands(int64(r.Attempt)), fixed(r.Seconds, 3),
			uthousands(r.Offered), uthousands(r.Sent), uthousands(r.Received), uthousands(r.Lost), percent(r.LossRatio()), uthousands(r.Unexplained),
			uthousands(r.Duplicate), uthousands(r.Reordered), uthousands(r.Corrupt), uthousands(r.Foreign), uthousands(r.Late), pps(r.ReceivedPPS()), note})
	}
	return t
}

func comparisonsTable(doc *compare.Document) htmlTable {
	t := htmlTable{Head: []string{"a", "b", "metric", "a", "b", "ratio", "interval", "blocks", "p", "word"}, Words: 3, Last: true}
	for i := range doc.Comparisons {
		c := &doc.Comparisons[i]
		interval := missing
		if c.CI != nil {
			interval = ratioNumber(c.CI[0]) + " .. " + ratioNumber(c.CI[1])
		}
		ratio := opt(c.Ratio, ratioNumber)
		if c.RatioIs != "" {
			ratio = c.RatioIs + " = " + ratio
		}
		word := string(c.Word)
		if c.Control {
			word += " (A/A control)"
		}
		t.Rows = append(t.Rows, []string{c.A, c.B, metricText(c.Metric), opt(c.AValue, significant), opt(c.BValue, significant), ratio, interval,
			thousands(int64(c.Blocks)), opt(c.P, significant), strings.Join(nonEmpty(word, c.Because), ": ")})
	}
	return t
}

// latencyTable has all trials of an arm together first, then each, and the limit.
func latencyTable(v *view) htmlTable {
	t := htmlTable{Head: []string{"arm", "trials", "answers", "min", "p50", "p90", "p99", "p99.9", "p99.99", "max", "jitter"}, Words: 2}
	add := func(name, which string, l *compare.Latency) {
		if l == nil {
			return
		}
		row := []string{name, which, uthousands(l.Count), opt(l.Min, nanoseconds)}
		for _, q := range quantiles() {
			row = append(row, opt(q.of(l), nanoseconds))
		}
		t.Rows = append(t.Rows, append(row, opt(l.Jitter, nanoseconds)))
	}
	for i, a := range v.arms {
		add(letter(i), "all", a.LatencyNs)
	}
	if l := v.doc.Limit; l != nil {
		add(limitText(l.Name), "all", l.LatencyNs)
	}
	for i, a := range v.arms {
		for _, r := range v.trialsOf(a) {
			add(letter(i), "block "+thousands(int64(r.Block)), r.LatencyNs)
		}
	}
	return t
}

func cellsTable(docs []compare.Document) htmlTable {
	if docs[0].Search != nil {
		return searchCells(docs)
	}
	t := htmlTable{Head: []string{"bytes", "arm", "offered pps", "Mb/s on the wire", "s", "sent", "received", "lost", "CPU ns/packet"}, Words: 2}
	for i := range docs {
		d := &docs[i]
		v := newView(d)
		for k, a := range v.arms {
			t.Rows = append(t.Rows, []string{sizeText(d), letter(k) + " " + a.Name, opt(a.OfferedPPS, pps), opt(offeredBits(d, a), megabits), fixed(v.seconds(a), 2),
				uthousands(a.Sent), uthousands(a.Received), opt(a.LossRatio, percent), opt(cpuPerPacket(a.CPU), nanoseconds)})
		}
	}
	return t
}

func verdictsTable(docs []compare.Document) htmlTable {
	t := htmlTable{Head: []string{"cell", "verdict", "interval", "word"}, Words: 4}
	for i := range docs {
		d := &docs[i]
		if d.Verdict == nil {
			continue
		}
		v := newView(d)
		claim, interval := v.sentence(d.Verdict)
		t.Rows = append(t.Rows, []string{cellName(d), claim, interval, v.wordText(d.Verdict)})
	}
	return t
}

// commandLine is what was typed, quoted for a POSIX shell.
func commandLine(argv []string) string {
	quoted := make([]string, len(argv))
	for i, s := range argv {
		quoted[i] = shellQuote(s)
	}
	return strings.Join(quoted, " ")
}

func shellQuote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,/:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
