// SPDX-License-Identifier: Apache-2.0

package compare

import "slices"

// LoadTrial is a trial as a search sees it.
type LoadTrial struct {
	Load      float64 // asked for, packets/s
	Seconds   float64 // asked for
	LossRatio float64 // 0..1
}

// LoadClass is what the trials at one load make of it, for a goal (RFC 9971, Load Classification).
type LoadClass string

const (
	Undecided  LoadClass = "undecided"
	LowerClass LoadClass = "lower" // upholds the goal, whatever further trials within the duration sum would give
	UpperClass LoadClass = "upper" // does not, likewise
)

// tally sums the time of trials at one load by length and loss.
type tally struct{ fullLow, fullHigh, shortLow, shortHigh float64 }

func (g Goal) tally(trials []LoadTrial) tally {
	var s tally
	for _, t := range trials {
		full, low := t.Seconds >= g.FinalSeconds, t.LossRatio <= g.LossRatio
		switch {
		case full && low:
			s.fullLow += t.Seconds
		case full:
			s.fullHigh += t.Seconds
		case low:
			s.shortLow += t.Seconds
		default:
			s.shortHigh += t.Seconds
		}
	}
	return s
}

// slack is what sums of trial durations may miss of a threshold by rounding: 10 trials of 0.1 s are a second.
const slack = 1e-9

// Classify judges a load by the trials made at it so far; all must be of one load.
//
// Time still missing of the duration sum is taken once as if it all went well and once as if none did: the load is an upper
// bound when even the first exceeds the goal's exceed ratio, and a lower bound when even the second does not. Short trials
// cannot make a lower bound. Short high-loss ones count as full ones do, but for what short low-loss ones balance: in a mix
// of exactly the exceed ratio the two cancel.
func (g Goal) Classify(trials []LoadTrial) LoadClass {
	s := g.tally(trials)
	balance := s.shortLow * g.ExceedRatio / (1 - g.ExceedRatio)
	high := s.fullHigh + max(0, s.shortHigh-balance)
	whole := max(s.fullLow+high, g.SumSeconds)
	tolerated := whole*g.ExceedRatio + slack
	switch {
	case high > tolerated:
		return UpperClass
	case whole-s.fullLow <= tolerated:
		return LowerClass
	}
	return Undecided
}

// ConditionalPPS is the Conditional Throughput at the load of trials (RFC 9971): the load, less the loss ratio that the
// full-length trials keep to in all but the exceed ratio of the time. Time missing of the duration sum counts as all lost. It
// is 0 where no full-length trial was made.
func (g Goal) ConditionalPPS(trials []LoadTrial) float64 {
	var full []LoadTrial
	sum := 0.0
	for _, t := range trials {
		if t.Seconds >= g.FinalSeconds {
			full = append(full, t)
			sum += t.Seconds
		}
	}
	if len(full) == 0 {
		return 0
	}
	slices.SortFunc(full, func(a, b LoadTrial) int {
		switch {
		case a.LossRatio < b.LossRatio:
			return -1
		case a.LossRatio > b.LossRatio:
			return 1
		}
		return 0
	})
	left := max(sum, g.SumSeconds) * (1 - g.ExceedRatio)
	loss := full[0].LossRatio
	for _, t := range full {
		if left <= slack {
			break
		}
		loss = t.LossRatio
		left -= t.Seconds
	}
	if left > slack {
		loss = 1
	}
	return full[0].Load * (1 - loss)
}
