// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"
)

// MaxImbalance is how many times as many packets as the least busy worker the busiest may have had before a remark is due:
// with 256 flows, the hash that spreads them over two workers stays well within.
const MaxImbalance = 1.5

// Imbalance is the share of the busiest worker over that of the least busy: 1 is even, +Inf is a worker that got nothing.
// It is NaN where there is nothing to balance: fewer than two workers, or no packet at all.
func Imbalance(perWorker []uint64) float64 {
	if len(perWorker) < 2 || slices.Max(perWorker) == 0 {
		return math.NaN()
	}
	return float64(slices.Max(perWorker)) / float64(slices.Min(perWorker))
}

// addWorkers adds one trial's counts to an arm's.
func addWorkers(sum, more []uint64) []uint64 {
	for i, n := range more {
		if i == len(sum) {
			sum = append(sum, 0)
		}
		sum[i] += n
	}
	return sum
}
