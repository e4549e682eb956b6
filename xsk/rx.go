// SPDX-License-Identifier: Apache-2.0

package xsk

// rxRing brings received frames from the kernel (__xsk_rcv_zc produces, xsk_flush publishes once per NAPI poll).
type rxRing struct {
	consumer
	slots []Desc
}

// take copies up to len(descs) slots out and gives them back to the kernel at once: what is lent is the frame, not the slot.
func (r *rxRing) take(descs []Desc, whole bool) uint32 {
	n := r.ready(uint32(len(descs)))
	if n == 0 {
		return 0
	}
	a, b := split(r.slots, r.tail, n)
	copy(descs, a)
	copy(descs[len(a):], b)
	if whole {
		n = wholePackets(descs[:n])
	}
	r.release(n)
	return n
}

// wholePackets returns how many leading descriptors are complete packets; the rest stays in the ring. If not even the first is complete, descs is
// too short for it and all of descs is returned, for otherwise there would be no way forward.
func wholePackets(descs []Desc) uint32 {
	for n := len(descs); n > 0; n-- {
		if !descs[n-1].More() {
			return uint32(n)
		}
	}
	return uint32(len(descs))
}

// rxSide is all that the receiving goroutine writes.
type rxSide struct {
	ring  rxRing
	fill  fillRing
	held  uint32 // frames lent by Receive and not yet released
	whole bool   // multi-buffer: do not tear packets
	kick  bool   // the fill ring's wake-up flag counts
	busy  bool   // busy polling: an empty poll drives the driver
	wait  WaitMode
	n     RxCounters
}

// Receive copies the descriptors of up to len(descs) frames into descs and returns how many. It does not block; with an empty ring it makes
// at most one system call, and only if the kernel asked for a wake-up or the socket busy-polls.
//
// Each frame is lent until Release. With Options.MultiBuffer a packet is never torn between two calls as long as len(descs) is at least [MaxFrags].
// A caller that gets 0 may Wait, or spin.
func (s *Socket) Receive(descs []Desc) int {
	r := &s.rx
	n := r.ring.take(descs, r.whole)
	if n == 0 {
		r.n.EmptyPolls++
		if !r.busy && !(r.kick && r.fill.wakeup()) {
			return 0
		}
		s.kickRx()
		if n = r.ring.take(descs, r.whole); n == 0 {
			return 0
		}
	}
	r.held += n
	r.n.Received += uint64(n)
	r.n.Batches++
	return int(n)
}

// Frame returns the bytes a descriptor names. They are valid until the descriptor is released or submitted, and must not be touched after that.
func (s *Socket) Frame(d Desc) []byte {
	return s.mem[d.Addr : d.Addr+uint64(d.Len) : d.Addr+uint64(d.Len)]
}

// Release gives received frames back for the kernel to fill again, in any order, and returns how many it took: all, unless there are
// more than Receive has lent, which is a mistake of the caller's and counted in RxCounters.Refused. The same frame must not be released twice.
func (s *Socket) Release(descs []Desc) int {
	r := &s.rx
	n := min(uint32(len(descs)), r.held)
	if n < uint32(len(descs)) {
		r.n.Refused += uint64(uint32(len(descs)) - n)
	}
	if n == 0 {
		return 0
	}
	r.fill.release(descs[:n], s.chunkMask)
	r.held -= n
	r.n.Released += uint64(n)
	return int(n)
}

// Queued returns how many descriptors are in the RX ring now: frames that arrived and nobody read.
func (s *Socket) Queued() int { return int(s.rx.ring.queued()) }

// Held returns how many descriptors Receive has lent and Release has not got back.
func (s *Socket) Held() int { return int(s.rx.held) }
