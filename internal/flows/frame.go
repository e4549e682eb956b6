// SPDX-License-Identifier: Apache-2.0

package flows

import "encoding/binary"

// Protocol numbers (IANA).
const (
	protoTCP      = 6
	protoUDP      = 17
	extHopByHop   = 0
	extRouting    = 43
	extFragment   = 44
	extDestOpts   = 60
	maxExtensions = 8
)

// kind says what a frame is to the table.
type kind uint8

const (
	notIP kind = iota
	malformed
	fragment // not the first: it has no ports
	packet
)

// tuple is where a packet goes, and what is in it.
type tuple struct {
	src, dst         [16]byte // IPv4 in the last four bytes, the rest zero
	srcPort, dstPort uint16
	proto            uint8
	v4               bool
	payload          []byte // behind the transport header, without padding
	tcp              []byte // TCP header
}

// parse reads a frame into t. What t.payload lends is the frame's.
func (t *tuple) parse(f []byte) kind {
	if len(f) < 14 {
		return malformed
	}
	off, etherType := 14, binary.BigEndian.Uint16(f[12:])
	for range 2 { // 802.1Q and 802.1ad tags
		if etherType == 0x8100 || etherType == 0x88a8 {
			if len(f) < off+4 {
				return malformed
			}
			etherType = binary.BigEndian.Uint16(f[off+2:])
			off += 4
		}
	}
	switch etherType {
	case 0x0800:
		return t.ipv4(f[off:])
	case 0x86dd:
		return t.ipv6(f[off:])
	}
	return notIP
}

// ipv4 reads an IPv4 packet (RFC 791).
func (t *tuple) ipv4(b []byte) kind {
	if len(b) < 20 || b[0]>>4 != 4 {
		return malformed
	}
	header, total := int(b[0]&15)*4, int(binary.BigEndian.Uint16(b[2:]))
	if header < 20 || total < header || total > len(b) {
		return malformed
	}
	t.v4, t.proto = true, b[9]
	t.src, t.dst = [16]byte{}, [16]byte{}
	copy(t.src[12:], b[12:16])
	copy(t.dst[12:], b[16:20])
	if binary.BigEndian.Uint16(b[6:])&0x1fff != 0 {
		return fragment
	}
	return t.transport(b[header:total])
}

// ipv6 reads an IPv6 packet (RFC 8200).
func (t *tuple) ipv6(b []byte) kind {
	if len(b) < 40 || b[0]>>4 != 6 {
		return malformed
	}
	n := int(binary.BigEndian.Uint16(b[4:]))
	if 40+n > len(b) {
		return malformed
	}
	t.v4 = false
	copy(t.src[:], b[8:24])
	copy(t.dst[:], b[24:40])
	next, rest := b[6], b[40:40+n]
	for range maxExtensions {
		size := 8
		switch next {
		case extHopByHop, extRouting, extDestOpts:
			if len(rest) < 2 {
				return malformed
			}
			size = 8 * (int(rest[1]) + 1)
		case extFragment:
			if len(rest) >= 4 && binary.BigEndian.Uint16(rest[2:])&0xfff8 != 0 {
				return fragment
			}
		default:
			t.proto = next
			return t.transport(rest)
		}
		if len(rest) < size {
			return malformed
		}
		next, rest = rest[0], rest[size:]
	}
	return malformed
}

// transport reads ports and payload; protocols without ports have 0.
func (t *tuple) transport(b []byte) kind {
	t.srcPort, t.dstPort, t.tcp, t.payload = 0, 0, nil, nil
	switch t.proto {
	case protoTCP:
		if len(b) < 20 {
			return malformed
		}
		header := int(b[12]>>4) * 4
		if header < 20 || header > len(b) {
			return malformed
		}
		t.tcp, t.payload = b[:header], b[header:]
	case protoUDP:
		if len(b) < 8 {
			return malformed
		}
		t.payload = b[8:]
	default:
		return packet
	}
	t.srcPort, t.dstPort = binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])
	return packet
}
