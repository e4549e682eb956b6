// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"testing"
)

func TestHistogram(t *testing.T) {
	h := NewHistogram()
	if _, ok := h.Quantile(0.5); ok || h.Min() != 0 || h.Max() != 0 {
		t.Error("an empty histogram has values")
	}
	for i := int64(1); i <= 1000; i++ {
		h.Record(i * 1000)
	}
	for _, c := range []struct {
		q    float64
		want int64
		ok   bool
	}{{0.5, 500_000, true}, {0.99, 990_000, true}, {0.999, 0, false}, {0, 0, false}, {1, 0, false}} {
		got, ok := h.Quantile(c.q)
		if ok != c.ok || math.Abs(float64(got-c.want)) > 0.002*float64(c.want) {
			t.Errorf("Quantile(%v) = %d, %v; want %d, %v", c.q, got, ok, c.want, c.ok)
		}
	}
	h.Record(-1)
	h.Record(histMax + 1)
	if h.Count() != 1001 || h.Negative() != 1 || h.Over() != 1 {
		t.Errorf("count %d, negative %d, over %d", h.Count(), h.Negative(), h.Over())
	}
	o := NewHistogram()
	o.Record(7)
	o.Record(-7)
	if err := h.Merge(o); err != nil {
		t.Fatal(err)
	}
	if h.Count() != 1002 || h.Negative() != 2 || h.Min() != 7 {
		t.Errorf("after merge: count %d, negative %d, min %d", h.Count(), h.Negative(), h.Min())
	}
	sum := uint64(0)
	for _, b := range h.Buckets() {
		sum += b.Count
	}
	if sum != h.Count() {
		t.Errorf("buckets hold %d of %d samples", sum, h.Count())
	}
	h.Reset()
	if h.Count() != 0 || h.Over() != 0 || h.Negative() != 0 {
		t.Error("reset left something")
	}
}

func TestRecordDoesNotAllocate(t *testing.T) {
	h := NewHistogram()
	n := int64(-1000)
	if got := testing.AllocsPerRun(1000, func() { h.Record(n); n = n*3 + 7_777 }); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
	h.Record(math.MaxInt64)
	h.Record(math.MinInt64)
	h.Record(0)
	if h.Max() < histMax {
		t.Errorf("max %d", h.Max())
	}
}

func BenchmarkRecord(b *testing.B) {
	h := NewHistogram()
	for n := int64(1); b.Loop(); n++ {
		h.Record(n & 0xffff)
	}
}
