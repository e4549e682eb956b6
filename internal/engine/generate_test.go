// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"
	"testing"

	"twopath/internal/agent"
)

// A count smaller than the number of CPUs leaves some without a load, not with one that never ends.
func TestWithLoad(t *testing.T) {
	for count, want := range map[uint64][]int{0: {3, 5}, 1: {3}, 2: {3, 5}, 9: {3, 5}} {
		if got := withLoad(agent.Prepare{CPUs: []int{3, 5}, Generate: &agent.Generator{Count: count}}); !slices.Equal(got, want) {
			t.Errorf("%d frames: CPUs %v, want %v", count, got, want)
		}
	}
}
