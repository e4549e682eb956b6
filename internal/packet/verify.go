// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// Verdict says what a received frame is to the run.
type Verdict uint8

// The verdicts. The zero value is no verdict.
const (
	_          Verdict = iota
	OK                 // the run's flow, whole and correct
	Foreign            // another protocol, address or port
	Short              // cut: lengths in the headers exceed the frame, or no room for a stamp
	CorruptIP          // IPv4 header checksum wrong
	CorruptUDP         // UDP checksum wrong, or absent where IPv6 demands one
	Held               // a fragment of a datagram that is not whole yet, or never will be
)

// Verifier finds the run's datagrams in frames and checks them as the kernel does for its reader: lengths, IPv4 header
// checksum, UDP checksum. It is a plain value; Frame does not allocate.
type Verifier struct {
	DstPort  uint16 // of the run's flow
	Checksum bool   // check IP and UDP checksums
}

// Frame returns the UDP payload inside a frame of the flow, or why there is none. The payload's length comes from the
// IP header, never from the frame, since short frames are padded.
func (v Verifier) Frame(b []byte) ([]byte, Verdict) {
	if len(b) < EthernetLen+IPv4Len+UDPLen {
		return nil, Foreign
	}
	switch binary.BigEndian.Uint16(b[12:]) {
	case EtherTypeIPv4:
		return v.ipv4(b[EthernetLen:])
	case EtherTypeIPv6:
		return v.ipv6(b[EthernetLen:])
	}
	return nil, Foreign
}

func (v Verifier) ipv4(b []byte) ([]byte, Verdict) {
	h := IPv4(b)
	if h[0] != 0x45 || h[9] != ProtoUDP || h.Fragment() {
		return nil, Foreign
	}
	n := h.TotalLen()
	if n < IPv4Len+UDPLen || n > len(b) {
		return nil, Short
	}
	u := b[IPv4Len:n]
	if UDP(u).DestinationPort() != v.DstPort {
		return nil, Foreign
	}
	ul := UDP(u).Length()
	if ul < UDPLen || ul > len(u) {
		return nil, Short
	}
	u = u[:ul]
	if v.Checksum {
		// A header with a right checksum sums to 0xffff (RFC 1071); 20 bytes are two and a half eight-byte words.
		if Fold(Sum(b[:IPv4Len], 0)) != 0xffff {
			return nil, CorruptIP
		}
		if u[6]|u[7] != 0 && Fold(Sum(u, pseudo4(h, ul))) != 0xffff {
			return nil, CorruptUDP
		}
	}
	return u[UDPLen:], OK
}

func (v Verifier) ipv6(b []byte) ([]byte, Verdict) {
	if len(b) < IPv6Len+UDPLen {
		return nil, Short
	}
	h := IPv6(b)
	if h[0]>>4 != 6 || h[6] != ProtoUDP {
		return nil, Foreign
	}
	n := h.PayloadLen()
	if n < UDPLen || IPv6Len+n > len(b) {
		return nil, Short
	}
	u := b[IPv6Len : IPv6Len+n]
	if UDP(u).DestinationPort() != v.DstPort {
		return nil, Foreign
	}
	ul := UDP(u).Length()
	if ul < UDPLen || ul > len(u) {
		return nil, Short
	}
	u = u[:ul]
	// Without a checksum an IPv6 datagram is dropped by the kernel (RFC 8200, section 8.1), so it is corrupt here too.
	if v.Checksum && (u[6]|u[7] == 0 || Fold(Sum(u, pseudo6(h, ul))) != 0xffff) {
		return nil, CorruptUDP
	}
	return u[UDPLen:], OK
}

// Segment is Frame for a UDP datagram without the headers before it: addresses are its source and destination as in the IP
// header, 8 bytes or 32 of IPv6.
func (v Verifier) Segment(addresses, u []byte) ([]byte, Verdict) {
	if len(u) < UDPLen {
		return nil, Short
	}
	if UDP(u).DestinationPort() != v.DstPort {
		return nil, Foreign
	}
	n := UDP(u).Length()
	if n < UDPLen || n > len(u) {
		return nil, Short
	}
	u = u[:n]
	if v.Checksum {
		none := u[6]|u[7] == 0
		if none && len(addresses) != 8 || !none && Fold(Sum(u, Sum(addresses, ProtoUDP+uint64(n)))) != 0xffff {
			return nil, CorruptUDP
		}
	}
	return u[UDPLen:], OK
}
