// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"twopath/compare"
)

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
