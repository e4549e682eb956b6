// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// StampLen is the length in bytes of the stamp at the start of a test datagram's payload: all that a 64-byte IPv4
// frame has room for.
const StampLen = 18

// NumberBits is how many of the 48 sequence bits count frames; the eight above name the stream (the generating core).
const NumberBits = 40

// Stamp names one frame of one run. On the wire it is big endian: run 4 bytes, sequence 6, time 8.
type Stamp struct {
	Run    uint32 // run id; frames of another run are foreign
	Stream uint8  // index of the generating core
	Number uint64 // counts from 0 in each stream, 40 bits
	Time   int64  // intended send time, ns of the generating host's CLOCK_MONOTONIC
}

// Put writes the stamp to the first StampLen bytes of b.
func (s Stamp) Put(b []byte) {
	_ = b[StampLen-1]
	binary.BigEndian.PutUint32(b, s.Run)
	b[4] = s.Stream
	b[5] = byte(s.Number >> 32)
	binary.BigEndian.PutUint32(b[6:], uint32(s.Number))
	binary.BigEndian.PutUint64(b[10:], uint64(s.Time))
}

// ParseStamp reads the stamp from the first StampLen bytes of b.
func ParseStamp(b []byte) Stamp {
	_ = b[StampLen-1]
	return Stamp{
		Run:    binary.BigEndian.Uint32(b),
		Stream: b[4],
		Number: uint64(b[5])<<32 | uint64(binary.BigEndian.Uint32(b[6:])),
		Time:   int64(binary.BigEndian.Uint64(b[10:])),
	}
}
