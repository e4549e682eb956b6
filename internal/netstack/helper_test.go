// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"encoding/binary"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"twopath/internal/packet"
)

// piece is a fragment to build.
type piece struct {
	v6      bool
	id      uint32
	off     int // bytes, a multiple of 8
	more    bool
	payload []byte
	proto   uint8 // 0 is UDP
	src     byte  // last byte of the source address
}

func (p piece) build() []byte {
	proto := p.proto
	if proto == 0 {
		proto = packet.ProtoUDP
	}
	flags := uint16(0)
	if p.src == 0 {
		p.src = 2
	}
	if p.v6 {
		b := make([]byte, 48+len(p.payload))
		packet.IPv6(b).Encode(netip.AddrFrom16([16]byte{0x20, 1, 0, 2, 15: p.src}), netip.MustParseAddr("2001:2::1"), nextFragment, 64, 8+len(p.payload))
		if p.more {
			flags = 1
		}
		b[40] = proto
		binary.BigEndian.PutUint16(b[42:], uint16(p.off)|flags)
		binary.BigEndian.PutUint32(b[44:], p.id)
		copy(b[48:], p.payload)
		return b
	}
	b := make([]byte, 20+len(p.payload))
	packet.IPv4(b).Encode(netip.AddrFrom4([4]byte{198, 18, 0, p.src}), netip.MustParseAddr("198.18.0.1"), proto, 64, len(p.payload))
	if p.more {
		flags = 0x2000
	}
	binary.BigEndian.PutUint16(b[4:], uint16(p.id))
	binary.BigEndian.PutUint16(b[6:], uint16(p.off/8)|flags)
	copy(b[20:], p.payload)
	seal(b)
	return b
}

// seal writes the IPv4 header checksum anew.
func seal(b []byte) {
	binary.BigEndian.PutUint16(b[10:], 0)
	binary.BigEndian.PutUint16(b[10:], ^packet.Fold(packet.Sum(b[:20], 0)))
}

// content is n bytes that differ from place to place and from one datagram to the next.
func content(n int, id uint32) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(uint64(id), 7))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// split cuts a datagram into fragments of size bytes.
func split(v6 bool, id uint32, data []byte, size int) []piece {
	var out []piece
	for off := 0; off < len(data); off += size {
		end := min(off+size, len(data))
		out = append(out, piece{v6: v6, id: id, off: off, more: end < len(data), payload: data[off:end]})
	}
	return out
}

func newReassembler(t testing.TB, o Options) *Reassembler {
	t.Helper()
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// check holds the counters to what they promise.
func check(t testing.TB, r *Reassembler, now int64) {
	t.Helper()
	c := r.Counters()
	pending := uint64(r.Expire(now))
	c = r.Counters()
	if c.Begun+c.IDReuse != c.Datagrams+c.GivenUp()+pending {
		t.Fatalf("begun %d + reused %d is not whole %d + given up %d + pending %d: %+v", c.Begun, c.IDReuse, c.Datagrams, c.GivenUp(), pending, c)
	}
	blocks, runs := 0, 0
	for i := r.age.oldest; i != none; i = r.entries[i].newer {
		e := &r.entries[i]
		bytes := 0
		for b := e.pieces; b != none; b = r.store.blocks[b].next {
			blocks++
			bytes += int(r.store.blocks[b].length)
		}
		held, last := 0, -1
		for x := e.run; x != none; x = r.runs.all[x].next {
			runs++
			if int(r.runs.all[x].start) < last {
				t.Fatalf("runs out of order or overlapping")
			}
			last = int(r.runs.all[x].end)
			held += last - int(r.runs.all[x].start)
		}
		if bytes != e.bytes || held != e.bytes {
			t.Fatalf("entry says %d bytes, its blocks %d, its runs %d", e.bytes, bytes, held)
		}
	}
	if blocks+r.store.unused != len(r.store.blocks) {
		t.Fatalf("%d blocks in use and %d unused of %d", blocks, r.store.unused, len(r.store.blocks))
	}
	for x := r.runs.free; x != none; x = r.runs.all[x].next {
		runs++
	}
	if runs != len(r.runs.all) {
		t.Fatalf("%d runs in use or unused, of %d", runs, len(r.runs.all))
	}
}

const ms = int64(time.Millisecond)
