// SPDX-License-Identifier: Apache-2.0

package packet

import "encoding/binary"

// UDPLen is the length in bytes of a UDP header (RFC 768).
const UDPLen = 8

// UDP is a UDP header; the slice is at least UDPLen long.
type UDP []byte

// SourcePort is the source port.
func (u UDP) SourcePort() uint16 { return binary.BigEndian.Uint16(u[0:]) }

// DestinationPort is the destination port.
func (u UDP) DestinationPort() uint16 { return binary.BigEndian.Uint16(u[2:]) }

// Length is the length in bytes of header and payload.
func (u UDP) Length() int { return int(binary.BigEndian.Uint16(u[4:])) }

// Checksum is the checksum field; 0 means none was computed (IPv4 only).
func (u UDP) Checksum() uint16 { return binary.BigEndian.Uint16(u[6:]) }

// Encode writes ports and length of a datagram of payloadLen bytes and leaves the checksum 0.
func (u UDP) Encode(src, dst uint16, payloadLen int) {
	binary.BigEndian.PutUint16(u[0:], src)
	binary.BigEndian.PutUint16(u[2:], dst)
	binary.BigEndian.PutUint16(u[4:], uint16(UDPLen+payloadLen))
	binary.BigEndian.PutUint16(u[6:], 0)
}
