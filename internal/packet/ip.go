// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"net/netip"
)

// Header lengths in bytes: IPv4 without options (RFC 791), IPv6 without extension headers (RFC 8200).
const (
	IPv4Len = 20
	IPv6Len = 40
)

// ProtoUDP is the IP protocol number of UDP (IANA).
const ProtoUDP = 17

// IPv4 is an IPv4 header without options; the slice is at least IPv4Len long.
type IPv4 []byte

// HeaderLen is the header's length in bytes by its own IHL field.
func (h IPv4) HeaderLen() int { return int(h[0]&15) * 4 }

// TotalLen is the length in bytes of header and payload.
func (h IPv4) TotalLen() int { return int(binary.BigEndian.Uint16(h[2:])) }

// Fragment tells whether the packet is a fragment (offset or more-fragments set, RFC 791).
func (h IPv4) Fragment() bool { return binary.BigEndian.Uint16(h[6:])&0x3fff != 0 }

// TTL is the time to live.
func (h IPv4) TTL() uint8 { return h[8] }

// Protocol is the protocol of the payload.
func (h IPv4) Protocol() uint8 { return h[9] }

// Source is the source address.
func (h IPv4) Source() netip.Addr { return netip.AddrFrom4([4]byte(h[12:16])) }

// Destination is the destination address.
func (h IPv4) Destination() netip.Addr { return netip.AddrFrom4([4]byte(h[16:20])) }

// Encode writes a header with DF set, id 0 and the checksum filled in.
func (h IPv4) Encode(src, dst netip.Addr, proto, ttl uint8, payloadLen int) {
	h[0], h[1] = 0x45, 0
	binary.BigEndian.PutUint16(h[2:], uint16(IPv4Len+payloadLen))
	binary.BigEndian.PutUint32(h[4:], 0x4000) // id 0, DF: RFC 6864 lets an atomic datagram carry any id
	h[8], h[9], h[10], h[11] = ttl, proto, 0, 0
	s, d := src.As4(), dst.As4()
	copy(h[12:], s[:])
	copy(h[16:], d[:])
	binary.BigEndian.PutUint16(h[10:], ^Fold(Sum(h[:IPv4Len], 0)))
}

// IPv6 is an IPv6 header; the slice is at least IPv6Len long.
type IPv6 []byte

// PayloadLen is the length in bytes of what follows the header.
func (h IPv6) PayloadLen() int { return int(binary.BigEndian.Uint16(h[4:])) }

// NextHeader is the protocol of what follows the header.
func (h IPv6) NextHeader() uint8 { return h[6] }

// HopLimit is the hop limit.
func (h IPv6) HopLimit() uint8 { return h[7] }

// Source is the source address.
func (h IPv6) Source() netip.Addr { return netip.AddrFrom16([16]byte(h[8:24])) }

// Destination is the destination address.
func (h IPv6) Destination() netip.Addr { return netip.AddrFrom16([16]byte(h[24:40])) }

// Encode writes the header.
func (h IPv6) Encode(src, dst netip.Addr, next, hops uint8, payloadLen int) {
	binary.BigEndian.PutUint32(h[0:], 6<<28)
	binary.BigEndian.PutUint16(h[4:], uint16(payloadLen))
	h[6], h[7] = next, hops
	s, d := src.As16(), dst.As16()
	copy(h[8:], s[:])
	copy(h[24:], d[:])
}
