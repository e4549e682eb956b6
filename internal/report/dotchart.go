// SPDX-License-Identifier: Apache-2.0

package report

import (
	"twopath/compare"
)

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
