// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"twopath/compare"
)

// scaling is what more queues and workers brought each arm, for every size and rate that was tried over several numbers of
// queues, and what that says of the question whether the workers are in each other's way.
func (p *page) scaling(docs []compare.Document, names []string) {
	if len(docs) == 0 || !queuesDiffer(docs) {
		return
	}
	for _, cells := range queueCells(docs) {
		title := "Scaling"
		if len(queueCells(docs)) > 1 {
			title += " at " + sizeText(cells[0]) + " B"
		}
		g := &grid{page: p, noteLast: true, columns: []align{left, right, right, right, right, right, right, right, left}}
		g.text(title, bold)
		g.row("  arm", "queues", "received pps", "lost", "speed-up", "each added", "TSC/packet", "growth", "shares of the workers")
		var remarks []string
		said := map[string][]string{} // which arms a remark is about
		for i, name := range names {
			points := compare.Scaling(cells, name)
			for k, pt := range points {
				who := ""
				if k == 0 {
					who = "  " + letter(i)
				}
				if pt.Untold != "" {
					pt.SpeedUp, pt.Efficiency = nil, nil
				}
				g.row(who, thousands(int64(pt.Queues)), opt(pt.ReceivedPPS, pps), opt(pt.LossRatio, percent), opt(pt.SpeedUp, ratioText),
					opt(pt.Efficiency, percentRound), opt(pt.TSCPerPacket, pps), opt(pt.TSCGrowth, growthText), sharesText(pt.PerWorker))
			}
			if s := scalingAnswer(points); s != "" {
				if said[s] == nil {
					remarks = append(remarks, s)
				}
				said[s] = append(said[s], letter(i))
			}
		}
		if len(said) == 0 { // no arm has two valid cells to set side by side
			continue
		}
		p.lines(g.lines(0, p.options.Width))
		for i, s := range remarks {
			word := ""
			if i == 0 {
				word = "SCALING"
			}
			p.label(word, bold, strings.Join(said[s], ", ")+": "+s)
		}
	}
}

// queueCells groups the documents that differ in their queues alone, in the order of the first of each.
func queueCells(docs []compare.Document) [][]*compare.Document {
	var order []string
	groups := map[string][]*compare.Document{}
	for i := range docs {
		t := docs[i].Traffic
		key := fmt.Sprint(t.Size, t.Rate)
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], &docs[i])
	}
	var out [][]*compare.Document
	for _, key := range order {
		if len(groups[key]) > 1 {
			out = append(out, groups[key])
		}
	}
	return out
}

// steadyTSC is how much the cycles per packet may grow before workers are said to hinder each other.
const steadyTSC = 1.10

// scalingAnswer answers the question of "64 bytes at line rate", whether the threads share a lock: cycles per packet that
// grow with the threads say that they wait for something they share.
func scalingAnswer(points []compare.ScalingPoint) string {
	if len(points) < 2 {
		return ""
	}
	first, last := points[0], points[len(points)-1]
	if last.Untold != "" {
		return last.Untold
	}
	rate := fmt.Sprintf("%d workers do %s what %d did", last.Queues, opt(last.SpeedUp, ratioText), first.Queues)
	switch {
	case last.TSCGrowth == nil:
		return rate + "; cycles were not measured, so whether they wait for each other is not known"
	case *last.TSCGrowth > steadyTSC:
		return fmt.Sprintf("%s, and a packet takes each %s the cycles: they share a lock, a cache line or the memory's bandwidth", rate, ratioText(*last.TSCGrowth))
	}
	return fmt.Sprintf("%s, at %s the cycles for a packet: no lock between the workers", rate, ratioText(*last.TSCGrowth))
}

func percentRound(v float64) string { return fixed(100*v, 0) + " %" }

// growthText is a ratio as a change: "+12 %".
func growthText(v float64) string {
	if !finite(v) {
		return missing
	}
	s := fixed(100*(v-1), 0) + " %"
	if v >= 1 {
		s = "+" + s
	}
	return s
}

// sharesText is what part each worker had; of many, the least and the most.
func sharesText(perWorker []uint64) string {
	if len(perWorker) < 2 {
		return ""
	}
	var sum float64
	for _, n := range perWorker {
		sum += float64(n)
	}
	if sum == 0 {
		return ""
	}
	if len(perWorker) > 4 {
		least, most := float64(slices.Min(perWorker)), float64(slices.Max(perWorker))
		return fixed(100*least/sum, 1) + " .. " + fixed(100*most/sum, 1) + " %"
	}
	var parts []string
	for _, n := range perWorker {
		parts = append(parts, fixed(100*float64(n)/sum, 1))
	}
	return strings.Join(parts, " / ") + " %"
}

// balanceCaveats name arms whose workers had very different shares: their rate is that of the busiest worker.
func balanceCaveats(v *view) []Caveat {
	var out []Caveat
	for i, a := range v.arms {
		x := compare.Imbalance(a.PerWorker)
		if !(x > compare.MaxImbalance) {
			continue
		}
		flag := "more --flows"
		if v.doc.Traffic.Flows >= compare.SpreadFlows {
			flag = ""
		}
		if math.IsInf(x, 1) {
			idle := 0
			for _, n := range a.PerWorker {
				if n == 0 {
					idle++
				}
			}
			out = append(out, one("imbalance", flag, "%d of %s's %d workers got nothing", idle, letter(i), len(a.PerWorker))...)
			continue
		}
		out = append(out, one("imbalance", flag, "%s's workers had uneven shares, %s: the busiest had %s as much as the least busy (a remark is due beyond %s)",
			letter(i), sharesText(a.PerWorker), ratioText(x), ratioText(compare.MaxImbalance))...)
	}
	return out
}

// workerText is an arm's packets by worker, for the row of the arms' table.
func workerText(a *compare.Arm) string {
	if len(a.PerWorker) < 2 {
		return missing
	}
	return sharesText(a.PerWorker)
}

// multiWorker says whether any arm has several workers to tell apart.
func (v *view) multiWorker() bool {
	return slices.ContainsFunc(v.arms, func(a *compare.Arm) bool { return len(a.PerWorker) > 1 })
}
