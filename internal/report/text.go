// SPDX-License-Identifier: Apache-2.0

package report

import (
	"io"
	"slices"
	"strings"

	"twopath/compare"
)

// labelWidth is where the text behind VERDICT, MIND and the like starts.
const labelWidth = 9

// Text writes one document as the screen a user gets.
func Text(w io.Writer, doc *compare.Document, o TextOptions) error {
	p := &page{options: o.withDefaults()}
	p.document(newView(doc))
	return p.writeTo(w)
}

func (p *page) document(v *view) {
	p.incomplete(v.doc)
	p.head(v.doc)
	if len(v.arms) == 0 {
		p.line("No arm was measured.")
	} else if v.doc.Search != nil {
		p.search(v)
	} else if len(v.arms) <= 2 {
		g := armGrid(p, v)
		armRows(g, v)
		if p.options.Wide {
			settingRows(g, v)
		}
		addLedger(g, v, p.options.Wide)
		p.lines(g.lines(0, p.options.Width))
	} else {
		p.manyArms(v)
	}
	p.followed(v)
	p.verdict(v)
	p.requirements(v.doc)
	p.mind(v)
	p.invalid(v.doc)
	p.warnings(v.doc)
	if p.options.Wide {
		p.lines(trialGrid(p, v).lines(0, p.options.Width))
	}
	p.saved(v)
}

// label prints remarks behind a word in the margin.
func (p *page) label(word string, c colour, text string) {
	p.lines(p.paintFirst(c, word, hang(word, text, p.options.Width, labelWidth)))
}

func (p *page) incomplete(doc *compare.Document) {
	if !doc.Incomplete {
		return
	}
	reason := doc.Reason
	if reason == "" {
		reason = "the run did not come to its end"
	}
	p.lines(p.paintFirst(red, "INCOMPLETE", hang("INCOMPLETE", reason+"; what follows is what was measured until then", p.options.Width, len("INCOMPLETE")+2)))
}

func (p *page) head(doc *compare.Document) {
	test := doc.Test
	if test == "" {
		test = "no test"
	}
	test = oneLine(test)
	p.lines(p.paintFirst(bold, test, hangParts(test, titleParts(doc), "; ", p.options.Width, columns(test)+2)))
	const margin = 8
	host, sender := hostText(&doc.Host, p.options.Wide), senderText(doc)
	switch {
	case host != "" && sender != "" && columns(host)+columns(sender)+margin+14 <= p.options.Width && !p.options.Wide:
		p.line(oneLine(pad("host", margin) + host + "      sender: " + sender))
	default:
		if host != "" {
			p.lines(hang("host", host, p.options.Width, margin))
		}
		if sender != "" {
			p.lines(hang("sender", sender, p.options.Width, margin))
		}
	}
	if doc.PeerHost != nil {
		p.lines(hang("peer", hostText(doc.PeerHost, p.options.Wide), p.options.Width, margin))
	}
}

// settingRows adds everything that was read back of each arm.
func settingRows(g *grid, v *view) {
	var names []string
	values := map[string][]string{}
	for i, a := range v.arms {
		for _, s := range settings(a) {
			if values[s[0]] == nil {
				values[s[0]] = make([]string, len(v.arms))
				names = append(names, s[0])
			}
			values[s[0]][i] = s[1]
		}
	}
	if len(names) == 0 {
		return
	}
	g.text("As read back", bold)
	for _, name := range names {
		cells := values[name]
		for i := range cells {
			if cells[i] == "" {
				cells[i] = missing
			}
		}
		g.row(append([]string{"  " + name}, cells...)...)
	}
}

func (p *page) verdict(v *view) {
	for _, c := range v.controlTexts() {
		p.label("CONTROL", bold, c)
	}
	c := v.doc.Verdict
	if c == nil {
		return
	}
	word := "-> " + v.wordText(c)
	lines := verdictLines(v.verdictParts(c), word, p.options.Width)
	lines[len(lines)-1] = strings.Replace(lines[len(lines)-1], word, p.paint(wordColour(c.Word), word), 1)
	p.lines(p.paintFirst(bold, "VERDICT", lines))
	for _, e := range v.explanations(c) {
		p.lines(wrap(e, p.options.Width, strings.Repeat(" ", labelWidth)))
	}
	if p.options.Wide && v.doc.Search == nil {
		p.lines(wrap(statisticsText(c), p.options.Width, strings.Repeat(" ", labelWidth)))
	}
}

// verdictLines keep the spacing of the headline when it fits on one line, and
// each part whole where it can be when it does not.
func verdictLines(parts []string, word string, width int) []string {
	margin := strings.Repeat(" ", labelWidth)
	var lines []string
	line := ""
	for _, part := range append(parts, word) {
		part = oneLine(part)
		gap := "   "
		switch {
		case line == "":
			line = part
		case columns(margin)+columns(line)+len(gap)+columns(part) <= width:
			line += gap + part
		default:
			lines = append(lines, wrap(line, width, margin)...)
			line = part
		}
	}
	if columns(line)+columns(margin) <= width {
		lines = append(lines, margin+line)
	} else {
		lines = append(lines, wrap(line, width, margin)...)
	}
	lines[0] = pad("VERDICT", labelWidth) + strings.TrimLeft(lines[0], " ")
	return lines
}

// statisticsText are the numbers behind the word.
func statisticsText(c *compare.Comparison) string {
	parts := []string{"metric " + c.Metric, "ratio is " + c.RatioIs, "margin " + percent(c.Margin)}
	if c.P != nil {
		parts = append(parts, "paired t test p "+significant(*c.P))
	}
	if c.PSign != nil {
		parts = append(parts, "sign-flip p "+significant(*c.PSign))
	}
	if c.PHolm != nil {
		parts = append(parts, "over the sweep (Holm) "+significant(*c.PHolm))
	}
	return strings.Join(parts, ", ")
}

func (p *page) requirements(doc *compare.Document) {
	for _, r := range doc.Requirements {
		word, c := "met", green
		if !r.OK {
			word, c = "FAILED", red
		}
		text := r.Text + ": " + word
		if r.Value != nil {
			text += ", is " + significant(*r.Value)
		}
		if r.Because != "" {
			text += " (" + r.Because + ")"
		}
		p.label("REQUIRE", c, text)
	}
}

func (p *page) mind(v *view) {
	var parts []string
	all := Caveats(v.doc)
	for i, c := range all {
		// A flag that several remarks share stands behind the last of them.
		if slices.ContainsFunc(all[i+1:], func(later Caveat) bool { return later.Flag == c.Flag }) {
			c.Flag = ""
		}
		parts = append(parts, c.String())
	}
	if len(parts) > 0 {
		p.lines(p.paintFirst(yellow, "MIND", hangParts("MIND", parts, " - ", p.options.Width, labelWidth)))
	}
}

func (p *page) warnings(doc *compare.Document) {
	for _, w := range doc.Warnings {
		text := w.Text
		if w.ID != "" {
			text += " [" + w.ID + "]"
		}
		p.label("WARNING", yellow, text)
	}
}

func (p *page) saved(v *view) {
	hint := v.workHint()
	if p.options.Saved == "" {
		if hint != "" {
			p.label("", dim, hint)
		}
		return
	}
	line := pad("SAVED", labelWidth) + oneLine(p.options.Saved)
	if hint == "" || columns(line)+5+columns(hint) > p.options.Width {
		p.lines(p.paintFirst(dim, "SAVED", []string{line}))
		if hint != "" {
			p.label("", dim, hint)
		}
		return
	}
	p.lines(p.paintFirst(dim, "SAVED", []string{line + "     " + hint}))
}

// trialGrid lists every trial, for --wide.
func trialGrid(p *page, v *view) *grid {
	g := &grid{page: p, noteLast: true, columns: []align{left, right, right, left, right, right, right, right, right, left}}
	g.text("Trials", bold)
	g.row("  kind", "block", "pos", "arm", "s", "sent", "received", "lost", "unexplained", "")
	for i := range v.doc.Trials {
		t := &v.doc.Trials[i]
		why := ""
		if !t.Valid {
			why = "invalid: " + t.InvalidBecause
		}
		if t.LoadPPS != nil {
			why = strings.Join(nonEmpty("at "+pps(*t.LoadPPS)+" pps", why), ", ")
		}
		g.row("  "+string(t.Kind), thousands(int64(t.Block)), thousands(int64(t.Position)), v.call(t.Arm), fixed(t.Seconds, 3), uthousands(t.Sent), uthousands(t.Received),
			percent(t.LossRatio()), uthousands(t.Unexplained), why)
	}
	return g
}
