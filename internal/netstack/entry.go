// SPDX-License-Identifier: Apache-2.0

package netstack

// none is the end of a list of indices.
const none int32 = -1

// entry is an incomplete datagram.
type entry struct {
	key    key
	bucket uint32
	next   int32 // in the bucket, or in the list of unused entries
	older  int32 // in the order of birth
	newer  int32

	born      int64 // ns, of the first fragment
	arrived   uint32
	fragments uint32
	pieces    int32 // first block of the store
	run       int32 // first and last run
	tail      int32
	end       int // the highest byte heard of, and the datagram's length once last is set
	bytes     int // held
	header    uint16
	protocol  uint8
	first     bool // the fragment at offset 0 is here
	last      bool // the one without more-fragments is here
}

func (e *entry) complete() bool { return e.first && e.last && e.bytes == e.end }

// find looks a fragment's datagram up.
func (r *Reassembler) find(f *fragment) (int32, bool) {
	f.bucket = r.table.bucket(&f.key)
	for i := r.table.heads[f.bucket]; i != none; i = r.entries[i].next {
		if r.entries[i].key == f.key {
			return i, true
		}
	}
	return none, false
}

// create begins a datagram; the oldest makes room for it where none is left.
func (r *Reassembler) create(now int64, f *fragment) int32 {
	if r.free == none {
		r.giveUp(r.age.oldest, &r.count.Evicted)
	}
	i := r.free
	e := &r.entries[i]
	r.free = e.next
	*e = entry{key: f.key, bucket: f.bucket, next: r.table.heads[f.bucket], born: now, pieces: none, run: none, tail: none}
	r.table.heads[f.bucket] = i
	r.age.append(r.entries, i)
	r.count.Begun++
	return i
}

// reset drops what is held of a datagram and leaves it begun.
func (r *Reassembler) reset(e *entry) {
	r.store.release(e)
	r.runs.release(e)
	e.fragments, e.end, e.bytes, e.first, e.last = 0, 0, 0, false, false
}

// remove forgets a datagram.
func (r *Reassembler) remove(i int32) {
	e := &r.entries[i]
	r.reset(e)
	at := &r.table.heads[e.bucket]
	for *at != i {
		at = &r.entries[*at].next
	}
	*at = e.next
	r.age.remove(r.entries, i)
	e.next, r.free = r.free, i
}

// ageList orders entries by birth.
type ageList struct {
	oldest, newest int32
	n              int
}

func (l *ageList) append(entries []entry, i int32) {
	e := &entries[i]
	e.older, e.newer = l.newest, none
	if l.newest != none {
		entries[l.newest].newer = i
	} else {
		l.oldest = i
	}
	l.newest = i
	l.n++
}

func (l *ageList) remove(entries []entry, i int32) {
	e := &entries[i]
	if e.older != none {
		entries[e.older].newer = e.newer
	} else {
		l.oldest = e.newer
	}
	if e.newer != none {
		entries[e.newer].older = e.older
	} else {
		l.newest = e.older
	}
	l.n--
}
