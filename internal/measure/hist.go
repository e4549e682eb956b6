// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// The range of a Histogram.
const (
	histMin    = 1              // ns
	histMax    = 60_000_000_000 // ns: 60 s
	histDigits = 3              // significant decimal digits: a value is right within 0.1 %
)

// Histogram holds durations of 1 ns to 60 s with 3 significant digits (HdrHistogram), about 200 KiB. One goroutine
// records; merge workers' histograms afterwards.
type Histogram struct {
	h        *hdrhistogram.Histogram
	negative uint64
	over     uint64
}

// NewHistogram makes an empty one.
func NewHistogram() *Histogram {
	return &Histogram{h: hdrhistogram.New(histMin, histMax, histDigits)}
}

// Record adds a duration in ns. A negative one (two clocks that disagree) is counted apart and not recorded; one above
// 60 s is recorded as 60 s and counted in Over too.
func (h *Histogram) Record(ns int64) {
	if ns < 0 {
		h.negative++
		return
	}
	if ns > histMax {
		h.over++
		ns = histMax
	}
	_ = h.h.RecordValue(ns) // cannot fail: ns is in range
}

// Count is how many durations were recorded.
func (h *Histogram) Count() uint64 { return uint64(h.h.TotalCount()) }

// Negative is how many durations were below 0 and are not in Count.
func (h *Histogram) Negative() uint64 { return h.negative }

// Over is how many durations were above 60 s; they are in Count as 60 s.
func (h *Histogram) Over() uint64 { return h.over }

// minBeyond is how many samples must lie beyond a percentile before it says anything: with fewer it is the noise of
// single events.
const minBeyond = 10

// Quantile gives the duration in ns below which the share q of the samples lies, 0 < q < 1. ok is false when fewer
// than 10 samples lie beyond it: such a percentile must be shown as missing.
func (h *Histogram) Quantile(q float64) (ns int64, ok bool) {
	if q <= 0 || q >= 1 || h.h.TotalCount() == 0 {
		return 0, false
	}
	// 1e-6 forgives 1-0.99 being a little under 0.01 in floating point.
	if float64(h.h.TotalCount())*(1-q) < minBeyond-1e-6 {
		return 0, false
	}
	return h.h.ValueAtQuantile(q * 100), true
}

// Min, Max and Mean of the recorded durations, in ns; 0 when there are none.
func (h *Histogram) Min() int64 {
	if h.h.TotalCount() == 0 {
		return 0
	}
	return h.h.Min()
}

// Max is the largest recorded duration in ns, within 3 digits; 0 when there is none.
func (h *Histogram) Max() int64 { return h.h.Max() }

// Mean is the arithmetic mean in ns; 0 when there is no sample.
func (h *Histogram) Mean() float64 { return h.h.Mean() }

// Merge adds another worker's samples.
func (h *Histogram) Merge(o *Histogram) error {
	if dropped := h.h.Merge(o.h); dropped != 0 {
		return fmt.Errorf("merge histograms: %d samples out of range", dropped)
	}
	h.negative += o.negative
	h.over += o.over
	return nil
}

// Reset forgets all samples and keeps the memory.
func (h *Histogram) Reset() {
	h.h.Reset()
	h.negative, h.over = 0, 0
}

// Bucket is one step of a cumulative or plain distribution.
type Bucket struct {
	From, To int64 // ns, inclusive
	Count    uint64
}

// Buckets lists the non-empty buckets in rising order.
func (h *Histogram) Buckets() []Bucket {
	var out []Bucket
	for _, b := range h.h.Distribution() {
		if b.Count > 0 {
			out = append(out, Bucket{b.From, b.To, uint64(b.Count)})
		}
	}
	return out
}
