// SPDX-License-Identifier: Apache-2.0

package report

import "strings"

// align says on which side of a column the text stands.
type align uint8

const (
	left align = iota
	right
	// justified is left-aligned, but what follows a tab (a unit) goes right.
	justified
)

// grid is a borderless table: two spaces between columns, numbers to the right.
// It fits itself into a width by wrapping its last column, or, when there is no
// room even for that, by printing the last column under its row.
//
// It is laid out by hand rather than with go-pretty, whose text package reads
// the environment when it is loaded; nothing below cmd may.
type grid struct {
	page    *page // paints; may be nil
	columns []align
	rows    []gridRow
	// noteLast says that the last column is a remark that may be wrapped.
	noteLast bool
}

type gridRow struct {
	cells   []string
	span    string // a line over all columns, instead of cells
	left    bool   // this row's cells stand left whatever the column says
	colours map[int]colour
}

func (g *grid) row(cells ...string) *gridRow {
	g.rows = append(g.rows, gridRow{cells: cells})
	return &g.rows[len(g.rows)-1]
}

// text puts a line over all columns.
func (g *grid) text(s string, c colour) {
	g.rows = append(g.rows, gridRow{span: s, colours: map[int]colour{0: c}})
}

// toLeft stands the row's cells to the left: names and words, not numbers.
func (r *gridRow) toLeft() *gridRow { r.left = true; return r }

// colour paints one cell.
func (r *gridRow) colour(i int, c colour) *gridRow {
	if r.colours == nil {
		r.colours = map[int]colour{}
	}
	r.colours[i] = c
	return r
}

// minimumNote is the narrowest column a remark is still readable in.
const minimumNote = 24

// lines renders the grid, each line starting with indent spaces.
func (g *grid) lines(indent, width int) []string {
	widths := g.widths()
	last := len(g.columns) - 1
	below := false
	if g.noteLast && last > 0 {
		room := width - indent
		for _, w := range widths[:last] {
			room -= w + 2
		}
		if room < widths[last] {
			below = room < max(minimumNote, g.longestWord(last))
			widths[last] = room
		}
	}
	var out []string
	for _, row := range g.rows {
		if row.span != "" {
			for i, line := range wrapHanging(row.span, width, 2) {
				if i == 0 {
					line = g.paint(row, 0, line)
				}
				out = append(out, line)
			}
			continue
		}
		out = append(out, g.rowLines(row, widths, indent, width, below)...)
	}
	return out
}

// longestWord is the widest word of a column: wrapping cannot make it narrower.
func (g *grid) longestWord(i int) int {
	n := 0
	for _, row := range g.rows {
		for word := range strings.FieldsSeq(row.cell(i)) {
			n = max(n, columns(word))
		}
	}
	return n
}

func (g *grid) rowLines(row gridRow, widths []int, indent, width int, below bool) []string {
	var b strings.Builder
	b.WriteString(strings.Repeat(" ", indent))
	used := indent
	last := len(g.columns) - 1
	var rest []string
	for i, a := range g.columns {
		cell := row.cell(i)
		if g.noteLast && i == last {
			margin := strings.Repeat(" ", used)
			if below {
				rest = wrap(cell, width, strings.Repeat(" ", indent+6))
				break
			}
			lines := wrap(cell, used+widths[i], margin)
			if len(lines) > 0 {
				b.WriteString(strings.TrimLeft(lines[0], " "))
				rest = lines[1:]
			}
			break
		}
		if row.left && a == right {
			a = left
		}
		text, unit, _ := strings.Cut(cell, "\t")
		space := strings.Repeat(" ", max(widths[i]-columns(text)-columns(unit), 0))
		text = g.paint(row, i, text)
		switch a {
		case right:
			b.WriteString(space + text + unit)
		case justified:
			b.WriteString(text + space + unit)
		default:
			b.WriteString(text + unit + space)
		}
		used += widths[i]
		if i != last {
			b.WriteString("  ")
			used += 2
		}
	}
	return append([]string{strings.TrimRight(b.String(), " ")}, rest...)
}

func (g *grid) paint(row gridRow, i int, s string) string {
	c, ok := row.colours[i]
	if !ok || g.page == nil || c == "" {
		return s
	}
	return g.page.paint(c, s)
}

func (g *grid) widths() []int {
	widths := make([]int, len(g.columns))
	for _, row := range g.rows {
		if row.span != "" {
			continue
		}
		for i := range widths {
			if row.left && g.noteLast && i == len(widths)-2 {
				continue // nothing stands beside it, it may run into the remarks
			}
			text, unit, has := strings.Cut(row.cell(i), "\t")
			n := columns(text) + columns(unit)
			if has && unit != "" {
				n += 2
			}
			widths[i] = max(widths[i], n)
		}
	}
	return widths
}

// cell is one line: what came from outside cannot break the table. The tab
// before a unit is ours and stays.
func (r gridRow) cell(i int) string {
	if i >= len(r.cells) {
		return ""
	}
	text, unit, has := strings.Cut(r.cells[i], "\t")
	if !has {
		return oneLine(text)
	}
	return oneLine(text) + "\t" + oneLine(unit)
}
