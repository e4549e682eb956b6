// SPDX-License-Identifier: Apache-2.0

package netstack

// placing says how a fragment lies to those that are held.
type placing uint8

const (
	apart  placing = iota // it has bytes of its own only
	within                // all of it lies in one run
	across                // some of it is held, but not in one run
)

// run is a range of bytes that is held: a fragment, and those that came after it, each right at its end. A fragment that
// closes the gap between two runs is a run of its own, as in Linux (net/ipv4/inet_fragment.c, inet_frag_queue_insert): it
// decides whether a longer copy that spans several is a duplicate or an overlap.
type run struct {
	start, end int32
	next       int32 // the next higher one, or the next unused
}

// runs has the runs of all entries. There are as many as blocks in the store, and each run has a block.
type runs struct {
	all  []run
	free int32
}

func newRuns(n int) runs {
	r := runs{all: make([]run, n)}
	for i := range r.all {
		r.all[i].next = int32(i) + 1
	}
	r.all[n-1].next = none
	return r
}

// place says how bytes start..end lie to those of e. Nothing is changed: insert does that when there is memory for them.
func (r *runs) place(e *entry, start, end int) placing {
	if e.tail == none {
		return apart
	}
	if last := int(r.all[e.tail].end); last < end { // the common case: at the end
		if start < last {
			return across
		}
		return apart
	}
	for i := e.run; i != none; i = r.all[i].next {
		x := &r.all[i]
		switch {
		case end <= int(x.start):
			return apart
		case start >= int(x.end):
		case start >= int(x.start) && end <= int(x.end):
			return within
		default:
			return across
		}
	}
	return apart
}

// insert enters bytes that lie apart. A run is free for each block of the store, and the fragment has one.
func (r *runs) insert(e *entry, start, end int) {
	if e.tail != none && int(r.all[e.tail].end) == start {
		r.all[e.tail].end = int32(end)
		return
	}
	n := r.free
	r.free = r.all[n].next
	x := &r.all[n]
	x.start, x.end = int32(start), int32(end)
	if e.tail == none || int(r.all[e.tail].end) < end {
		x.next = none
		if e.tail == none {
			e.run = n
		} else {
			r.all[e.tail].next = n
		}
		e.tail = n
		return
	}
	at := &e.run
	for int(r.all[*at].start) < start {
		at = &r.all[*at].next
	}
	x.next, *at = *at, n
}

// release gives the runs of e back.
func (r *runs) release(e *entry) {
	if e.tail != none {
		r.all[e.tail].next, r.free = r.free, e.run
		e.run, e.tail = none, none
	}
}
