// SPDX-License-Identifier: Apache-2.0

package measure

import "fmt"

// MaxStreams is how many streams the 8-bit stream field of the stamp can name.
const MaxStreams = 256

// Streams is one Window per stream; a stream is one generating core. One goroutine owns it; workers have one each
// and merge their Tallies at the end.
type Streams struct {
	windows []Window
	unknown uint64
}

// NewStreams makes windows of the given size (see NewWindow) for streams 0 .. n-1. Memory is n * size / 8 bytes.
func NewStreams(n, size int) (*Streams, error) {
	if n < 1 || n > MaxStreams {
		return nil, fmt.Errorf("%d streams: want 1..%d", n, MaxStreams)
	}
	s := &Streams{windows: make([]Window, n)}
	for i := range s.windows {
		if err := s.windows[i].init(size); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Add accounts a u48 sequence as it is in the stamp: stream << 40 | number.
func (s *Streams) Add(sequence uint64) Class {
	if i := sequence >> numberBits; i < uint64(len(s.windows)) {
		return s.windows[i].Add(sequence & numberMask)
	}
	s.unknown++
	return Unknown
}

// Len is the number of streams.
func (s *Streams) Len() int { return len(s.windows) }

// Stream gives one stream's window, 0 <= i < Len.
func (s *Streams) Stream(i int) *Window { return &s.windows[i] }

// Tally is the sum over all streams.
func (s *Streams) Tally() Tally {
	t := Tally{Unknown: s.unknown}
	for i := range s.windows {
		t.Merge(s.windows[i].Tally())
	}
	return t
}

// StreamResult is one stream after a trial, as one worker or several saw it.
type StreamResult struct {
	Tally Tally
	Next  uint64 // 1 + the highest number seen by any worker
	Sent  uint64 // how many numbers the generator used
	// Gaps is filled while one worker saw the whole stream. When several shared it, each lacks what the others got,
	// so GapsKnown is false and only Lost is left to say.
	Gaps      Gaps
	GapsKnown bool
}

// Lost is sent minus unique, never below 0.
func (r StreamResult) Lost() uint64 { return r.Sent - min(r.Sent, r.Tally.Unique) }

// MergeStreams adds up what the workers saw; sent[i] is the number count of stream i. Numbers of one stream may be
// spread over workers (REUSEPORT by flow), and each worker's tally is exact for what it got; a copy of the same number
// at two workers counts as unique twice, which shows as more unique than Next.
func MergeStreams(sent []uint64, workers ...*Streams) ([]StreamResult, error) {
	out := make([]StreamResult, len(sent))
	for i := range out {
		r := &out[i]
		r.Sent, r.GapsKnown = sent[i], true
		r.Gaps = (&Window{}).Gaps(sent[i])
		seenBy := 0
		for _, w := range workers {
			if w.Len() != len(sent) {
				return nil, fmt.Errorf("merge streams: a worker has %d, the generator %d", w.Len(), len(sent))
			}
			one := w.Stream(i)
			t := one.Tally()
			r.Tally.Merge(t)
			r.Next = max(r.Next, one.Next())
			if t != (Tally{}) {
				seenBy++
				r.Gaps = one.Gaps(sent[i])
			}
		}
		if seenBy > 1 {
			r.Gaps, r.GapsKnown = Gaps{}, false
		}
	}
	return out, nil
}
