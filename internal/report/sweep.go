// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"twopath/compare"
)

// TextAll writes any number of documents: one as its screen, the cells of a
// sweep as one table, and documents that have nothing in common one after
// another.
func TextAll(w io.Writer, docs []compare.Document, o TextOptions) error {
	p := &page{options: o.withDefaults()}
	switch {
	case len(docs) == 0:
		p.line("No record.")
	case len(docs) == 1 && docs[0].Reproduces == nil:
		p.document(newView(&docs[0]))
	case isReproduction(docs):
		p.reproduction(docs)
	case isSweep(docs):
		p.sweep(docs)
	default:
		saved := p.options.Saved
		p.options.Saved = ""
		for i := range docs {
			if i > 0 {
				p.line("")
			}
			if i == len(docs)-1 {
				p.options.Saved = saved
			}
			p.document(newView(&docs[i]))
		}
	}
	return p.writeTo(w)
}

// isSweep says whether the documents are cells of one run: the same test on
// the same rig and host, each at another size or rate.
func isSweep(docs []compare.Document) bool {
	first := &docs[0]
	if first.Reproduces != nil {
		return false
	}
	seen := map[string]bool{}
	for i := range docs {
		d := &docs[i]
		if d.Test != first.Test || d.Rig.Kind != first.Rig.Kind || d.Rig.Placement != first.Rig.Placement || d.Host.Name != first.Host.Name {
			return false
		}
		if !slices.Equal(d.Argv, first.Argv) {
			return false
		}
		cell := cellName(d)
		if seen[cell] {
			return false
		}
		seen[cell] = true
	}
	return true
}

// cellName is what tells a cell of a sweep from the others.
func cellName(d *compare.Document) string {
	name := d.Traffic.Size.String()
	switch {
	case d.Traffic.Fragments != nil:
		name = d.Traffic.Fragments.Pattern
	case !d.Traffic.Size.IMIX:
		name += " B"
	}
	rate := ", max"
	if d.Search != nil {
		rate = ""
	}
	if d.Traffic.PPS != nil {
		rate = ", " + pps(*d.Traffic.PPS) + " pps"
	}
	if d.Traffic.Queues > 1 {
		rate += ", " + plural(int64(d.Traffic.Queues), "queue")
	}
	return name + rate
}

// sizeText is a cell's first column.
func sizeText(d *compare.Document) string {
	if f := d.Traffic.Fragments; f != nil {
		return f.Pattern
	}
	return d.Traffic.Size.String()
}

func (p *page) sweep(docs []compare.Document) {
	for i := range docs {
		if d := &docs[i]; d.Incomplete {
			p.incompleteCell(d)
		}
	}
	first := &docs[0]
	flows := first.Traffic
	if queuesDiffer(docs) {
		flows.Queues = 0 // a column has them
	}
	if first.Traffic.Capture != nil {
		flows.Flows = 0
	}
	title := append([]string{plural(int64(len(docs)), "cell") + ", sizes with FCS, rates on the wire", flowsText(&flows)}, rigText(&first.Rig), placeText(first))
	p.lines(p.paintFirst(bold, oneLine(first.Test), hangParts(oneLine(first.Test), nonEmpty(title...), "; ", p.options.Width, columns(first.Test)+2)))
	if host := hostText(&first.Host, p.options.Wide); host != "" {
		p.lines(hang("host", host, p.options.Width, 8))
	}
	if s := first.Search; s != nil && len(s.Goals) > 0 {
		p.lines(wrapHanging(goalTitle(s.Goals[0]), p.options.Width, 2))
	}
	names := sweepArms(docs)
	for i, name := range names {
		p.line(p.paint(bold, letter(i)+" "+oneLine(name)))
		p.lines(sweepGrid(p, docs, name).lines(0, p.options.Width))
	}
	p.scaling(docs, names)
	for i := range docs {
		p.followed(newView(&docs[i]))
	}
	if g := p.sweepVerdicts(docs, names); g != nil {
		p.lines(g.lines(0, p.options.Width))
	}
	for i := range docs {
		p.requirements(&docs[i])
	}
	p.sweepMind(docs)
	for i := range docs {
		p.invalid(&docs[i])
	}
	seen := map[string]bool{}
	for i := range docs {
		for _, w := range docs[i].Warnings {
			if key := w.ID + w.Text; !seen[key] {
				seen[key] = true
				p.warnings(&compare.Document{Warnings: []compare.Warning{w}})
			}
		}
	}
	if p.options.Saved != "" {
		p.lines(p.paintFirst(dim, "SAVED", []string{pad("SAVED", labelWidth) + oneLine(p.options.Saved)}))
	}
}

func (p *page) incompleteCell(d *compare.Document) {
	reason := d.Reason
	if reason == "" {
		reason = "it did not come to its end"
	}
	p.lines(p.paintFirst(red, "INCOMPLETE", hang("INCOMPLETE", "at "+cellName(d)+": "+reason, p.options.Width, len("INCOMPLETE")+2)))
}

// sweepArms are the arms of all cells, in the order they first appear.
func sweepArms(docs []compare.Document) []string {
	var names []string
	for i := range docs {
		for _, a := range newView(&docs[i]).arms {
			if !slices.Contains(names, a.Name) {
				names = append(names, a.Name)
			}
		}
	}
	return names
}

// sweepColumn is one column of a sweep's table.
type sweepColumn struct {
	head  string
	cell  bool // it is the cell's, whatever became of the arm
	value func(d *compare.Document, v *view, a *compare.Arm) string
}

// sweepColumns are those of the "64 bytes at line rate" article, so that its figures can be laid beside these, and then
// what XDP_DROP lost of the same load, which is the rig's own doing, and what a packet cost.
func sweepColumns(docs []compare.Document) []sweepColumn {
	type doc = compare.Document
	type arm = compare.Arm
	var out []sweepColumn
	add := func(head string, value func(*doc, *view, *arm) string) {
		out = append(out, sweepColumn{head: head, value: value})
	}
	if queuesDiffer(docs) {
		add("queues", func(d *doc, _ *view, _ *arm) string { return thousands(int64(d.Traffic.Queues)) })
		out[0].cell = true
	}
	add("pps", func(_ *doc, _ *view, a *arm) string { return opt(a.OfferedPPS, pps) })
	add("Mb/s", func(d *doc, _ *view, a *arm) string { return opt(offeredBits(d, a), megabits) })
	add("s", func(_ *doc, v *view, a *arm) string { return fixed(v.seconds(a), 2) })
	add("sent", func(_ *doc, _ *view, a *arm) string { return uthousands(a.Sent) })
	add("received", func(_ *doc, _ *view, a *arm) string { return uthousands(a.Received) })
	add("lost", func(_ *doc, _ *view, a *arm) string { return uthousands(a.Lost) })
	add("", func(_ *doc, _ *view, a *arm) string { return opt(a.LossRatio, percent) })
	if slices.ContainsFunc(docs, func(d doc) bool { return d.Limit != nil && d.Limit.LossRatioAtLoad != nil }) {
		add(limitText(limitName(docs)), func(d *doc, _ *view, _ *arm) string {
			if d.Limit == nil {
				return missing
			}
			return opt(d.Limit.LossRatioAtLoad, percent)
		})
	}
	if slices.ContainsFunc(docs, func(d doc) bool { return newView(&d).echoes() }) {
		for _, q := range quantiles() {
			if q.name == "p90" || q.name == "p99.99" {
				continue
			}
			add(q.name+" us", func(_ *doc, _ *view, a *arm) string {
				if a.LatencyNs == nil {
					return missing
				}
				return opt(q.of(a.LatencyNs), micros)
			})
		}
	}
	add("CPU ns", func(_ *doc, _ *view, a *arm) string { return opt(cpuPerPacket(a.CPU), nanoseconds) })
	return out
}

// limitName is what stands for the ceiling in a sweep's cells.
func limitName(docs []compare.Document) string {
	for i := range docs {
		if l := docs[i].Limit; l != nil {
			return l.Name
		}
	}
	return ""
}

// sweepGrid is one arm over all cells.
func sweepGrid(p *page, docs []compare.Document, name string) *grid {
	if docs[0].Search != nil {
		return searchSweepGrid(p, docs, name)
	}
	columns := sweepColumns(docs)
	g := &grid{page: p, noteLast: true, columns: []align{right}}
	head := []string{"  bytes"}
	if docs[0].Traffic.Fragments != nil {
		head[0] = "  pattern"
	}
	for _, c := range columns {
		g.columns = append(g.columns, right)
		head = append(head, c.head)
	}
	g.columns = append(g.columns, left)
	g.row(append(head, "lost where")...)
	for i := range docs {
		d := &docs[i]
		v := newView(d)
		a := v.arm(name)
		cells := []string{"  " + sizeText(d)}
		for _, c := range columns {
			if !c.cell && (a == nil || !has(a)) {
				cells = append(cells, missing)
				continue
			}
			cells = append(cells, c.value(d, v, a))
		}
		where := ""
		if a != nil {
			where = lostWhere(a)
		}
		g.row(append(cells, where)...)
	}
	return g
}

// rowName is what tells a cell's row from the others of its sweep.
func rowName(docs []compare.Document, i int) string {
	name := sizeText(&docs[i])
	if r := docs[i].Reproduces; r != nil {
		return oneLine(r.Step) + " " + name
	}
	if queuesDiffer(docs) {
		name += " B over " + plural(int64(docs[i].Traffic.Queues), "queue")
	}
	return name
}

// queuesDiffer says whether the cells have different numbers of queues.
func queuesDiffer(docs []compare.Document) bool {
	return slices.ContainsFunc(docs, func(d compare.Document) bool { return d.Traffic.Queues != docs[0].Traffic.Queues })
}

// lostWhere is an arm's ledger in few words, the largest bucket first.
func lostWhere(a *compare.Arm) string {
	known := places()
	rows := slices.Clone(a.Ledger)
	slices.SortStableFunc(rows, func(x, y compare.LedgerRow) int { return cmp.Compare(y.Packets, x.Packets) })
	var parts []string
	for _, r := range rows {
		if r.Packets == 0 {
			continue
		}
		id, answers := strings.CutPrefix(r.At, compare.ReplyRow)
		label := known[id].label
		if label == "" {
			label = id
		}
		if answers {
			label = "answer: " + label
		}
		parts = append(parts, label+" "+uthousands(r.Packets))
	}
	if a.Unexplained > 0 {
		parts = append(parts, "unexplained "+uthousands(a.Unexplained))
	}
	if len(parts) == 1 { // the number is in the column before
		parts[0] = strings.TrimRight(parts[0], " ,0123456789")
	}
	return strings.Join(parts, ", ")
}

// offeredBits is the offered load on the wire in bits per second.
func offeredBits(d *compare.Document, a *compare.Arm) *float64 {
	if a.OfferedPPS == nil || d.Traffic.FrameBytes <= 0 {
		return nil
	}
	return compare.Num(*a.OfferedPPS * (d.Traffic.FrameBytes + compare.WireOverhead) * 8)
}

func megabits(v float64) string { return fixed(v/1e6, 0) }

func (p *page) sweepVerdicts(docs []compare.Document, names []string) *grid {
	call := func(name string) string {
		if i := slices.Index(names, name); i >= 0 {
			return letter(i)
		}
		return oneLine(name)
	}
	g := &grid{page: p, noteLast: true, columns: []align{right, left, left, left}}
	some := false
	g.text("VERDICT per cell", bold)
	for i := range docs {
		c := docs[i].Verdict
		if c == nil {
			continue
		}
		some = true
		v := newView(&docs[i])
		v.callBy = call
		claim, interval := v.sentence(c)
		if c.PHolm != nil {
			interval = strings.Join(nonEmpty(interval, "p "+significant(*c.PHolm)+" over the sweep"), ", ")
		}
		g.row("  "+rowName(docs, i), claim, interval, "-> "+v.wordText(c)).colour(3, wordColour(c.Word))
	}
	if !some {
		return nil
	}
	return g
}

// sweepMind prints each remark once, with the cells it holds for when not all.
func (p *page) sweepMind(docs []compare.Document) {
	var order []string
	cells := map[string][]string{}
	for i := range docs {
		for _, c := range Caveats(&docs[i]) {
			if c.ID == "few-blocks" && docs[i].Reproduces != nil {
				continue // there is no verdict to be too few for
			}
			s := c.String()
			if cells[s] == nil {
				order = append(order, s)
			}
			cells[s] = append(cells[s], rowName(docs, i))
		}
	}
	for i, s := range order {
		if len(cells[s]) < len(docs) {
			order[i] = fmt.Sprintf("%s [at %s]", s, strings.Join(cells[s], ", "))
		}
	}
	if len(order) > 0 {
		p.lines(p.paintFirst(yellow, "MIND", hangParts("MIND", order, " - ", p.options.Width, labelWidth)))
	}
}
