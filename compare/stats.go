// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
)

// Resamples is how many bootstrap samples an interval is made of.
const Resamples = 10000

// Estimate is the summary of paired log-ratios, one per block.
type Estimate struct {
	N       int
	Ratio   float64 // exp of the median log-ratio
	P       float64 // two-sided, Student's t on the log-ratios; 1 for fewer than two
	PSign   float64 // two-sided, sign-flip permutation
	logs    []float64
	medians []float64 // sorted, of the bootstrap samples
}

// Summarise estimates the median ratio from one log-ratio per block. The seed
// fixes the bootstrap, resamples its size.
func Summarise(logs []float64, seed uint64, resamples int) Estimate {
	e := Estimate{N: len(logs), Ratio: math.NaN(), P: 1, PSign: 1, logs: slices.Clone(logs)}
	if e.N == 0 {
		return e
	}
	e.Ratio = math.Exp(median(slices.Clone(logs)))
	e.medians = bootstrapMedians(logs, seed, resamples)
	e.PSign = signFlip(logs, seed)
	if mean, sem, ok := e.meanError(); ok {
		switch {
		case sem > 0:
			student := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(e.N - 1)}
			e.P = 2 * student.CDF(-math.Abs(mean)/sem)
		case math.Abs(mean) > 0:
			e.P = 0
		}
	}
	return e
}

// Interval is an interval of the ratio at a confidence level such as 0.95.
//
// It is the hull of two: the percentile bootstrap of the median over blocks,
// and Student's interval of the mean log-ratio. The bootstrap alone covers
// too little at few blocks: 92 to 94 % for 95 % at 6 to 20, in 4,000 simulated
// runs each of normal, Laplace, t(2), skewed, outlier-ridden and two-peaked
// noise. Student's alone follows the mean, which skew pulls off the median: 82 %
// at 20 blocks of exponential noise. The hull had 95.2 % or more in every
// case. [TestIntervalCoverage] repeats a part of that. Fewer than two blocks give 0 .. +Inf.
func (e Estimate) Interval(level float64) (low, high float64) {
	mean, sem, ok := e.meanError()
	if !ok {
		return 0, math.Inf(1)
	}
	tail := (1 - level) / 2
	t := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: float64(e.N - 1)}.Quantile(1 - tail)
	lo, hi := Quantile(e.medians, tail), Quantile(e.medians, 1-tail)
	return math.Exp(min(lo, mean-t*sem)), math.Exp(max(hi, mean+t*sem))
}

// meanError is the mean of the log-ratios and its standard error.
func (e Estimate) meanError() (mean, sem float64, ok bool) {
	if e.N < 2 {
		return 0, 0, false
	}
	mean, sd := stat.MeanStdDev(e.logs, nil)
	return mean, sd / math.Sqrt(float64(e.N)), true
}

func bootstrapMedians(logs []float64, seed uint64, resamples int) []float64 {
	rng := rand.New(rand.NewPCG(seed, bootstrapStream))
	medians, sample := make([]float64, resamples), make([]float64, len(logs))
	for i := range medians {
		for j := range sample {
			sample[j] = logs[rng.IntN(len(logs))]
		}
		medians[i] = median(sample)
	}
	slices.Sort(medians)
	return medians
}

// signFlip is the share of sign patterns whose mean is at least as far from 0
// as the one seen: all patterns up to 2^16, else 2^16 drawn at random with
// the one seen among them.
func signFlip(logs []float64, seed uint64) float64 {
	const most = 16
	sum, scale := 0.0, 0.0
	for _, x := range logs {
		sum += x
		scale += math.Abs(x)
	}
	// Sums of the same terms in another order differ in the last bits.
	seen := math.Abs(sum) - 1e-12*scale
	n := len(logs)
	rng := rand.New(rand.NewPCG(seed, signFlipStream))
	patterns, extreme := 1<<min(n, most), 0
	for i := range patterns {
		flipped := 0.0
		for j, x := range logs {
			neg := i>>j&1 == 1
			if n > most {
				neg = i > 0 && rng.Uint64()&1 == 1
			}
			if neg {
				x = -x
			}
			flipped += x
		}
		if math.Abs(flipped) >= seen {
			extreme++
		}
	}
	return float64(extreme) / float64(patterns)
}

// Holm adjusts p values for having been looked at together (Holm 1979): the
// chance that any of those below a level is false stays below that level.
func Holm(p []float64) []float64 {
	order := make([]int, len(p))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		switch {
		case p[a] < p[b]:
			return -1
		case p[a] > p[b]:
			return 1
		}
		return 0
	})
	adjusted, least := make([]float64, len(p)), 0.0
	for rank, i := range order {
		least = max(least, min(1, p[i]*float64(len(p)-rank)))
		adjusted[i] = least
	}
	return adjusted
}

// median of v, which it sorts; NaN for none.
func median(v []float64) float64 {
	n := len(v)
	if n == 0 {
		return math.NaN()
	}
	slices.Sort(v)
	if n%2 == 1 {
		return v[n/2]
	}
	return v[n/2-1] + (v[n/2]-v[n/2-1])/2
}

// Quantile interpolates in sorted values, of which there is at least one (Hyndman and Fan's type 7); q is from 0 to 1.
func Quantile(sorted []float64, q float64) float64 {
	x := q * float64(len(sorted)-1)
	i := int(x)
	if i+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[i] + (x-float64(i))*(sorted[i+1]-sorted[i])
}
