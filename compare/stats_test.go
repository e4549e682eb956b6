// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// Figures worked out by hand: mean 3.5, standard error 1.8708/sqrt(6), t = 4.583 on
// 5 degrees of freedom; of the 64 sign patterns only the two one-sided ones are as far out.
func TestSummariseKnown(t *testing.T) {
	e := Summarise([]float64{3, 1, 2, 6, 5, 4}, 1, Resamples)
	if !near(math.Log(e.Ratio), 3.5) || math.Abs(e.P-0.00593) > 5e-5 || !near(e.PSign, 2.0/64) {
		t.Errorf("ratio %v, p %v, sign-flip p %v", e.Ratio, e.P, e.PSign)
	}
	low, high := e.Interval(0.95)
	// Student's is 3.5 +- 2.571 * 0.7638 = 1.537 .. 5.463; the bootstrap is within or a little beyond.
	if math.Log(low) > 1.5371 || math.Log(low) < 1 || math.Log(high) < 5.4629 || math.Log(high) > 6 {
		t.Errorf("interval of the log %v .. %v", math.Log(low), math.Log(high))
	}
	again := Summarise([]float64{3, 1, 2, 6, 5, 4}, 1, Resamples)
	if l, h := again.Interval(0.95); !near(l, low) || !near(h, high) {
		t.Error("the same seed gave another interval")
	}
	// With the arms swapped everything is turned round.
	swapped := Summarise([]float64{-3, -1, -2, -6, -5, -4}, 1, Resamples)
	if l, h := swapped.Interval(0.95); !near(l, 1/high) && math.Abs(math.Log(l)+math.Log(high)) > 0.1 || math.Abs(math.Log(h)+math.Log(low)) > 0.1 || !near(swapped.P, e.P) || !near(swapped.PSign, e.PSign) {
		t.Errorf("swapped: %v .. %v, p %v", l, h, swapped.P)
	}
}

func TestSummariseFew(t *testing.T) {
	e := Summarise(nil, 1, 100)
	if !math.IsNaN(e.Ratio) || e.N != 0 || !near(e.P, 1) {
		t.Errorf("of nothing: %+v", e)
	}
	e = Summarise([]float64{1}, 1, 100)
	if low, high := e.Interval(0.95); low > 0 || !math.IsInf(high, 1) || !near(e.Ratio, math.E) {
		t.Errorf("of one: %v, %v .. %v", e.Ratio, low, high)
	}
	e = Summarise([]float64{0.5, 0.5, 0.5}, 1, 100)
	if low, high := e.Interval(0.95); !near(low, high) || e.P > 1e-9 {
		t.Errorf("of equals: %v .. %v, p %v", low, high, e.P)
	}
	e = Summarise([]float64{0, 0, 0}, 1, 100)
	if !near(e.P, 1) || !near(e.PSign, 1) {
		t.Errorf("of zeros: p %v, %v", e.P, e.PSign)
	}
}

func TestSignFlipOfManyBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	noise, shifted := make([]float64, 40), make([]float64, 40)
	for i := range noise {
		noise[i] = rng.NormFloat64()
		shifted[i] = noise[i] + 3
	}
	if p := signFlip(shifted, 1); p > 1e-3 || p <= 0 {
		t.Errorf("a clear shift: p %v", p)
	}
	if p := signFlip(noise, 1); p < 0.05 {
		t.Errorf("no shift: p %v", p)
	}
}

func TestHolm(t *testing.T) {
	got := Holm([]float64{0.01, 0.04, 0.03, 0.005})
	for i, want := range []float64{0.03, 0.06, 0.06, 0.02} {
		if !near(got[i], want) {
			t.Errorf("adjusted %v", got)
		}
	}
	if got := Holm([]float64{0.9, 0.8}); !near(got[0], 1) || !near(got[1], 1) {
		t.Errorf("adjusted %v", got)
	}
	if len(Holm(nil)) != 0 {
		t.Error("of none")
	}
}

func TestMedianAndPercentile(t *testing.T) {
	if !math.IsNaN(median(nil)) || !near(median([]float64{3, 1, 2}), 2) || !near(median([]float64{4, 1, 2, 3}), 2.5) {
		t.Error("median")
	}
	s := []float64{0, 1, 2, 3, 4}
	if !near(Quantile(s, 0.5), 2) || !near(Quantile(s, 0.125), 0.5) || !near(Quantile(s, 1), 4) {
		t.Error("percentile")
	}
}

// The 95 % interval holds the true median at least 95 % of the time at six
// blocks, for normal and for ugly noise; the bootstrap alone does not. (500
// runs have a standard error of 1 %; a longer simulation is quoted at Interval.)
func TestIntervalCoverage(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 4))
	kinds := map[string]func() float64{
		"normal":   rng.NormFloat64,
		"outliers": func() float64 { x := rng.NormFloat64(); return x * (1 + 9*float64(rng.IntN(10)/9)) },
		"skewed":   func() float64 { return rng.ExpFloat64() - math.Ln2 },
		"twopeaks": func() float64 { return 0.1*rng.NormFloat64() + float64(rng.IntN(3)-1) },
	}
	const runs = 500
	bootstrapAlone := 0
	names := []string{"normal", "outliers", "skewed", "twopeaks"}
	for _, name := range names {
		covered := 0
		for range runs {
			logs := make([]float64, MinBlocks)
			for i := range logs {
				logs[i] = 0.1 * kinds[name]()
			}
			e := Summarise(logs, rng.Uint64(), 500)
			if low, high := e.Interval(0.95); low <= 1 && high >= 1 {
				covered++
			}
			if Quantile(e.medians, 0.025) <= 0 && Quantile(e.medians, 0.975) >= 0 {
				bootstrapAlone++
			}
		}
		if share := float64(covered) / runs; share < 0.935 {
			t.Errorf("%s: the interval covers %.1f %%", name, 100*share)
		}
	}
	if share := float64(bootstrapAlone) / float64(runs*len(names)); share > 0.95 {
		t.Errorf("the bootstrap alone covers %.1f %%: is the hull still needed?", 100*share)
	}
}

// Widening the level widens the interval; the ratio lies inside.
func TestIntervalsNest(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 50 {
		logs := make([]float64, 2+rng.IntN(20))
		for i := range logs {
			logs[i] = rng.NormFloat64()
		}
		e := Summarise(slices.Clone(logs), 1, 500)
		lastLow, lastHigh := e.Ratio, e.Ratio
		for _, level := range []float64{0.5, 0.9, 0.95, 0.999} {
			low, high := e.Interval(level)
			if low > lastLow*(1+1e-12) || high < lastHigh*(1-1e-12) {
				t.Fatalf("level %v: %v .. %v does not hold %v .. %v", level, low, high, lastLow, lastHigh)
			}
			lastLow, lastHigh = low, high
		}
	}
}
