// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strings"

	"twopath/compare"
)

// Charts are geometry only: positions in the SVG's own units, computed here,
// drawn by the template, which escapes every text.

// chartWidth is the width of every chart's view box.
const chartWidth = 860.0

type tick struct {
	At   float64 // position
	Text string
}

// forest shows each comparison's ratio with its interval on a logarithmic axis.
type forest struct {
	Width, Height     float64
	Left, Right       float64 // of the plot
	Bottom            float64
	One               float64 // where the ratio is 1
	MarginLow, Margin float64 // the practical margin's band: left edge and width
	Ticks             []tick
	Rows              []forestRow
}

type forestRow struct {
	Y, X       float64
	Low, High  float64
	HasCI      bool
	Name, Text string
	Class      string
	Headline   bool
	Arrow      bool // a lower bound: may be more
	ArrowX     float64
}

func newForest(v *view) *forest {
	var shown []*compare.Comparison
	low, high := 1.0, 1.0
	for i := range v.doc.Comparisons {
		c := &v.doc.Comparisons[i]
		if c.Ratio == nil || !finite(*c.Ratio) || *c.Ratio <= 0 || *c.Ratio > 1e9 || *c.Ratio < 1e-9 {
			continue
		}
		shown = append(shown, c)
		low, high = min(low, *c.Ratio), max(high, *c.Ratio)
		if ci := drawable(c.CI); ci != nil {
			low, high = min(low, ci[0]), max(high, ci[1])
		}
	}
	if len(shown) == 0 {
		return nil
	}
	low, high = min(low/1.15, 0.9), max(high*1.25, 1.12)
	f := &forest{Width: chartWidth, Left: 270, Right: chartWidth - 190}
	at := func(r float64) float64 {
		return round(f.Left + (f.Right-f.Left)*(math.Log(r)-math.Log(low))/(math.Log(high)-math.Log(low)))
	}
	const rowHeight, top = 30.0, 10.0
	for i, c := range shown {
		what := ""
		if c.Metric != compare.MetricReceived {
			what = ", " + metricText(c.Metric)
		}
		name := v.call(c.B) + " " + c.B + " against " + v.call(c.A) + " " + c.A + what
		if columns(name) > 42 {
			name = v.call(c.B) + " against " + v.call(c.A) + what
		}
		if c.Control {
			name = v.call(c.A) + " against itself (A/A)" + what
		}
		row := forestRow{Y: top + rowHeight*float64(i) + rowHeight/2, X: at(*c.Ratio), Name: name, Class: "other", Text: ratioText(*c.Ratio)}
		if ci := drawable(c.CI); ci != nil {
			row.HasCI, row.Low, row.High = true, at(ci[0]), at(ci[1])
			row.Text += " [" + ratioNumber(ci[0]) + " .. " + ratioNumber(ci[1]) + "]"
		}
		if d := v.doc.Verdict; d != nil && !c.Control && d.A == c.A && d.B == c.B && d.Metric == c.Metric {
			row.Headline, row.Class = true, "headline"
		}
		if c.Bound == compare.LowerBound {
			row.Arrow, row.ArrowX = true, max(row.X, row.High)
			if *c.Ratio < 1 {
				row.Arrow = false
			}
		}
		f.Rows = append(f.Rows, row)
	}
	f.Bottom = top + rowHeight*float64(len(shown))
	f.Height = f.Bottom + 44
	f.One = at(1)
	if m := shown[0].Margin; m > 0 && m < 0.5 {
		f.MarginLow = at(1 / (1 + m))
		f.Margin = round(at(1+m) - f.MarginLow)
	}
	for _, r := range logTicks(low, high) {
		f.Ticks = append(f.Ticks, tick{at(r), trimZeros(significant(r))})
	}
	return f
}

func drawable(ci *[2]float64) *[2]float64 {
	if ci == nil || !(ci[0] > 1e-9) || !(ci[1] < 1e9) || !finite(ci[0]) || !finite(ci[1]) || ci[1] < ci[0] {
		return nil
	}
	return ci
}

// logTicks picks round ratios between low and high.
func logTicks(low, high float64) []float64 {
	steps := []float64{1, 2, 5}
	switch span := high / low; {
	case span < 2:
		steps = []float64{0.8, 0.9, 1, 1.1, 1.2, 1.3, 1.5}
	case span < 12:
		steps = []float64{1, 1.5, 2, 3, 4, 5, 7}
	case span > 1e4:
		steps = []float64{1}
	}
	var out []float64
	for e := math.Floor(math.Log10(low)) - 1; e <= math.Ceil(math.Log10(high)) && len(out) < 20; e++ {
		for _, s := range steps {
			if r := s * math.Pow(10, e); r >= low && r <= high && (len(out) == 0 || r > out[len(out)-1]*1.001) {
				out = append(out, r)
			}
		}
	}
	return out
}

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
		if a.Sent == 0 {
			continue
		}
		bar := ledgerBar{Y: y, Name: letter(i) + " " + a.Name}
		x := leftMargin
		add := func(n uint64, class, label string) {
			if n == 0 {
				return
			}
			share := float64(n) / float64(a.Sent)
			w := min((chartWidth-leftMargin)*share, max(chartWidth-x, 0))
			s := segment{X: round(x), Width: max(round(w), 0.5), Class: class, Title: label + ": " + uthousands(n) + " packets, " + percent(share)}
			if w > 64 {
				s.Text = percent(share)
			}
			bar.Segments = append(bar.Segments, s)
			x += w
		}
		add(a.Received, "reader", "reader")
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
	items := []legendItem{{Class: "reader", Text: "reader"}}
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

// dotChart shows every trial: its received rate, in the order they were run.
type dotChart struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64
	Dots                     []dot
	XTicks, YTicks           []tick
	Legend                   []legendItem
	Invalid                  bool
	Blocks                   []tick // where a block starts
}

type dot struct {
	X, Y  float64
	Class string
	Valid bool
	Title string
}

func newDotChart(v *view) *dotChart {
	var shown []*compare.Trial
	top := 0.0
	class := map[string]string{}
	for i, a := range v.arms {
		class[a.Name] = "a" + string(rune('0'+i%palette))
	}
	for i := range v.doc.Trials {
		t := &v.doc.Trials[i]
		r := t.ReceivedPPS()
		if class[t.Arm] == "" || !counted(t) || !finite(r) || r > 1e12 {
			continue
		}
		shown = append(shown, t)
		top = max(top, r)
	}
	if len(shown) == 0 {
		return nil
	}
	sortTrials(shown)
	c := &dotChart{Width: chartWidth, Height: 260, Left: 80, Right: chartWidth - 10, Top: 14, Bottom: 200}
	ticks := linearTicks(top)
	axis := ticks[len(ticks)-1]
	y := func(r float64) float64 { return round(c.Bottom - (c.Bottom-c.Top)*r/axis) }
	for _, r := range ticks {
		c.YTicks = append(c.YTicks, tick{y(r), shortCount(r)})
	}
	step := (c.Right - c.Left) / float64(len(shown))
	block, every := -1, 1+len(shown)/80
	for i, t := range shown {
		x := round(c.Left + step*(float64(i)+0.5))
		if t.Block != block && t.Block > 0 {
			block = t.Block
			if (block-1)%every == 0 {
				c.Blocks = append(c.Blocks, tick{round(c.Left + step*float64(i)), thousands(int64(block))})
			}
		}
		d := dot{X: x, Y: y(t.ReceivedPPS()), Class: class[t.Arm], Valid: t.Valid}
		d.Title = t.Arm + ", block " + thousands(int64(t.Block)) + " position " + thousands(int64(t.Position)) + ": " + pps(t.ReceivedPPS()) + " pps, lost " + percent(t.LossRatio())
		if !t.Valid {
			d.Title += ", invalid: " + t.InvalidBecause
			c.Invalid = true
		}
		c.Dots = append(c.Dots, d)
	}
	c.Legend = legendRow(v, c.Left, 244)
	if c.Invalid {
		c.Legend = append(c.Legend, legendItem{X: c.Right - 120, Y: 244, Class: "hollow", Text: "invalid trial"})
	}
	return c
}

func legendRow(v *view, x, y float64) []legendItem {
	var out []legendItem
	for i, a := range v.arms {
		text := letter(i) + " " + a.Name
		out = append(out, legendItem{X: round(x), Y: y, Class: "a" + string(rune('0'+i%palette)), Text: text})
		x += 30 + 7.2*float64(columns(text))
	}
	return out
}

// sortTrials puts trials in the order they were run: by block, position, attempt.
func sortTrials(ts []*compare.Trial) {
	key := func(t *compare.Trial) [3]int { return [3]int{t.Block, t.Position, t.Attempt} }
	for i := 1; i < len(ts); i++ {
		for k := i; k > 0; k-- {
			a, b := key(ts[k-1]), key(ts[k])
			if a[0] < b[0] || (a[0] == b[0] && (a[1] < b[1] || (a[1] == b[1] && a[2] <= b[2]))) {
				break
			}
			ts[k-1], ts[k] = ts[k], ts[k-1]
		}
	}
}

// linearTicks are about five round values from 0 to at least top.
func linearTicks(top float64) []float64 {
	if !(top > 0) || !finite(top) {
		return []float64{0, 1}
	}
	step := math.Pow(10, math.Floor(math.Log10(top/4)))
	for _, f := range []float64{1, 2, 2.5, 5, 10} {
		if top/(step*f) <= 5 {
			step *= f
			break
		}
	}
	out := []float64{0}
	for len(out) < 12 && out[len(out)-1] < top {
		out = append(out, step*float64(len(out)))
	}
	return out
}

// shortCount labels an axis: 1.5 M, 300 k.
func shortCount(v float64) string {
	switch {
	case v >= 1e6:
		return trimZeros(fixed(v/1e6, 2)) + " M"
	case v >= 1e3:
		return trimZeros(fixed(v/1e3, 1)) + " k"
	}
	return trimZeros(fixed(v, 2))
}

// sweepChart shows, over the cells of a sweep, what was offered and what each
// arm received.
type sweepChart struct {
	Width, Height            float64
	Left, Right, Top, Bottom float64
	XTicks, YTicks           []tick
	Lines                    []sweepLine
	Legend                   []legendItem
}

type sweepLine struct {
	Class  string
	Points string // of a polyline
	Dots   []dot
}

func newSweepChart(docs []compare.Document) *sweepChart {
	names := sweepArms(docs)
	top := 0.0
	value := func(d *compare.Document, name string) *float64 {
		a := newView(d).arm(name)
		if a == nil || a.ReceivedPPS == nil || !finite(*a.ReceivedPPS) || *a.ReceivedPPS > 1e12 || *a.ReceivedPPS < 0 {
			return nil
		}
		return a.ReceivedPPS
	}
	offered := func(d *compare.Document) *float64 {
		if d.Traffic.PPS == nil || !finite(*d.Traffic.PPS) || *d.Traffic.PPS > 1e12 {
			return nil
		}
		return d.Traffic.PPS
	}
	for i := range docs {
		for _, name := range names {
			if r := value(&docs[i], name); r != nil {
				top = max(top, *r)
			}
		}
		if r := offered(&docs[i]); r != nil {
			top = max(top, *r)
		}
	}
	if top == 0 {
		return nil
	}
	c := &sweepChart{Width: chartWidth, Height: 310, Left: 80, Right: chartWidth - 10, Top: 14, Bottom: 240}
	ticks := linearTicks(top)
	axis := ticks[len(ticks)-1]
	y := func(r float64) float64 { return round(c.Bottom - (c.Bottom-c.Top)*r/axis) }
	for _, r := range ticks {
		c.YTicks = append(c.YTicks, tick{y(r), shortCount(r)})
	}
	step := (c.Right - c.Left) / float64(len(docs))
	x := func(i int) float64 { return round(c.Left + step*(float64(i)+0.5)) }
	for i := range docs {
		c.XTicks = append(c.XTicks, tick{x(i), sizeText(&docs[i])})
	}
	line := func(class, name string, get func(*compare.Document) *float64) {
		l := sweepLine{Class: class}
		var points []string
		for i := range docs {
			r := get(&docs[i])
			if r == nil {
				continue
			}
			points = append(points, fixedPlain(x(i))+","+fixedPlain(y(*r)))
			l.Dots = append(l.Dots, dot{X: x(i), Y: y(*r), Class: class, Valid: true, Title: name + " at " + cellName(&docs[i]) + ": " + pps(*r) + " pps"})
		}
		l.Points = strings.Join(points, " ")
		c.Lines = append(c.Lines, l)
	}
	line("offered", "offered", offered)
	at := c.Left
	c.Legend = append(c.Legend, legendItem{X: at, Y: 294, Class: "offered", Text: "offered"})
	at += 90
	for i, name := range names {
		class := "a" + string(rune('0'+i%palette))
		line(class, name, func(d *compare.Document) *float64 { return value(d, name) })
		text := letter(i) + " " + name
		c.Legend = append(c.Legend, legendItem{X: round(at), Y: 294, Class: class, Text: text})
		at += 30 + 7.2*float64(columns(text))
	}
	return c
}

func fixedPlain(v float64) string { return strings.ReplaceAll(fixed(v, 1), ",", "") }

func round(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return math.Round(v*10) / 10
}
