// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"bytes"
	"encoding/binary"
	"math/bits"
)

// Two odd constants without structure (the golden ratio's bits, and the square root of two's).
const (
	mixA = 0x9e3779b97f4a7c15
	mixB = 0x6a09e667f3bcc909
)

// key is a 5-tuple with its lower end first, so that both directions are one session.
type key struct {
	low, high         [16]byte
	lowPort, highPort uint16
	proto             uint8
	v4                bool
}

// key orders the ends. fromLow says that the packet came from the lower one.
func (t *tuple) key() (k key, fromLow bool) {
	k.proto, k.v4 = t.proto, t.v4
	c := bytes.Compare(t.src[:], t.dst[:])
	if c < 0 || c == 0 && t.srcPort <= t.dstPort {
		k.low, k.high, k.lowPort, k.highPort = t.src, t.dst, t.srcPort, t.dstPort
		return k, true
	}
	k.low, k.high, k.lowPort, k.highPort = t.dst, t.src, t.dstPort, t.srcPort
	return k, false
}

// hash spreads keys: one widening multiplication for each two words, as wyhash does.
func (k *key) hash() uint64 {
	le := binary.LittleEndian
	h := mix(le.Uint64(k.low[0:])^mixA, le.Uint64(k.low[8:])^mixB)
	h = mix(le.Uint64(k.high[0:])^mixA^h, le.Uint64(k.high[8:])^mixB)
	return mix(uint64(k.lowPort)<<32|uint64(k.highPort)<<16|uint64(k.proto)^mixA, h^mixB)
}

func mix(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi ^ lo
}

// Hash is a number that all frames of a session have in common, in both directions; frames without a session of their own (not
// IP, fragments other than the first) have one by their addresses, or 0.
func Hash(frame []byte) uint64 {
	var t tuple
	switch t.parse(frame) {
	case packet:
	case fragment:
		t.srcPort, t.dstPort = 0, 0
	default:
		return 0
	}
	k, _ := t.key()
	return k.hash()
}
