// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"math/bits"
)

// Sum adds b to an Internet checksum in progress (RFC 1071). The ones' complement sum does not care how many 16-bit
// words are added at once, so it adds eight bytes at a time and keeps the end-around carry. Fold makes 16 bits of it.
func Sum(b []byte, sum uint64) uint64 {
	var c uint64
	for len(b) >= 32 {
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b), 0)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[8:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[16:]), c)
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b[24:]), c)
		sum, c = bits.Add64(sum, 0, c)
		sum += c
		b = b[32:]
	}
	for len(b) >= 8 {
		sum, c = bits.Add64(sum, binary.BigEndian.Uint64(b), 0)
		sum += c
		b = b[8:]
	}
	if len(b) >= 4 {
		sum, c = bits.Add64(sum, uint64(binary.BigEndian.Uint32(b)), 0)
		sum += c
		b = b[4:]
	}
	if len(b) >= 2 {
		sum, c = bits.Add64(sum, uint64(binary.BigEndian.Uint16(b)), 0)
		sum += c
		b = b[2:]
	}
	if len(b) == 1 { // an odd last byte is the high half of a word padded with zero
		sum, c = bits.Add64(sum, uint64(b[0])<<8, 0)
		sum += c
	}
	return sum
}

// Fold reduces a sum in progress to 16 bits.
func Fold(sum uint64) uint16 {
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>32 + sum&0xffffffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	sum = sum>>16 + sum&0xffff
	return uint16(sum)
}

// pseudo4 is the sum of the IPv4 pseudo header of RFC 768 for the addresses in h.
func pseudo4(h IPv4, udpLen int) uint64 {
	return uint64(binary.BigEndian.Uint32(h[12:])) + uint64(binary.BigEndian.Uint32(h[16:])) + ProtoUDP + uint64(udpLen)
}

// pseudo6 is the sum of the IPv6 pseudo header of RFC 8200, section 8.1.
func pseudo6(h IPv6, udpLen int) uint64 {
	return Sum(h[8:40], ProtoUDP+uint64(udpLen))
}

// udpChecksum turns a full sum into the field's value: 0 is sent as 0xffff since 0 means "none" (RFC 768).
func udpChecksum(sum uint64) uint16 {
	c := ^Fold(sum)
	if c == 0 {
		c = 0xffff
	}
	return c
}
