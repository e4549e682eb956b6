// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// parseNumber reads a decimal number with an optional decimal suffix k, M, G
// or T (any case). It takes no sign, exponent, NaN or infinity.
func parseNumber(s string) (float64, error) {
	digits, factor := s, 1.0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			factor = 1e3
		case 'm', 'M':
			factor = 1e6
		case 'g', 'G':
			factor = 1e9
		case 't', 'T':
			factor = 1e12
		}
	}
	if factor != 1 {
		digits = s[:len(s)-1]
	}
	if strings.Trim(digits, "0123456789.") != "" {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	if v *= factor; !finite(v) {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return v, nil
}

// ParseCount reads a whole number of packets: 1000000, 1_000_000, 1M, 1.5M.
func ParseCount(s string) (uint64, error) {
	v, err := parseNumber(strings.ReplaceAll(s, "_", ""))
	const most = 1 << 40 // the stamp's packet number has 40 bits
	problem := ""
	switch {
	case err != nil:
		problem = "not a number"
	case v < 1:
		problem = "must be at least 1"
	case v > most:
		problem = "too large for the 40-bit packet number of the stamp"
	case v != math.Trunc(v):
		problem = "not a whole number"
	default:
		return uint64(v), nil
	}
	return 0, &UsageError{What: "count", Token: s, Problem: problem, Hint: "as in 1000000, 1M or 2.5M"}
}

// ParseDuration reads a positive time with its unit: 10s, 500ms.
func ParseDuration(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	problem := ""
	switch {
	case err != nil && strings.Trim(s, "0123456789.") == "" && s != "":
		return 0, &UsageError{What: "duration", Token: s, Problem: "no unit", Nearest: s + "s"}
	case err != nil:
		problem = "not a duration"
	case d <= 0:
		problem = "must be positive"
	case d > 24*time.Hour:
		problem = "longer than a day"
	default:
		return d, nil
	}
	return 0, &UsageError{What: "duration", Token: s, Problem: problem, Hint: "as in 10s, 500ms or 2m"}
}

// parseBytes reads a size in bytes with an optional binary suffix k, M or G.
func parseBytes(s string) (uint64, error) {
	shift := 0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
	}
	digits := s
	if shift != 0 {
		digits = s[:len(s)-1]
	}
	n, err := strconv.ParseUint(digits, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%q is not a size", s)
	}
	return n << shift, nil
}

// formatBytes is the shortest exact form parseBytes reads.
func formatBytes(n uint64) string {
	for _, u := range []struct {
		shift  int
		suffix string
	}{{30, "G"}, {20, "M"}, {10, "k"}} {
		if n != 0 && n&(1<<u.shift-1) == 0 {
			return strconv.FormatUint(n>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatUint(n, 10)
}

// formatNumber is a number with the largest decimal suffix that keeps it
// short and exact; parseNumber reads it back.
func formatNumber(v float64) string {
	for _, u := range []struct {
		factor float64
		suffix string
	}{{1e9, "G"}, {1e6, "M"}, {1e3, "k"}} {
		if v >= u.factor {
			s := strconv.FormatFloat(v/u.factor, 'f', -1, 64)
			if back, err := parseNumber(s + u.suffix); err == nil && back == v && len(s) <= 6 {
				return s + u.suffix
			}
		}
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}
