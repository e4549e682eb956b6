// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"encoding/binary"
	"math/bits"
	"math/rand/v2"
)

// key names a datagram: RFC 791 tells them by addresses, protocol and id, RFC 8200 (section 4.5) by addresses and id alone.
type key struct {
	addresses [32]byte // IPv4's in the first eight
	id        uint32
	protocol  uint8 // 0 for IPv6
	v6        bool
}

// table finds entries by key: a bucket is a list that starts in heads and goes on in entry.next.
type table struct {
	heads []int32
	mask  uint64
	seed  uint64 // so that a sender cannot aim at one bucket
}

func newTable(n int) table {
	size := 1 << bits.Len(uint(n)) // at least as many buckets as entries
	t := table{heads: make([]int32, size), mask: uint64(size - 1), seed: rand.Uint64()}
	for i := range t.heads {
		t.heads[i] = none
	}
	return t
}

func (t *table) bucket(k *key) uint32 {
	h := t.seed ^ uint64(k.id)<<8 ^ uint64(k.protocol)
	n := 8
	if k.v6 {
		n = 32
	}
	for a := k.addresses[:n]; len(a) > 0; a = a[8:] {
		h = mix(h ^ binary.LittleEndian.Uint64(a))
	}
	return uint32(h & t.mask)
}

// hash is of a few bytes, a multiple of four.
func hash(b []byte) uint64 {
	var h uint64
	for ; len(b) >= 4; b = b[4:] {
		h = mix(h ^ uint64(binary.LittleEndian.Uint32(b)))
	}
	return h
}

// mix spreads 64 bits: both halves of a product with an odd constant.
func mix(h uint64) uint64 {
	hi, lo := bits.Mul64(h^0x9e3779b97f4a7c15, 0xd1342543de82ef95)
	return hi ^ lo
}
