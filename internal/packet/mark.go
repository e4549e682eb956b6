// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// A replayed frame is marked in its source MAC address, which no receiver of these tests reads: a locally administered address
// with 16 bits of the run id, 8 of the frame's number in its list, and 16 of the number of the loop it is of. So foreign frames
// are told apart; a reader knows where the list began anew, whatever the order in which frames reach it; and the kernel merges
// none of them, for GRO merges only frames whose Ethernet headers are the same.
const (
	MarkPrefixLen  = 3    // bytes of the address that all frames of a run have in common
	MarkLoopAt     = 10   // where in the frame the loop's number is, in network order
	markOffset     = 6    // of the source address in a frame
	markLocalAdmin = 0x02 // IEEE 802: locally administered, individual
)

// MarkPrefix is how the source MAC addresses of a run's frames begin.
func MarkPrefix(run uint32) [MarkPrefixLen]byte {
	return [MarkPrefixLen]byte{markLocalAdmin, byte(run >> 8), byte(run)}
}

// PutMark marks a frame of at least 14 bytes as number n of its list, in loop 0.
func PutMark(frame []byte, run uint32, n int) {
	p := MarkPrefix(run)
	copy(frame[markOffset:], p[:])
	frame[markOffset+MarkPrefixLen] = byte(n)
	PutLoop(frame, 0)
}

// PutLoop gives a marked frame the number of its loop.
func PutLoop(frame []byte, loop uint16) { binary.BigEndian.PutUint16(frame[MarkLoopAt:], loop) }

// Mark reads the loop of a frame of the run; ok says whether it is one.
func Mark(frame []byte, run uint32) (loop uint16, ok bool) {
	if len(frame) < 14 {
		return 0, false
	}
	if binary.BigEndian.Uint32(frame[markOffset:])>>8 != markLocalAdmin<<16|run&0xffff {
		return 0, false
	}
	return binary.BigEndian.Uint16(frame[MarkLoopAt:]), true
}
