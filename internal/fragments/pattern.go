// SPDX-License-Identifier: Apache-2.0

package fragments

import "slices"

// Pattern is how a datagram's fragments are sent. The words are those of a plan.
type Pattern string

// The patterns.
const (
	InOrder     Pattern = "in-order"
	Shuffled    Pattern = "shuffled"    // in any order, and those of up to four datagrams mixed
	Duplicated  Pattern = "duplicated"  // every fragment but the last twice
	Overlapping Pattern = "overlapping" // the last begins eight bytes early: the datagram must be dropped (RFC 5722)
	Missing     Pattern = "missing-one" // one is not sent
	Mix         Pattern = "mix"         // one datagram of each in turn, the shuffled not mixed with others
)

// Patterns are all of them.
func Patterns() []Pattern {
	return []Pattern{InOrder, Shuffled, Duplicated, Overlapping, Missing, Mix}
}

// of is the pattern of one datagram.
func (p Pattern) of(number uint64) Pattern {
	if p != Mix {
		return p
	}
	all := Patterns()
	return all[number%uint64(len(all)-1)]
}

func (p Pattern) known() bool { return slices.Contains(Patterns(), p) }
