// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"errors"
	"fmt"
	"time"
)

// MaxPayload is how many bytes a whole datagram carries at most: what IPv6's payload length can say. IPv4's total length
// counts the header too.
const MaxPayload = 65535

// Options bound a reassembler. What IPv4's and IPv6's standards leave open is as in Linux, whose names stand beside.
type Options struct {
	Datagrams int           // incomplete datagrams held at most; 0 means 4096
	Bytes     int           // memory for their fragments, 2 KiB or a multiple for each; 0 means 4 MiB (ipfrag_high_thresh)
	Timeout   time.Duration // from a datagram's first fragment until it is given up; 0 means 30 s (ipfrag_time)
	// Distance (ipfrag_max_dist) is how many fragments of the same source may come between two of an IPv4 datagram: with more,
	// its 16-bit id may have come round, and what is held is given up. 0 means no limit. Sources share 256 counters.
	Distance int
}

func (o *Options) complete() error {
	if o.Datagrams == 0 {
		o.Datagrams = 4096
	}
	if o.Bytes == 0 {
		o.Bytes = 4 << 20
	}
	if o.Timeout == 0 {
		o.Timeout = 30 * time.Second
	}
	switch {
	case o.Datagrams < 1 || o.Datagrams > 1<<24:
		return fmt.Errorf("reassembler options: Datagrams: %d is not within 1..%d", o.Datagrams, 1<<24)
	case o.Bytes < blockLen || o.Bytes > 1<<34:
		return fmt.Errorf("reassembler options: Bytes: %d is not within %d..%d", o.Bytes, blockLen, 1<<34)
	case o.Timeout < 0:
		return fmt.Errorf("reassembler options: Timeout: %v is negative", o.Timeout)
	case o.Distance < 0:
		return errors.New("reassembler options: Distance is negative")
	}
	return nil
}

// Verdict says what became of a packet.
type Verdict uint8

// The verdicts. The zero value is none.
const (
	_         Verdict = iota
	Whole             // the packet completed a datagram
	Unbroken          // the packet is a whole datagram by itself: not a fragment, or an atomic one (RFC 6946)
	Held              // a fragment of a datagram that is not complete yet
	Duplicate         // a fragment of which every byte is held already; the datagram goes on
	Rejected          // dropped, alone or with its datagram: Counters tell why
)

// Datagram is a whole one. Its slices belong to the packet and the buffer that Add was given.
type Datagram struct {
	Protocol  uint8  // of the payload (IANA)
	Addresses []byte // source and destination as in the header: 8 bytes, or 32 of IPv6
	Payload   []byte // all that follows the IP headers
}

// Reassembler makes whole datagrams of fragments. One goroutine owns it.
//
// It agrees with Linux 6.18 on what is a duplicate (bytes that lie within one run of fragments that came in order: ignored),
// what is an overlap (all else that comes twice: the whole datagram is dropped, for IPv4 as for IPv6, and forgotten, so that
// later fragments of it begin a new one), and on lengths. It differs where memory ends: Linux refuses new datagrams until
// old ones time out, this gives the oldest up. It does not look at ECN, and sends no ICMP.
type Reassembler struct {
	o       Options
	count   Counters
	table   table
	entries []entry
	free    int32 // first unused entry
	age     ageList
	store   store
	runs    runs
	arrived [256]uint32 // fragments by hash of their IPv4 source, as the kernel's peer->rid
}

// New makes a reassembler with all the memory it will use.
func New(o Options) (*Reassembler, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	blocks := o.Bytes / blockLen
	r := &Reassembler{o: o, table: newTable(o.Datagrams), entries: make([]entry, o.Datagrams), age: ageList{oldest: none, newest: none},
		store: newStore(blocks), runs: newRuns(blocks)}
	for i := range r.entries {
		r.entries[i].next = int32(i) + 1
	}
	r.entries[len(r.entries)-1].next = none
	return r, nil
}

// Add takes one IP packet, from its IP header on; bytes beyond the length its header says are padding. now is a monotonic
// clock in ns. into is where a datagram that it completes is put together, MaxPayload bytes; the datagram is valid until it
// is used again. For Unbroken the payload lies in the packet.
func (r *Reassembler) Add(now int64, packet, into []byte) (Datagram, Verdict) {
	r.Expire(now)
	f, kind := parse(packet)
	switch kind {
	case malformed:
		r.count.BadHeader++
		return Datagram{}, Rejected
	case entire:
		r.count.Unbroken++
		return Datagram{Protocol: f.protocol, Addresses: f.addresses, Payload: f.payload}, Unbroken
	}
	r.count.Fragments++
	if kind == truncated {
		r.count.BadHeader++
		return Datagram{}, Rejected
	}
	i, ok := r.find(&f)
	if !ok {
		i = r.create(now, &f)
	}
	e := &r.entries[i]
	if r.tooFar(e, &f) {
		r.count.IDReuse++
		r.reset(e)
		r.age.remove(r.entries, i)
		r.age.append(r.entries, i)
		e.born = now
	}
	if v := r.accept(i, &f); v != Held {
		return Datagram{}, v
	}
	if !e.complete() {
		return Datagram{}, Held
	}
	return r.finish(i, &f, into)
}

// accept adds a fragment to the datagram of entry i: Held, or what else became of it.
func (r *Reassembler) accept(i int32, f *fragment) Verdict {
	e := &r.entries[i]
	end := f.offset + len(f.payload)
	if f.v6 && end > MaxPayload {
		r.count.Beyond++
		return Rejected // the fragment alone: a parameter problem (RFC 8200)
	}
	if !f.more {
		if end < e.end || e.last && end != e.end {
			return r.giveUp(i, &r.count.Inconsistent)
		}
		e.last, e.end = true, end
	} else {
		if end&7 != 0 {
			r.count.BadLength++
			if f.v6 {
				return Rejected
			}
			end &^= 7 // what lies beyond is cut off, as Linux does
			f.payload = f.payload[:end-f.offset]
		}
		if end > e.end {
			if e.last {
				return r.giveUp(i, &r.count.Inconsistent)
			}
			e.end = end
		}
	}
	if end == f.offset {
		return r.giveUp(i, &r.count.Inconsistent)
	}
	switch r.runs.place(e, f.offset, end) {
	case within:
		r.count.Duplicate++
		return Duplicate
	case across:
		return r.giveUp(i, &r.count.Overlap)
	}
	if !r.makeRoom(i, len(f.payload)) {
		return r.giveUp(i, &r.count.Evicted)
	}
	r.runs.insert(e, f.offset, end)
	r.store.put(e, f.offset, f.payload)
	e.bytes += len(f.payload)
	e.fragments++
	if f.offset == 0 {
		e.first, e.protocol, e.header = true, f.protocol, f.header
	}
	return Held
}

// finish puts the datagram of entry i together.
func (r *Reassembler) finish(i int32, f *fragment, into []byte) (Datagram, Verdict) {
	e := &r.entries[i]
	switch {
	case !f.v6 && int(e.header)+e.end > MaxPayload:
		return Datagram{}, r.giveUp(i, &r.count.TooBig)
	case e.end > len(into):
		return Datagram{}, r.giveUp(i, &r.count.NoBuffer)
	}
	d := Datagram{Protocol: e.protocol, Addresses: f.addresses, Payload: into[:e.end]}
	r.store.gather(e, into)
	r.count.Datagrams++
	r.count.Used += uint64(e.fragments)
	r.remove(i)
	return d, Whole
}

// Expire gives up the datagrams whose time is over at now, and says how many incomplete ones are left. Add does so too.
func (r *Reassembler) Expire(now int64) (pending int) {
	for i := r.age.oldest; i != none && now-r.entries[i].born >= int64(r.o.Timeout); i = r.age.oldest {
		r.giveUp(i, &r.count.Timeout)
	}
	return r.age.n
}

// Counters are what was counted so far.
func (r *Reassembler) Counters() Counters { return r.count }

// tooFar is the kernel's ip_frag_too_far: did more than Distance fragments of the source come since the datagram's last?
func (r *Reassembler) tooFar(e *entry, f *fragment) bool {
	if f.v6 || r.o.Distance == 0 {
		return false
	}
	n := &r.arrived[hash(f.addresses[:4])&0xff]
	*n++
	since := *n - e.arrived
	e.arrived = *n
	return e.tail != none && since > uint32(r.o.Distance)
}

// makeRoom gives up the oldest datagrams, but not that of entry i, until n bytes can be stored.
func (r *Reassembler) makeRoom(i int32, n int) bool {
	for !r.store.room(n) {
		old := r.age.oldest
		if old == i {
			old = r.entries[i].newer
		}
		if old == none {
			return false
		}
		r.giveUp(old, &r.count.Evicted)
	}
	return true
}

// giveUp drops a datagram for a cause.
func (r *Reassembler) giveUp(i int32, cause *uint64) Verdict {
	*cause++
	r.remove(i)
	return Rejected
}
