// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strings"
)

// Charts are geometry only: positions in the SVG's own units, computed here,
// drawn by the template, which escapes every text.

// chartWidth is the width of every chart's view box.
const chartWidth = 860.0

type tick struct {
	At   float64 // position
	Text string
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

func fixedPlain(v float64) string { return strings.ReplaceAll(fixed(v, 1), ",", "") }

func round(v float64) float64 {
	if !finite(v) {
		return 0
	}
	return math.Round(v*10) / 10
}
