// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// MinFrame is the shortest frame on Ethernet in bytes, without FCS (IEEE 802.3).
const MinFrame = 60

// Answer writes the headers of an answer to request in front of the payload that b holds already, behind as many bytes as
// the request's own headers take: addresses and ports exchanged, hop limit 64, DF set, lengths, and both checksums. The
// request is a frame that [Verifier.Frame] found whole, so its IPv4 header has no options.
func Answer(b, request []byte) {
	copy(b[0:6], request[6:12])
	copy(b[6:12], request[0:6])
	copy(b[12:14], request[12:14])
	var u []byte
	var sum uint64
	if b[12] == EtherTypeIPv4>>8 && b[13] == EtherTypeIPv4&0xff {
		ip, from := b[EthernetLen:], request[EthernetLen:]
		binary.BigEndian.PutUint16(ip, 0x4500)
		binary.BigEndian.PutUint16(ip[2:], uint16(len(ip)))
		binary.BigEndian.PutUint32(ip[4:], 0x4000) // id 0, DF
		binary.BigEndian.PutUint32(ip[8:], 64<<24|ProtoUDP<<16)
		copy(ip[12:16], from[16:20])
		copy(ip[16:20], from[12:16])
		binary.BigEndian.PutUint16(ip[10:], ^Fold(Sum(ip[:IPv4Len], 0)))
		u = ip[IPv4Len:]
		copy(u[0:2], from[IPv4Len+2:IPv4Len+4])
		copy(u[2:4], from[IPv4Len:IPv4Len+2])
		sum = pseudo4(IPv4(ip), len(u))
	} else {
		ip, from := b[EthernetLen:], request[EthernetLen:]
		u = ip[IPv6Len:]
		binary.BigEndian.PutUint32(ip, 6<<28)
		binary.BigEndian.PutUint16(ip[4:], uint16(len(u)))
		ip[6], ip[7] = ProtoUDP, 64
		copy(ip[8:24], from[24:40])
		copy(ip[24:40], from[8:24])
		copy(u[0:2], from[IPv6Len+2:IPv6Len+4])
		copy(u[2:4], from[IPv6Len:IPv6Len+2])
		sum = pseudo6(IPv6(ip), len(u))
	}
	binary.BigEndian.PutUint16(u[4:], uint16(len(u)))
	binary.BigEndian.PutUint16(u[6:], 0)
	binary.BigEndian.PutUint16(u[6:], udpChecksum(Sum(u, sum)))
}
