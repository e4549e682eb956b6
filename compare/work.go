// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"strconv"
	"strings"
	"time"
)

// Work is what the application does with each packet, after the path
// delivered it: burn a time, or run a loop. The zero Work is none.
type Work struct {
	Time  time.Duration
	Loops uint64
}

// ParseWork reads 800ns, 5us or loop:1000 (loop:1k); "0", "none" and "" are no work.
func ParseWork(s string) (Work, error) {
	refuse := func(problem string) (Work, error) {
		return Work{}, &UsageError{What: "work", Token: s, Problem: problem, Hint: "as in 800ns, 5us or loop:1000"}
	}
	switch s {
	case "", "0", "none":
		return Work{}, nil
	}
	if k, ok := strings.CutPrefix(s, "loop:"); ok {
		v, err := parseNumber(k)
		n := uint64(v)
		if err != nil || v < 1 || v > 1e9 || float64(n) != v {
			return refuse("a loop count is a whole number in 1..1G")
		}
		return Work{Loops: n}, nil
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil && s == "loop":
		return refuse("a loop needs its count")
	case err != nil:
		return refuse("neither a time with its unit nor a loop")
	case d <= 0:
		return refuse("must be positive")
	case d > time.Second:
		return refuse("more than a second per packet")
	}
	return Work{Time: d}, nil
}

// String is the work as typed; "" for none.
func (w Work) String() string {
	switch {
	case w.Loops > 0:
		return "loop:" + strconv.FormatUint(w.Loops, 10)
	case w.Time > 0:
		return strings.ReplaceAll(w.Time.String(), "µ", "u")
	}
	return ""
}

// MarshalText writes the work as typed.
func (w Work) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (w *Work) UnmarshalText(b []byte) error {
	v, err := ParseWork(string(b))
	if err == nil {
		*w = v
	}
	return err
}
