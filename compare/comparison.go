// SPDX-License-Identifier: Apache-2.0

package compare

// Word is the outcome of a comparison, seen from B.
type Word string

const (
	Faster        Word = "faster"         // B is better: the interval lies above 1, the ratio beyond the margin
	Slower        Word = "slower"         // A is better, likewise
	Equivalent    Word = "equivalent"     // the 90 % interval lies within the margin
	Inconclusive  Word = "inconclusive"   // neither could be shown
	Insufficient  Word = "insufficient"   // too few blocks to say
	NotComparable Word = "not comparable" // the arms were not under the same conditions
)

// Bound says whether a ratio could be larger than what was seen.
type Bound string

const (
	NoBound    Bound = "none"
	LowerBound Bound = "lower" // the better arm took all that was offered
)

// Comparison is one metric of two arms over paired blocks.
//
// The ratio always points the same way: above 1 means B is better. For a
// rate it is b/a, for a cost a/b; RatioIs says which.
type Comparison struct {
	A      string `json:"a"`
	B      string `json:"b"`
	Metric string `json:"metric"`
	// AValue and BValue are the medians over valid trials, in the metric's unit.
	AValue  *float64    `json:"a_value"`
	BValue  *float64    `json:"b_value"`
	RatioIs string      `json:"ratio_is"`
	Ratio   *float64    `json:"ratio"` // median over blocks
	CI      *[2]float64 `json:"ci"`
	CILevel float64     `json:"ci_level"`
	// Range is what the bounds of a search leave open: the least of one arm over the most of the other, both ways. It is no
	// confidence interval. Null where a bound is missing.
	Range *[2]float64 `json:"range,omitempty"`
	// Blocks with a ratio; at least one valid trial of each arm.
	Blocks      int     `json:"blocks"`
	ValidTrials int     `json:"valid_trials"`
	Trials      int     `json:"trials"`
	Margin      float64 `json:"margin"` // practical margin, 0.02 = 2 %
	// P is of Student's paired t test on the log-ratios; PHolm is P adjusted
	// over a sweep's cells; PSign is of the sign-flip permutation test, which
	// assumes less and cannot go below 2/2^Blocks.
	P       *float64 `json:"p"`
	PHolm   *float64 `json:"p_holm,omitempty"`
	PSign   *float64 `json:"p_sign"`
	Bound   Bound    `json:"bound"`
	Word    Word     `json:"word"`
	Because string   `json:"because"`
	// Control marks the A/A comparison of an arm with its twin.
	Control bool `json:"control,omitempty"`
	// Notes list differences a reader must know: modes, effective settings.
	Notes []string `json:"notes,omitempty"`
}

// RequirementResult is the outcome of one --require.
type RequirementResult struct {
	Text  string   `json:"text"`
	Value *float64 `json:"value"`
	OK    bool     `json:"ok"`
	// Because names the requirement and the value that broke it.
	Because string `json:"because,omitempty"`
}

const (
	// MinBlocks is the fewest blocks that give a verdict: with six pairs the
	// sign-flip test can reach p = 2/64; with five it cannot reach 0.05.
	MinBlocks = 6
	// DefaultMargin is the practical margin: differences below 2 % are not
	// called faster or slower, and within it arms are equivalent.
	DefaultMargin = 0.02
)
