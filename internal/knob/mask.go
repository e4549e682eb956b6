// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// parseMask reads a bitmap of CPUs as the kernel writes them: groups of 32 bits in hex, the highest first.
func parseMask(s string) ([]int, error) {
	var out []int
	for i, word := range slices.Backward(strings.Split(s, ",")) {
		bits, err := strconv.ParseUint(word, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("CPU mask %q: %w", s, err)
		}
		base := 32 * (strings.Count(s, ",") - i)
		for b := range 32 {
			if bits>>b&1 == 1 {
				out = append(out, base+b)
			}
		}
	}
	return out, nil
}

// formatMask writes CPUs as such a bitmap.
func formatMask(cpus []int) string {
	words := []uint32{0}
	for _, c := range cpus {
		for len(words) <= c/32 {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	var b strings.Builder
	for i, w := range slices.Backward(words) {
		if i == len(words)-1 {
			fmt.Fprintf(&b, "%x", w)
			continue
		}
		fmt.Fprintf(&b, ",%08x", w)
	}
	return b.String()
}
