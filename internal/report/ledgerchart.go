// SPDX-License-Identifier: Apache-2.0

package report

// ledgerChart shows where each arm's packets went, one bar an arm, all of
// them as long as what was sent.
type ledgerChart struct {
	Width, Height float64
	Bars          []ledgerBar
	Legend        []legendItem
}

type ledgerBar struct {
	Y        float64
	Name     string
	Segments []segment
}

type segment struct {
	X, Width float64
	Class    string
	Text     string // shown inside when there is room
	Title    string // on hover
}

type legendItem struct {
	X, Y  float64
	Class string
	Text  string
}

// palette is how many colours the page has for buckets.
const palette = 7

func newLedgerChart(v *view) *ledgerChart {
	lines := v.ledgerLines()
	c := &ledgerChart{Width: chartWidth}
	const leftMargin, height, gap = 220.0, 26.0, 12.0
	classes := map[string]string{}
	next := 0
	for _, l := range lines {
		if l.total() > 0 {
			classes[l.at] = "b" + string(rune('0'+next%palette))
			next++
		}
	}
	y := 6.0
	unexplained := false
	for i, a := range v.arms {
		if handed(a) == 0 {
			continue
		}
		bar := ledgerBar{Y: y, Name: letter(i) + " " + a.Name}
		x := leftMargin
		add := func(n uint64, class, label string) {
			if n == 0 {
				return
			}
			share := float64(n) / float64(handed(a))
			w := min((chartWidth-leftMargin)*share, max(chartWidth-x, 0))
			s := segment{X: round(x), Width: max(round(w), 0.5), Class: class, Title: label + ": " + uthousands(n) + " packets, " + percent(share)}
			if w > 64 {
				s.Text = percent(share)
			}
			bar.Segments = append(bar.Segments, s)
			x += w
		}
		add(a.Received, "reader", v.countedBy())
		for _, l := range lines {
			if n := l.packets[i]; n != nil {
				add(*n, classes[l.at], l.label)
			}
		}
		add(a.Unexplained, "unexplained", "unexplained")
		unexplained = unexplained || a.Unexplained > 0
		c.Bars = append(c.Bars, bar)
		y += height + gap
	}
	if len(c.Bars) == 0 {
		return nil
	}
	items := []legendItem{{Class: "reader", Text: v.countedBy()}}
	for _, l := range lines {
		if l.total() > 0 {
			items = append(items, legendItem{Class: classes[l.at], Text: l.label})
		}
	}
	if unexplained {
		items = append(items, legendItem{Class: "unexplained", Text: "unexplained"})
	}
	x := leftMargin
	y += 6
	for _, it := range items {
		width := 28 + 7.2*float64(columns(it.Text))
		if x+width > chartWidth && x > leftMargin {
			x, y = leftMargin, y+22
		}
		it.X, it.Y = round(x), y
		c.Legend = append(c.Legend, it)
		x += width
	}
	c.Height = y + 20
	return c
}
