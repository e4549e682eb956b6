// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"fmt"
	"net"
	"net/netip"
)

// Flow is one direction of the test's UDP traffic: what the generator sends and the receiver takes for its own.
type Flow struct {
	SrcMAC, DstMAC net.HardwareAddr
	Src, Dst       netip.Addr
	SrcPort        uint16 // of flow 0; flow f uses SrcPort+f
	DstPort        uint16
	Flows          int // how many source ports, at least 1
}

// HeaderLen is the length in bytes of Ethernet, IP and UDP headers of the flow's frames.
func (f Flow) HeaderLen() int {
	if f.Dst.Is4() {
		return EthernetLen + IPv4Len + UDPLen
	}
	return EthernetLen + IPv6Len + UDPLen
}

// MinSize is the smallest frame in bytes, FCS included, that holds a stamp: 64 for IPv4, 84 for IPv6.
func (f Flow) MinSize() int { return f.HeaderLen() + StampLen + FCSLen }

// Build writes a whole frame of size bytes (FCS included in size, not in the frame) into b and returns it: headers,
// stamp, pattern, checksums. b must have room for size-FCSLen bytes.
func (f Flow) Build(b []byte, size, flow int, s Stamp) ([]byte, error) {
	n := size - FCSLen
	if size < f.MinSize() {
		return nil, fmt.Errorf("build frame: %d B is under the %d B that headers and stamp take", size, f.MinSize())
	}
	if len(b) < n {
		return nil, fmt.Errorf("build frame: buffer holds %d of %d B", len(b), n)
	}
	b = b[:n]
	payload := n - f.HeaderLen()
	var u UDP
	var sum uint64
	if f.Dst.Is4() {
		Ethernet(b).Encode(f.DstMAC, f.SrcMAC, EtherTypeIPv4)
		ip := IPv4(b[EthernetLen:])
		ip.Encode(f.Src, f.Dst, ProtoUDP, 64, UDPLen+payload)
		u, sum = UDP(b[EthernetLen+IPv4Len:]), pseudo4(ip, UDPLen+payload)
	} else {
		Ethernet(b).Encode(f.DstMAC, f.SrcMAC, EtherTypeIPv6)
		ip := IPv6(b[EthernetLen:])
		ip.Encode(f.Src, f.Dst, ProtoUDP, 64, UDPLen+payload)
		u, sum = UDP(b[EthernetLen+IPv6Len:]), pseudo6(ip, UDPLen+payload)
	}
	u.Encode(f.SrcPort+uint16(flow), f.DstPort, payload)
	s.Put(u[UDPLen:])
	Fill(u[UDPLen:], StampLen)
	c := udpChecksum(Sum(u, sum))
	u[6], u[7] = byte(c>>8), byte(c)
	return b, nil
}

// Fill writes the payload pattern, byte i holding i modulo 256, from offset from to the end of payload.
func Fill(payload []byte, from int) {
	for i := from; i < len(payload); i++ {
		payload[i] = byte(i)
	}
}

// PatternOK tells whether payload beyond the stamp holds the pattern.
func PatternOK(payload []byte) bool {
	for i := StampLen; i < len(payload); i++ {
		if payload[i] != byte(i) {
			return false
		}
	}
	return true
}
