// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"twopath/compare"
	"twopath/internal/reproduce"
)

// isReproduction says whether the documents are the steps of a published measurement.
func isReproduction(docs []compare.Document) bool {
	if len(docs) == 0 {
		return false
	}
	for i := range docs {
		if r := docs[i].Reproduces; r == nil || r.Source != docs[0].Reproduces.Source {
			return false
		}
	}
	return true
}

// reproduction is a published measurement beside ours.
func (p *page) reproduction(docs []compare.Document) {
	name := docs[0].Reproduces.Source
	if s, err := reproduce.Lookup(name); err == nil {
		p.lines(p.paintFirst(bold, s.Name, hang(oneLine(s.Name), s.Title+": "+s.About, p.options.Width, columns(s.Name)+2)))
	} else {
		p.line(p.paint(bold, oneLine(name)))
	}
	ran := stepsThatRan(docs)
	if len(ran) > 0 {
		p.lines(hang("ours", strings.Join(nonEmpty(hostText(&ran[0].Host, p.options.Wide), rigText(&ran[0].Rig)), "; "), p.options.Width, 8))
	}
	switch name {
	case reproduce.UDPReceive:
		p.udpReceive(docs)
	case reproduce.LineRate64:
		p.lineRate(docs)
	}
	for i := range docs {
		d := &docs[i]
		if len(d.Arms) == 0 {
			p.label("NOT RUN", yellow, d.Reproduces.Step+": "+d.Reason)
		} else if d.Incomplete {
			p.label("CUT", red, d.Reproduces.Step+", "+cellName(d)+": "+d.Reason)
		}
	}
	p.sweepMind(ran)
	p.invalidSteps(ran)
	if p.options.Saved != "" {
		p.lines(p.paintFirst(dim, "SAVED", []string{pad("SAVED", labelWidth) + oneLine(p.options.Saved)}))
	}
}

// invalidSteps says of each cell how many trials were invalid, and why the last one was; with --wide it lists all.
func (p *page) invalidSteps(docs []compare.Document) {
	word := "INVALID"
	for i := range docs {
		d := &docs[i]
		if p.options.Wide {
			p.invalid(d)
			continue
		}
		invalid, all, why := 0, 0, ""
		for k := range d.Trials {
			if t := &d.Trials[k]; counted(t) {
				all++
				if !t.Valid {
					invalid, why = invalid+1, t.InvalidBecause
				}
			}
		}
		if invalid > 0 {
			p.label(word, red, fmt.Sprintf("%s: %d of %s, as %s (--wide lists all)", rowName(docs, i), invalid, plural(int64(all), "trial"), why))
			word = ""
		}
	}
}

// stepsThatRan leaves out what was skipped.
func stepsThatRan(docs []compare.Document) []compare.Document {
	return slices.DeleteFunc(slices.Clone(docs), func(d compare.Document) bool { return len(d.Arms) == 0 })
}

// ofStep are the documents of one step that ran.
func ofStep(docs []compare.Document, step string) []*compare.Document {
	var out []*compare.Document
	for i := range docs {
		if d := &docs[i]; d.Reproduces.Step == step && len(d.Arms) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// notRun is why a step has no document with arms; "" if it has, or if it was not asked for.
func notRun(docs []compare.Document, step string) string {
	for i := range docs {
		if d := &docs[i]; d.Reproduces.Step == step && len(d.Arms) == 0 {
			return d.Reason
		}
	}
	return ""
}

// rowsOf sums an arm's ledger over the given places.
func rowsOf(a *compare.Arm, places ...string) uint64 {
	n := uint64(0)
	for _, r := range a.Ledger {
		if slices.Contains(places, r.At) {
			n += r.Packets
		}
	}
	return n
}

// countAndShare is "1,234 (0.12 %)" of what was sent; where there are many, the share alone.
func countAndShare(n uint64, a *compare.Arm) string {
	if !has(a) {
		return missing
	}
	if n == 0 || a.Sent == 0 {
		return uthousands(n)
	}
	const many = 100_000
	if n >= many {
		return percent(float64(n) / float64(a.Sent))
	}
	return fmt.Sprintf("%s (%s)", uthousands(n), percent(float64(n)/float64(a.Sent)))
}

// counterPerMillion is a raw counter's sum over an arm's valid trials, for a million packets received.
func (v *view) counterPerMillion(a *compare.Arm, names ...string) string {
	var n, received uint64
	some := false
	for _, t := range v.trialsOf(a) {
		received += t.Received
		for _, name := range names {
			if c, ok := t.Counters[name]; ok {
				n, some = n+c, true
			}
		}
	}
	switch {
	case received == 0:
		return missing
	case !some: // a counter that did not move is not in the record
		return "0"
	}
	return fixed(float64(n)/float64(received)*1e6, 0)
}
