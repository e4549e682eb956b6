// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"

	"twopath/compare"
)

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
