// SPDX-License-Identifier: Apache-2.0

package xsk

// completionRing brings back the addresses of frames the kernel is done with (xsk_cq_submit_addr_locked, from the skb's destructor in copy mode).
type completionRing struct {
	consumer
	slots []uint64
}

// Complete takes all completions there are, frees their frames, and returns how many. Reserve calls it when it is short of frames.
// Completed does not mean transmitted: see the package comment.
func (s *Socket) Complete() int {
	t := &s.tx
	n := t.done.ready(t.done.size())
	if n == 0 {
		return 0
	}
	a, b := split(t.done.slots, t.done.tail, n)
	for _, part := range [2][]uint64{a, b} {
		for _, addr := range part {
			addr &= s.chunkMask
			// An address outside our frames comes back only if the caller submitted one: do not hand it out.
			if addr-t.base >= t.bytes || t.free.len() == t.count {
				t.n.Foreign++
				continue
			}
			t.free.put(addr)
		}
	}
	t.done.release(n)
	t.outstanding -= n
	t.n.Completed += uint64(n)
	return int(n)
}

func (c *completionRing) size() uint32 { return uint32(len(c.slots)) }
