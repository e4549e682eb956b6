// SPDX-License-Identifier: Apache-2.0

package packet

// Swap turns a frame of the flow round, as an answer to its sender: MAC addresses, IP addresses and UDP ports change places.
// Every checksum stays right, since a sum does not care for the order of its words. The frame must be one that
// Verifier.Frame found whole.
func Swap(b []byte) {
	swap(b[0:6], b[6:12])
	switch uint16(b[12])<<8 | uint16(b[13]) {
	case EtherTypeIPv4:
		b = b[EthernetLen : EthernetLen+IPv4Len+4]
		swap(b[12:16], b[16:20])
		swap(b[IPv4Len:IPv4Len+2], b[IPv4Len+2:IPv4Len+4])
	case EtherTypeIPv6:
		b = b[EthernetLen : EthernetLen+IPv6Len+4]
		swap(b[8:24], b[24:40])
		swap(b[IPv6Len:IPv6Len+2], b[IPv6Len+2:IPv6Len+4])
	}
}

// swap exchanges two stretches of the same length, at most 16 bytes.
func swap(x, y []byte) {
	var t [16]byte
	n := copy(t[:], x)
	copy(x, y)
	copy(y, t[:n])
}
