// SPDX-License-Identifier: Apache-2.0

package netstack

// blockLen holds a fragment of an Ethernet frame; longer ones take several blocks.
const blockLen = 2048

// store holds fragments in blocks. A block belongs to one entry, whose blocks are a list in the order of arrival.
type store struct {
	memory []byte
	blocks []block
	free   int32
	unused int
}

type block struct {
	offset int32 // in the datagram
	length int32
	next   int32 // of the entry, or the next unused
}

func newStore(n int) store {
	s := store{memory: make([]byte, n*blockLen), blocks: make([]block, n), unused: n}
	for i := range s.blocks {
		s.blocks[i].next = int32(i) + 1
	}
	s.blocks[n-1].next = none
	return s
}

// room tells whether n bytes fit.
func (s *store) room(n int) bool { return (n+blockLen-1)/blockLen <= s.unused }

// put copies a fragment; there is room.
func (s *store) put(e *entry, offset int, payload []byte) {
	for len(payload) > 0 {
		i := s.free
		b := &s.blocks[i]
		n := copy(s.memory[int(i)*blockLen:][:blockLen], payload)
		s.free, s.unused = b.next, s.unused-1
		b.offset, b.length, b.next = int32(offset), int32(n), e.pieces
		e.pieces = i
		offset, payload = offset+n, payload[n:]
	}
}

// gather copies the fragments of e to their places.
func (s *store) gather(e *entry, into []byte) {
	for i := e.pieces; i != none; i = s.blocks[i].next {
		b := &s.blocks[i]
		copy(into[b.offset:], s.memory[int(i)*blockLen:][:b.length])
	}
}

// release gives the blocks of e back.
func (s *store) release(e *entry) {
	for e.pieces != none {
		i := e.pieces
		e.pieces = s.blocks[i].next
		s.blocks[i].next, s.free = s.free, i
		s.unused++
	}
}
