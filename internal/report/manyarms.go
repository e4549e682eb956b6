// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"twopath/compare"
)

// manyArms is the screen for three arms and more.
func (p *page) manyArms(v *view) {
	p.armsFitting(v)
	if p.options.Wide || len(v.arms) <= 6 {
		p.line(p.paint(bold, "effective"))
		for i, a := range v.arms {
			p.lines(hang("  "+letter(i), v.effective(a), p.options.Width, 6))
		}
	}
	if !v.any(has) {
		return
	}
	g := &grid{page: p, noteLast: true, columns: []align{left}}
	header := []string{""}
	for i := range v.arms {
		g.columns = append(g.columns, right)
		header = append(header, letter(i))
	}
	g.columns = append(g.columns, left)
	g.text(v.ledgerTitle(), bold)
	g.row(header...)
	for _, r := range v.ledgerRows(p.options.Wide) {
		row := g.row(append(append([]string{"  " + r.label}, r.values...), r.note)...)
		if r.bad {
			row.colour(0, red)
		}
	}
	if g.numbersWidth() <= p.options.Width {
		p.lines(g.lines(0, p.options.Width))
		return
	}
	p.line(p.paint(bold, v.ledgerTitle()))
	for i, a := range v.arms {
		p.lines(hang("  "+letter(i), armLedgerText(v, i, a), p.options.Width, 6))
	}
}

// armsFitting prints the arms as a table, or, where it would not fit, one arm
// after the other.
func (p *page) armsFitting(v *view) {
	g := armTable(p, v)
	if g.numbersWidth() <= p.options.Width {
		p.lines(g.lines(0, p.options.Width))
		return
	}
	head := g.rows[0].cells
	for _, row := range g.rows[1:] {
		p.line(p.paint(bold, strings.TrimSpace(oneLine(row.cells[0]))))
		var parts []string
		for i := 1; i < len(row.cells); i++ {
			parts = append(parts, head[i]+" "+row.cells[i])
		}
		p.lines(wrap(strings.Join(parts, ", "), p.options.Width, "    "))
	}
}

// numbersWidth is the width of a grid without its remarks.
func (g *grid) numbersWidth() int {
	n := 0
	for i, w := range g.widths() {
		if g.noteLast && i == len(g.columns)-1 {
			break
		}
		n += w + 2
	}
	return n - 2
}

// armLedgerText is one arm's ledger in running text.
func armLedgerText(v *view, i int, a *compare.Arm) string {
	if !has(a) {
		return missing
	}
	parts := []string{}
	for _, r := range v.ledgerRows(false) {
		if r.values[i] != "" && (r.values[i] != "0" || r.label == "unexplained" || r.label == v.countedBy()) {
			parts = append(parts, r.label+" "+r.values[i])
		}
	}
	return strings.Join(parts, ", ")
}

// armTable lays three or more arms out as rows, each with its ratio to the
// best kernel arm.
func armTable(p *page, v *view) *grid {
	best := v.bestKernel()
	g := &grid{page: p, columns: []align{left}}
	header := []string{"  arm"}
	metrics := v.metrics()
	for _, m := range metrics {
		name := m.name
		if m.unit != "" {
			name += " " + m.unit
		}
		header = append(header, tableHead(name))
		g.columns = append(g.columns, right)
	}
	if best != nil {
		header = append(header, "of "+v.call(best.Name))
		g.columns = append(g.columns, right)
	}
	g.row(header...)
	for i, a := range v.arms {
		cells := []string{"  " + letter(i) + " " + a.Name}
		for _, m := range metrics {
			cells = append(cells, m.value(a))
		}
		if best != nil {
			cells = append(cells, v.ratioTo(best, a))
		}
		g.row(cells...)
	}
	return g
}

// tableHead shortens a row's name to a column's head.
func tableHead(name string) string {
	switch name {
	case "offered pps", "sent pps", "received pps":
		return name
	case "on the wire Gb/s":
		return "Gb/s"
	case "CPU/packet ns":
		return "CPU ns/pkt"
	case "cores per Mpps":
		return "cores/Mpps"
	case "TSC/packet cycles":
		return "TSC/pkt"
	}
	return name
}

// ratioTo is an arm's ratio to the best kernel arm, as its comparison found it,
// above 1 when the arm is better. Without one it is the ratio of medians, with
// a '~' since nothing was tested.
func (v *view) ratioTo(best, a *compare.Arm) string {
	if a == best {
		return "1"
	}
	if c, turned := v.comparison(best.Name, a.Name); c != nil && c.Ratio != nil {
		r := *c.Ratio
		if turned {
			r = 1 / r
		}
		return ratioText(r)
	}
	if a.ReceivedPPS != nil && best.ReceivedPPS != nil && *best.ReceivedPPS > 0 {
		return "~" + ratioText(*a.ReceivedPPS / *best.ReceivedPPS)
	}
	return missing
}
