// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"encoding/binary"

	"twopath/internal/packet"
)

// nextFragment is the next-header value of IPv6's fragment header, fragmentLen its length (RFC 8200, section 4.5).
const (
	nextFragment = 44
	fragmentLen  = 8
)

// fragment is what a packet's headers say.
type fragment struct {
	key       key
	bucket    uint32
	v6        bool
	more      bool
	protocol  uint8
	header    uint16 // length of the IPv4 header
	offset    int    // bytes
	addresses []byte // in the packet
	payload   []byte // in the packet
}

// kind is what a packet is to the reassembler.
type kind uint8

const (
	malformed kind = iota
	entire         // no fragment, or one that is the whole datagram
	part
	truncated // an IPv6 fragment that RFC 7112 forbids
)

func parse(b []byte) (f fragment, k kind) {
	if len(b) == 0 {
		return f, malformed
	}
	switch b[0] >> 4 {
	case 4:
		return parse4(b)
	case 6:
		return parse6(b)
	}
	return f, malformed
}

func parse4(b []byte) (f fragment, k kind) {
	if len(b) < packet.IPv4Len {
		return f, malformed
	}
	h := packet.IPv4(b)
	n, total := h.HeaderLen(), h.TotalLen()
	if n < packet.IPv4Len || total < n || total > len(b) || packet.Fold(packet.Sum(b[:n], 0)) != 0xffff {
		return f, malformed
	}
	f.protocol, f.header, f.addresses, f.payload = h.Protocol(), uint16(n), b[12:20], b[n:total]
	if !h.Fragment() {
		return f, entire
	}
	field := binary.BigEndian.Uint16(b[6:])
	f.more, f.offset = field&0x2000 != 0, int(field&0x1fff)*8
	f.key.id, f.key.protocol = uint32(binary.BigEndian.Uint16(b[4:])), f.protocol
	copy(f.key.addresses[:], f.addresses)
	return f, part
}

// parse6 knows a fragment header that follows the IPv6 header. Behind other extension headers it is not looked for: the
// packet is whole then, with that header as its protocol.
func parse6(b []byte) (f fragment, k kind) {
	if len(b) < packet.IPv6Len {
		return f, malformed
	}
	h := packet.IPv6(b)
	total := packet.IPv6Len + h.PayloadLen()
	if total > len(b) {
		return f, malformed
	}
	f.v6, f.protocol, f.addresses, f.payload = true, h.NextHeader(), b[8:40], b[packet.IPv6Len:total]
	if f.protocol != nextFragment {
		return f, entire
	}
	if len(f.payload) < fragmentLen {
		return f, malformed
	}
	x := f.payload[:fragmentLen]
	f.protocol, f.payload = x[0], f.payload[fragmentLen:]
	field := binary.BigEndian.Uint16(x[2:])
	f.more, f.offset = field&1 != 0, int(field&^7)
	if !f.more && f.offset == 0 {
		return f, entire // an atomic fragment: it is never matched with others (RFC 6946)
	}
	if f.offset == 0 && len(f.payload) < upperHeader(f.protocol) {
		return f, truncated
	}
	f.key.id, f.key.v6 = binary.BigEndian.Uint32(x[4:]), true
	copy(f.key.addresses[:], f.addresses)
	return f, part
}

// upperHeader is how many bytes of the upper layer's header a first IPv6 fragment must hold (RFC 7112; Linux:
// ipv6frag_thdr_truncated).
func upperHeader(protocol uint8) int {
	switch protocol {
	case 6: // TCP
		return 20
	case packet.ProtoUDP, 58: // UDP, ICMPv6
		return 8
	}
	return 1
}
