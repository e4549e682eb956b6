// SPDX-License-Identifier: Apache-2.0

package tcp

// tickShift makes ticks of nanoseconds: one is 2^20 ns, 1.05 ms.
const tickShift = 20

// tick is a time in ticks; it wraps after 52 days and is compared by difference.
func tick(ns int64) uint32 { return uint32(ns >> tickShift) }

// Timer lists: all sockets of a list wait for the same length of time, so the first to come is the first to run out, and
// inserting, removing and looking are O(1). Retransmissions have a list for each back-off (RFC 6298, section 5.5).
const (
	maxTries     = 6 // times a segment is sent again before the peer is given up
	listResponse = maxTries + 1
	listInterval = maxTries + 2
	listIdle     = maxTries + 3
	lists        = maxTries + 4
)

type fifo struct{ head, tail uint32 } // index + 1

// arm puts a socket at the end of a list, from whichever it was in.
func (l *Load) arm(i uint32, list uint8, due uint32) {
	s := &l.socks[i]
	if s.list != 0 {
		l.disarm(i)
	}
	f := &l.timers[list]
	s.list, s.due, s.prev, s.next = list+1, due, f.tail, 0
	if f.tail != 0 {
		l.socks[f.tail-1].next = i + 1
	} else {
		f.head = i + 1
	}
	f.tail = i + 1
}

// disarm takes a socket off its list.
func (l *Load) disarm(i uint32) {
	s := &l.socks[i]
	if s.list == 0 {
		return
	}
	f := &l.timers[s.list-1]
	if s.prev != 0 {
		l.socks[s.prev-1].next = s.next
	} else {
		f.head = s.next
	}
	if s.next != 0 {
		l.socks[s.next-1].prev = s.prev
	} else {
		f.tail = s.prev
	}
	s.list, s.next, s.prev = 0, 0, 0
}

// rto estimates the retransmission timeout (RFC 6298) over all connections of an engine: they share one path, and a FIFO
// list needs one timeout.
type rto struct {
	srtt, rttvar int64 // ns; 0 before the first sample
	ns           int64
	least        int64
}

// The bounds of the timeout: RFC 6298 starts at 1 s and asks for 1 s at least; 200 ms is what Linux takes, and a peer that
// is one cable away does not delay an ACK by more.
const (
	firstRTO = int64(1e9)
	leastRTO = int64(200e6)
	mostRTO  = int64(60e9)
)

func (r *rto) sample(ns int64) {
	if ns < 0 {
		return
	}
	if r.srtt == 0 {
		r.srtt, r.rttvar = ns, ns/2
	} else {
		d := r.srtt - ns
		if d < 0 {
			d = -d
		}
		r.rttvar += (d - r.rttvar) / 4
		r.srtt += (ns - r.srtt) / 8
	}
	r.ns = min(max(r.srtt+4*r.rttvar, r.least), mostRTO)
}

// ticks is the timeout of the given back-off.
func (r *rto) ticks(tries uint8) uint32 {
	return uint32(min(r.ns<<tries, mostRTO)>>tickShift) + 1
}
