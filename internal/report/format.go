// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// missing is what a number that was not measured prints as. It is never 0:
// a reader must be able to tell "none" from "not known".
const missing = "-"

// thousands puts separators into the digits of an integer.
func thousands(n int64) string {
	s := strconv.FormatInt(n, 10)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	return sign + group(s)
}

// uthousands is thousands for counters.
func uthousands(n uint64) string { return group(strconv.FormatUint(n, 10)) }

func group(digits string) string {
	if len(digits) <= 3 {
		return digits
	}
	var b strings.Builder
	head := len(digits) % 3
	b.WriteString(digits[:head])
	for i := head; i < len(digits); i += 3 {
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(digits[i : i+3])
	}
	return b.String()
}

// fixed prints v with the given decimals and separators in its integer part.
// Values no integer could hold print in scientific notation.
func fixed(v float64, decimals int) string {
	if !finite(v) {
		return missing
	}
	if math.Abs(v) >= 1e15 {
		return strconv.FormatFloat(v, 'e', 3, 64)
	}
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	sign := ""
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	whole, frac, has := strings.Cut(s, ".")
	if strings.Trim(s, "0.") == "" {
		sign = "" // no "-0.00"
	}
	if !has {
		return sign + group(whole)
	}
	return sign + group(whole) + "." + frac
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// significant prints v with about three significant digits and no exponent
// for the sizes that occur here: 4.79, 12.3, 123, 0.209, 0.0213.
func significant(v float64) string {
	a := math.Abs(v)
	switch {
	case !finite(v):
		return missing
	case a == 0:
		return "0"
	case a < 1e-6:
		return strconv.FormatFloat(v, 'g', 3, 64)
	case a >= 99.95:
		return fixed(v, 0)
	case a >= 9.995:
		return fixed(v, 1)
	case a >= 0.9995:
		return fixed(v, 2)
	}
	// 0.0213 needs as many leading zeros as it has, plus three digits.
	return fixed(v, 2-int(math.Floor(math.Log10(a))))
}

// pps prints packets per second (or any event rate) without the unit.
func pps(v float64) string {
	if finite(v) && v != 0 && math.Abs(v) < 99.95 {
		return significant(v)
	}
	return fixed(v, 0)
}

// gbps prints bits per second as Gb/s without the unit.
func gbps(bitsPerSecond float64) string {
	g := bitsPerSecond / 1e9
	if finite(g) && g != 0 && math.Abs(g) < 0.1 {
		return significant(g)
	}
	return fixed(g, 3)
}

// percent prints a ratio as a percentage with its unit. A loss that is not
// zero never prints as zero, and one that is not total never as 100 %.
func percent(ratio float64) string {
	if !finite(ratio) {
		return missing
	}
	p := ratio * 100
	if ratio == 0 || ratio == 1 {
		return fixed(p, 2) + " %"
	}
	for _, decimals := range []int{2, 3, 4, 5, 6} {
		s := strconv.FormatFloat(p, 'f', decimals, 64)
		shown, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return missing
		}
		if shown != 0 && (shown != 100 || ratio > 1) {
			return fixed(p, decimals) + " %"
		}
	}
	switch {
	case p > 0 && p < 1:
		return "<0.000001 %"
	case p < 0:
		return ">-0.000001 %"
	}
	return ">99.999999 %"
}

// nanoseconds prints a duration in ns without the unit.
func nanoseconds(v float64) string {
	if finite(v) && v != 0 && math.Abs(v) < 99.95 {
		return significant(v)
	}
	return fixed(v, 0)
}

// ratioText prints "4.79 x". Ratios near one keep three decimals, because the
// practical margin is 2 %.
func ratioText(v float64) string {
	if !finite(v) {
		return missing
	}
	return ratioNumber(v) + " x"
}

func ratioNumber(v float64) string {
	if v > 0.9 && v < 1.1 {
		return fixed(v, 3)
	}
	return significant(v)
}

// shortRate prints a packet rate for running text: "4.9 Mpps", "300 kpps".
func shortRate(v float64) string {
	switch a := math.Abs(v); {
	case !finite(v):
		return missing
	case a >= 1e6:
		return trimZeros(fixed(v/1e6, 2)) + " Mpps"
	case a >= 1e4:
		return trimZeros(fixed(v/1e3, 1)) + " kpps"
	}
	return pps(v) + " pps"
}

// shortBits prints a bit rate for running text: "1 Gb/s", "960 Mb/s".
func shortBits(v float64) string {
	switch a := math.Abs(v); {
	case !finite(v):
		return missing
	case a >= 1e9*0.99995:
		return trimZeros(fixed(v/1e9, 3)) + " Gb/s"
	case a >= 1e6:
		return trimZeros(fixed(v/1e6, 1)) + " Mb/s"
	case a >= 1e3:
		return trimZeros(fixed(v/1e3, 1)) + " kb/s"
	}
	return trimZeros(fixed(v, 1)) + " b/s"
}

func trimZeros(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimRight(strings.TrimRight(s, "0"), ".")
}

// secondsText prints a duration for people: "31 s", "2 min 5 s", "1 h 10 min".
func secondsText(s float64) string {
	switch {
	case !finite(s) || s < 0:
		return missing
	case s < 10 && s != math.Trunc(s):
		return trimZeros(fixed(s, 1)) + " s"
	case s < 60:
		return fixed(s, 0) + " s"
	case s < 3600:
		t := int64(math.Round(s))
		return fmt.Sprintf("%d min %d s", t/60, t%60)
	case s < 1e9:
		t := int64(math.Round(s / 60))
		return fmt.Sprintf("%d h %d min", t/60, t%60)
	}
	return missing
}

// plural prints "1 flow", "64 flows".
func plural(n int64, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return thousands(n) + " " + one + "s"
}
