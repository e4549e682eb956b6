// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"strings"
)

// UsageError is a mistake in what the user typed (exit code 2). Its text is
// one sentence that names the wrong token and ends with what to type instead.
type UsageError struct {
	What    string   // "arm", "rate", "size", a plan key, ...
	Token   string   // the part that is wrong
	Problem string   // lower case, no full stop: "unknown option"
	Allowed []string // every token that would do here; empty when they cannot be listed
	Nearest string   // the allowed token the user probably meant; empty when none is near
	Hint    string   // the next thing to type, when it is not one of Allowed
}

func (e *UsageError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %q: %s", e.What, e.Token, e.Problem)
	if e.Nearest != "" {
		fmt.Fprintf(&b, "; did you mean %q?", e.Nearest)
	}
	if len(e.Allowed) > 0 {
		sep := "; "
		if e.Nearest != "" {
			sep = " "
		}
		fmt.Fprintf(&b, "%sallowed: %s", sep, strings.Join(e.Allowed, ", "))
	}
	if e.Hint != "" {
		fmt.Fprintf(&b, "; %s", e.Hint)
	}
	return b.String()
}

// Unknown is the error for a token that is not in a list, with the nearest one that is.
func Unknown(what, token, problem string, allowed []string) *UsageError {
	return unknown(what, token, problem, allowed)
}

func unknown(what, token, problem string, allowed []string) *UsageError {
	return &UsageError{What: what, Token: token, Problem: problem, Allowed: allowed, Nearest: nearest(token, allowed)}
}

// nearest is the candidate with the least edit distance to s, if that is
// small enough to be a slip of the finger: a third of s's letters, at least
// one, or a prefix of three letters or more.
func nearest(s string, candidates []string) string {
	best, least := "", 1+max(1, len(s)/3)
	for _, c := range candidates {
		if d := editDistance(strings.ToLower(s), strings.ToLower(c)); d < least {
			best, least = c, d
		}
	}
	if best != "" {
		return best
	}
	for _, c := range candidates {
		if len(s) >= 3 && strings.HasPrefix(c, strings.ToLower(s)) {
			return c
		}
	}
	return ""
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours (optimal string alignment), over bytes, of at most 64.
func editDistance(a, b string) int {
	const most = 64
	if len(a) > most || len(b) > most {
		return most
	}
	before, prev, cur := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(a); i++ {
		cur[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			cur[j] = min(prev[j]+1, cur[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				cur[j] = min(cur[j], before[j-2]+1)
			}
		}
		before, prev, cur = prev, cur, before
	}
	return prev[len(b)]
}
