// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"twopath/compare"
)

// followedRow is one worker of one arm over its valid trials.
type followedRow struct {
	arm, worker                        int
	packets, sessions, requests, other uint64
	cold, warm                         []float64
}

// followedRows sums what the workers of a replay saw.
func (v *view) followedRows() []followedRow {
	var rows []followedRow
	for i, a := range v.arms {
		first := len(rows)
		for _, t := range v.trialsOf(a) {
			if t.Followed == nil {
				continue
			}
			for w, f := range t.Followed.Workers {
				if first+w >= len(rows) {
					rows = append(rows, followedRow{arm: i, worker: w})
				}
				r := &rows[first+w]
				r.packets += f.Received
				r.sessions += f.TCP + f.UDP + f.Other
				r.requests += f.Requests
				r.other += f.Untracked
				for _, c := range []struct {
					from *float64
					to   *[]float64
				}{{f.TSCCold, &r.cold}, {f.TSCWarm, &r.warm}} {
					if c.from != nil {
						*c.to = append(*c.to, *c.from)
					}
				}
			}
		}
	}
	return rows
}

// followed prints what each worker of a replay saw: the classic test's columns.
func (p *page) followed(v *view) {
	rows := v.followedRows()
	if len(rows) == 0 {
		return
	}
	loops := 0
	if c := v.doc.Traffic.Capture; c != nil {
		loops = c.Loops
	}
	g := &grid{page: p, columns: []align{left, right, right, right, right, right}}
	workers := plural(int64(max(v.doc.Traffic.Queues, 1)), "worker")
	g.text(fmt.Sprintf("Sessions with %s, over all valid trials (%s each)", workers, plural(int64(loops), "loop")), bold)
	g.row("", "packets", "sessions", "HTTP requests", "TSC/packet cold", "warm")
	for _, r := range rows {
		a := v.arms[r.arm]
		label := fmt.Sprintf("  %s %s, worker %d", letter(r.arm), a.Name, r.worker+1)
		g.row(label, uthousands(r.packets), uthousands(r.sessions), uthousands(r.requests), medianText(r.cold), medianText(r.warm))
		if r.other > 0 {
			g.row("    packets of sessions beyond the table", uthousands(r.other))
		}
	}
	p.lines(g.lines(0, p.options.Width))
	p.lines(wrap("cold is the first loop of a trial, warm all others; cycles while the program has the frames, without what brought them", p.options.Width, "  "))
}

// medianText is the median of trials, in whole cycles.
func medianText(all []float64) string {
	if len(all) == 0 {
		return missing
	}
	slices.Sort(all)
	n := len(all)
	return uthousands(uint64(math.Round((all[(n-1)/2] + all[n/2]) / 2)))
}

// captureText is what a replay sent.
func captureText(c *compare.Capture) string {
	if c.Frames == 0 {
		return ""
	}
	s := fmt.Sprintf("%s: %s frames of %s B with FCS in the mean", filepath.Base(c.Path), uthousands(c.Frames), bytesText(float64(c.Bytes)/float64(c.Frames)+4))
	if c.Loops > 1 {
		s += ", " + plural(int64(c.Loops), "loop") + " a trial"
	}
	if c.Speed > 0 {
		s += ", its own timing"
		if c.Speed != 1 && finite(c.Speed) {
			s += " x " + strconv.FormatFloat(c.Speed, 'g', -1, 64)
		}
	}
	return s
}
