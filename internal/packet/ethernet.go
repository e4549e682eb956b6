// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"net"
)

// EthernetLen is the length in bytes of an untagged Ethernet header.
const EthernetLen = 14

// FCSLen is the frame check sequence: counted in every frame size that users see, never handed to a driver.
const FCSLen = 4

// WireOverhead is what a frame takes on the wire besides itself: 7 B preamble, 1 B delimiter, 12 B gap (IEEE 802.3).
const WireOverhead = 20

// EtherTypes (IANA).
const (
	EtherTypeIPv4 = 0x0800
	EtherTypeARP  = 0x0806
	EtherTypeVLAN = 0x8100
	EtherTypeIPv6 = 0x86dd
)

// Ethernet is an Ethernet header; the slice is at least EthernetLen long.
type Ethernet []byte

// Destination is the destination address, 6 bytes of the frame itself.
func (e Ethernet) Destination() net.HardwareAddr { return net.HardwareAddr(e[0:6]) }

// Source is the source address, 6 bytes of the frame itself.
func (e Ethernet) Source() net.HardwareAddr { return net.HardwareAddr(e[6:12]) }

// EtherType is the type of the payload.
func (e Ethernet) EtherType() uint16 { return binary.BigEndian.Uint16(e[12:]) }

// Encode writes the header.
func (e Ethernet) Encode(dst, src net.HardwareAddr, etherType uint16) {
	copy(e[0:6], dst)
	copy(e[6:12], src)
	binary.BigEndian.PutUint16(e[12:], etherType)
}
