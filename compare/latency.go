// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"
)

// Latency is a distribution in nanoseconds. A percentile with fewer than ten samples beyond it is null: it would be the noise of
// single events. Percentiles are right within the width of a bucket, below 1 %; minimum, maximum and mean are exact.
type Latency struct {
	Count uint64   `json:"count"`
	Min   *float64 `json:"min"`
	P50   *float64 `json:"p50"`
	P90   *float64 `json:"p90"`
	P99   *float64 `json:"p99"`
	P999  *float64 `json:"p999"`
	P9999 *float64 `json:"p9999"`
	Max   *float64 `json:"max"`
	Mean  *float64 `json:"mean"`
	// Base is what the time counts from: "intended" or "sent" (ping-pong).
	Base string `json:"base"`
	// Jitter is the mean absolute difference of the latencies of answers with consecutive numbers (RFC 3393), over
	// JitterCount pairs.
	Jitter      *float64 `json:"jitter,omitempty"`
	JitterCount uint64   `json:"jitter_count,omitempty"`
	// Buckets are the distribution itself: from, to (inclusive) in ns, and the number of samples; rising, none empty.
	Buckets [][3]uint64 `json:"buckets,omitempty"`
}

// minBeyond is how many samples must lie beyond a percentile before it says anything.
const minBeyond = 10

// Fill computes the percentiles from Count, Max and Buckets.
func (l *Latency) Fill() {
	l.P50, l.P90, l.P99, l.P999, l.P9999 = l.quantile(0.5), l.quantile(0.9), l.quantile(0.99), l.quantile(0.999), l.quantile(0.9999)
}

// quantile is the upper end of the bucket that holds the sample of rank q (nearest rank, as HdrHistogram has it), or the
// maximum where that is less; nil with fewer than ten samples beyond it.
func (l *Latency) quantile(q float64) *float64 {
	n := float64(l.Count)
	// 1e-6 forgives 1-0.99 being a little under 0.01 in floating point.
	if l.Count == 0 || n*(1-q) < minBeyond-1e-6 {
		return nil
	}
	rank, seen := uint64(math.Ceil(q*n-1e-6)), uint64(0)
	for _, b := range l.Buckets {
		if seen += b[2]; seen >= rank {
			v := float64(b[1])
			if l.Max != nil {
				v = min(v, *l.Max)
			}
			return Num(v)
		}
	}
	return nil
}

// MergeLatency puts the distributions of several trials together; nil when there is none with samples. Their bases must be the
// same, else the result has none.
func MergeLatency(parts []*Latency) *Latency {
	var out *Latency
	sum, jitter := 0.0, 0.0
	at := map[[2]uint64]uint64{}
	for _, l := range parts {
		if l == nil || l.Count == 0 {
			continue
		}
		if out == nil {
			out = &Latency{Base: l.Base}
		}
		if out.Base != l.Base {
			out.Base = ""
		}
		out.Count += l.Count
		out.Min, out.Max = extreme(out.Min, l.Min, math.Min), extreme(out.Max, l.Max, math.Max)
		sum += Val(l.Mean) * float64(l.Count)
		if l.Jitter != nil {
			jitter += *l.Jitter * float64(l.JitterCount)
			out.JitterCount += l.JitterCount
		}
		for _, b := range l.Buckets {
			at[[2]uint64{b[0], b[1]}] += b[2]
		}
	}
	if out == nil {
		return nil
	}
	out.Mean = Num(sum / float64(out.Count))
	if out.JitterCount > 0 {
		out.Jitter = Num(jitter / float64(out.JitterCount))
	}
	for b, n := range at {
		out.Buckets = append(out.Buckets, [3]uint64{b[0], b[1], n})
	}
	slices.SortFunc(out.Buckets, func(a, b [3]uint64) int { return slices.Compare(a[:], b[:]) })
	out.Fill()
	return out
}

func extreme(a, b *float64, pick func(x, y float64) float64) *float64 {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return Num(pick(*a, *b))
}

// ReplyRow stands before the id of a ledger row that is about the way of the answers.
const ReplyRow = "reply."
