// SPDX-License-Identifier: Apache-2.0

package compare

import "math"

// pairs are the log-ratios of two arms, one per block in which both have a
// valid trial with the metric; above 0 means B is better.
type pairs struct {
	logs          []float64
	valid, trials int // of both arms
	silent        int // trials counted as half a packet
}

// pairBlocks takes each arm's mean over its valid trials in a block: with the
// mirrored order of a block, a linear drift cancels in it.
func pairBlocks(trials []Trial, a, b string, m Metric) pairs {
	type cell struct {
		sum float64
		n   int
	}
	var p pairs
	last := 0
	blocks := map[int]*[2]cell{}
	for i := range trials {
		t := &trials[i]
		side := -1
		switch t.Arm {
		case a:
			side = 0
		case b:
			side = 1
		}
		if side < 0 || t.Block < 1 || (t.Kind != Measured && t.Kind != AA) {
			continue
		}
		p.trials++
		if !t.Valid {
			continue
		}
		p.valid++
		v := Val(m.OfTrial(t))
		if m.Name == MetricReceived && t.Received == 0 {
			// A receiver that got nothing has no logarithm. Half a packet is
			// the usual stand-in, and the verdict says it was used.
			v = rate(1, t.Seconds) / 2
			p.silent++
		}
		if !finite(v) || v <= 0 {
			continue
		}
		if blocks[t.Block] == nil {
			blocks[t.Block] = new([2]cell)
			last = max(last, t.Block)
		}
		c := &blocks[t.Block][side]
		c.sum, c.n = c.sum+v, c.n+1
	}
	for n := 1; n <= last; n++ {
		c := blocks[n]
		if c == nil || c[0].n == 0 || c[1].n == 0 {
			continue
		}
		log := math.Log(c[1].sum / float64(c[1].n) / (c[0].sum / float64(c[0].n)))
		if m.Lower {
			log = -log
		}
		p.logs = append(p.logs, log)
	}
	return p
}
