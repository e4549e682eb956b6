// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"math/bits"
)

// Sequence numbers are 40 bits on the wire (see internal/packet: the upper 8 bits of the u48 name the stream).
const (
	numberBits = 40
	numberMask = 1<<numberBits - 1
)

// MinWindow is the smallest window, in sequence numbers: 2^20 is 0.7 s at 1.488 Mpps.
const MinWindow = 1 << 20

// Class says what Window.Add made of a number.
type Class uint8

// The classes. Every added number is in exactly one of them, except that a Reordered one is unique too.
const (
	InOrder   Class = iota + 1 // unique and not below NextExp
	Reordered                  // unique, but below NextExp (RFC 4737 section 3.3)
	Duplicate                  // seen before
	Late                       // so far behind that the window no longer knows whether it was seen
	Unknown                    // of a stream nobody announced (Streams only)
)

// Tally counts numbers by class. Unique includes Reordered; Unique + Duplicate + Late + Unknown is all that was added.
type Tally struct {
	Unique    uint64 // numbers seen for the first time
	Reordered uint64 // of these, how many came after a higher one (Type-P-Reordered of RFC 4737)
	Duplicate uint64 // numbers seen again, within the window
	Late      uint64 // numbers older than the window: first or second time, it cannot be known
	Unknown   uint64 // numbers of unannounced streams
	MaxExtent uint64 // largest NextExp - number of a reordered one: how far back it belonged, in numbers
}

// Merge adds another worker's tally.
func (t *Tally) Merge(o Tally) {
	t.Unique += o.Unique
	t.Reordered += o.Reordered
	t.Duplicate += o.Duplicate
	t.Late += o.Late
	t.Unknown += o.Unknown
	t.MaxExtent = max(t.MaxExtent, o.MaxExtent)
}

// Window accounts the sequence numbers of one stream, exactly, as long as a number is less than the window's size
// minus 64 behind the highest one. It belongs to one goroutine.
//
// Numbers start at 0 and may wrap at 2^40: each is read as the value nearest to the next expected one.
//
// A run of numbers in order costs one comparison and one addition each: expect runs ahead of next, and settle enters
// the run into the bitmap, 64 numbers at a time, when something else comes.
type Window struct {
	expect uint64 // the number that continues the run, unextended; 2^40 when the run has reached the wrap
	next   uint64 // RFC 4737 NextExp, extended to 64 bits: 1 + the highest number settled
	head   uint64 // words entered so far: word k holds numbers 64k .. 64k+63, and words head-len(seen) .. head-1 are here
	mask   uint64 // len(seen) - 1
	seen   []uint64
	tally  Tally
	gaps   gapLog // what is known missing among the words that left the window
}

// NewWindow makes a window that remembers size numbers, a power of two of at least MinWindow.
func NewWindow(size int) (*Window, error) {
	w := new(Window)
	return w, w.init(size)
}

func (w *Window) init(size int) error {
	if size < MinWindow || size&(size-1) != 0 {
		return fmt.Errorf("window size %d: want a power of two of at least %d", size, MinWindow)
	}
	w.seen = make([]uint64, size/64)
	w.mask = uint64(len(w.seen) - 1)
	return nil
}

// Add accounts one received number, below 2^40.
func (w *Window) Add(number uint64) Class {
	if number == w.expect {
		w.expect++
		return InOrder
	}
	return w.interrupted(number)
}

// interrupted ends a run: with a number out of order, or at the wrap.
func (w *Window) interrupted(number uint64) Class {
	w.settle()
	c := w.outOfOrder(number)
	w.expect = w.next & numberMask
	return c
}

// settle enters the run next .. expect-1 into the bitmap.
func (w *Window) settle() {
	run := w.expect - w.next&numberMask
	end := w.next + run
	for n := w.next; n < end; {
		k := n >> 6
		if k >= w.head {
			w.enter(k)
		}
		to := min(end, (k+1)<<6)
		w.seen[k&w.mask] |= ^uint64(0) << (n & 63) & (^uint64(0) >> (63 - (to-1)&63))
		n = to
	}
	w.next = end
	w.expect = end & numberMask
	w.tally.Unique += run
}

func (w *Window) outOfOrder(number uint64) Class {
	ahead := (number - w.next) & numberMask
	if ahead < 1<<(numberBits-1) {
		n := w.next + ahead
		if n>>6 >= w.head {
			w.enter(n >> 6)
		}
		w.seen[n>>6&w.mask] |= 1 << (n & 63)
		w.next = n + 1
		w.tally.Unique++
		return InOrder
	}
	extent := (w.next - number) & numberMask
	if extent > w.next || (w.next-extent)>>6+uint64(len(w.seen)) < w.head {
		w.tally.Late++ // before the first number of all, or its word has left the window
		return Late
	}
	n := w.next - extent
	word, bit := &w.seen[n>>6&w.mask], uint64(1)<<(n&63)
	if *word&bit != 0 {
		w.tally.Duplicate++
		return Duplicate
	}
	*word |= bit
	w.tally.Unique++
	w.tally.Reordered++
	w.tally.MaxExtent = max(w.tally.MaxExtent, extent)
	return Reordered
}

// enter makes room for word k >= head. A word that leaves can get no more numbers, so its holes are final.
func (w *Window) enter(k uint64) {
	n := uint64(len(w.seen))
	if k-w.head >= n { // the whole window is jumped over
		for i := w.head - min(w.head, n); i < w.head; i++ {
			w.gaps.word(i<<6, w.seen[i&w.mask])
		}
		w.gaps.missing(w.head<<6, (k-n+1)<<6)
		clear(w.seen)
		w.head = k + 1
		return
	}
	for ; w.head <= k; w.head++ {
		if w.head >= n {
			w.gaps.word((w.head-n)<<6, w.seen[w.head&w.mask])
		}
		w.seen[w.head&w.mask] = 0
	}
}

// Tally is what was counted so far.
func (w *Window) Tally() Tally {
	w.settle()
	return w.tally
}

// Next is RFC 4737's NextExp: 1 + the highest number seen, or 0.
func (w *Window) Next() uint64 {
	w.settle()
	return w.next
}

// Gaps says which numbers below sent are missing. Late numbers count as missing, for nobody knows better.
func (w *Window) Gaps(sent uint64) Gaps {
	w.settle()
	g := w.gaps
	n := uint64(len(w.seen))
	for i := w.head - min(w.head, n); i < w.head; i++ {
		word := w.seen[i&w.mask]
		if i == w.head-1 {
			word |= ^uint64(0) << (w.next - i<<6) // numbers not yet due are the tail's business; a shift by 64 is 0
		}
		g.word(i<<6, word)
	}
	if sent > w.next {
		g.missing(w.next, sent)
		g.TailLost = sent - w.next
	} else {
		g.Beyond = w.next - sent
	}
	return g.Gaps
}

// Gaps sums up the missing numbers of a stream.
type Gaps struct {
	Missing      uint64 // how many numbers
	Ranges       uint64 // in how many unbroken ranges
	First        uint64 // lowest missing number, when Missing > 0
	Last         uint64 // highest missing number, when Missing > 0
	LongestStart uint64 // first number of the longest range
	Longest      uint64 // its length
	TailLost     uint64 // how many were lost at the very end: sent - 1 - highest seen
	Beyond       uint64 // how far the highest number seen lies above sent - 1: not 0 means somebody miscounted
}

// gapLog collects missing ranges in rising order, joining neighbours.
type gapLog struct {
	Gaps
	start, end uint64 // the range that may still grow; empty when equal
}

func (g *gapLog) word(base, seen uint64) {
	for pos := 0; pos < 64; {
		if ones := bits.TrailingZeros64(^(seen >> pos)); ones > 0 { // the shift brings in zeros, so ones ends at 64-pos
			pos += ones
			continue
		}
		zeros := min(bits.TrailingZeros64(seen>>pos), 64-pos)
		g.missing(base+uint64(pos), base+uint64(pos+zeros))
		pos += zeros
	}
}

func (g *gapLog) missing(from, to uint64) {
	if from >= to {
		return
	}
	if g.Missing == 0 {
		g.First = from
	}
	if g.start == g.end || from != g.end {
		g.Ranges++
		g.start = from
	}
	g.end = to
	g.Missing += to - from
	g.Last = to - 1
	if l := g.end - g.start; l > g.Longest {
		g.Longest, g.LongestStart = l, g.start
	}
}
