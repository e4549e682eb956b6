// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// A replayed frame is marked in its source MAC address, the one part of it that no receiver of these tests reads: a locally
// administered address with 16 bits of the run id and the frame's number in its list. So foreign frames are told apart, and a
// reader knows where in the list it is.
const (
	MarkPrefixLen  = 3       // bytes of the address that all frames of a run have in common
	MaxMarked      = 1 << 24 // frames of a list
	markOffset     = 6       // of the source address in a frame
	markLocalAdmin = 0x02    // IEEE 802: locally administered, individual
)

// MarkPrefix is how the source MAC addresses of a run's frames begin.
func MarkPrefix(run uint32) [MarkPrefixLen]byte {
	return [MarkPrefixLen]byte{markLocalAdmin, byte(run >> 8), byte(run)}
}

// PutMark marks a frame of at least 14 bytes as number n of its list.
func PutMark(frame []byte, run uint32, n int) {
	p := MarkPrefix(run)
	copy(frame[markOffset:], p[:])
	frame[markOffset+3], frame[markOffset+4], frame[markOffset+5] = byte(n>>16), byte(n>>8), byte(n)
}

// Mark reads the number of a frame of the run; ok says whether it is one.
func Mark(frame []byte, run uint32) (n int, ok bool) {
	if len(frame) < 14 {
		return 0, false
	}
	m := binary.BigEndian.Uint64(frame[markOffset-2:]) & 0xffffffffffff
	if uint32(m>>24) != markLocalAdmin<<16|run&0xffff {
		return 0, false
	}
	return int(m & 0xffffff), true
}
