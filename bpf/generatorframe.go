// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"math/bits"
)

// Lengths in bytes.
const (
	ethLen   = 14
	ip4Len   = 20
	ip6Len   = 40
	udpLen   = 8
	stampLen = 18
)

// headers returns Ethernet to UDP with the fields that vary by frame or size left zero (RFC 791, 8200, 768).
func (o GeneratorOptions) headers() []byte {
	h := make([]byte, 0, ethLen+ip6Len+udpLen)
	h = append(h, o.DstMAC...)
	h = append(h, o.SrcMAC...)
	if o.Src.Is4() {
		h = append(h, 0x08, 0x00)
		h = append(h, 0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0) // don't fragment, id 0, TTL 64, UDP
	} else {
		h = append(h, 0x86, 0xdd)
		h = append(h, 0x60, 0, 0, 0, 0, 0, 17, 64)
	}
	h = append(h, o.Src.AsSlice()...)
	h = append(h, o.Dst.AsSlice()...)
	h = append(h, 0, 0)
	h = binary.BigEndian.AppendUint16(h, o.DstPort)
	return append(h, 0, 0, 0, 0)
}

// headerWords is headers as the program stores them.
func (o GeneratorOptions) headerWords() (w [8]uint64) {
	var b [64]byte
	copy(b[:], o.headers())
	for i := range w {
		w[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return w
}

// template is the largest frame with an empty stamp: payload byte i is byte(i) from the end of the stamp on.
func (o GeneratorOptions) template() []byte {
	h := o.headers()
	largest := 0
	for _, s := range o.Sizes {
		largest = max(largest, s-fcs)
	}
	frame := make([]byte, largest)
	copy(frame, h)
	for i := stampLen; len(h)+i < largest; i++ {
		frame[len(h)+i] = byte(i)
	}
	return frame
}

// size computes what is constant for a frame size (with FCS): lengths, the IPv4 header checksum, and the sum of
// everything under the UDP checksum but source port and stamp.
func (o GeneratorOptions) size(s int) generateSize {
	h := o.headers()
	frame := s - fcs
	udp := frame - len(h) + udpLen
	z := generateSize{FrameLen: uint32(frame), UdpLen: swap16(udp)}

	sum := sumWords(o.Src.AsSlice()) + sumWords(o.Dst.AsSlice()) + 17 + uint64(udp) // pseudo header (RFC 768, 8200 section 8.1)
	sum += uint64(o.DstPort) + uint64(udp)
	payload := make([]byte, udp-udpLen)
	for i := stampLen; i < len(payload); i++ {
		payload[i] = byte(i)
	}
	sum += sumWords(payload)
	z.UdpSum = uint32(swap16(int(fold(sum))))

	if o.Src.Is4() {
		total := frame - ethLen
		ip := append([]byte(nil), h[ethLen:ethLen+ip4Len]...)
		binary.BigEndian.PutUint16(ip[2:], uint16(total))
		z.IpLen, z.IpCheck = swap16(total), swap16(int(^fold(sumWords(ip))))
	} else {
		z.IpLen = swap16(udp)
	}
	return z
}

// swap16 gives the value a little-endian program has to store for n to stand in network order.
func swap16(n int) uint16 { return bits.ReverseBytes16(uint16(n)) }

// sumWords adds big-endian 16-bit words, an odd last byte padded with zero (RFC 1071).
func sumWords(b []byte) (sum uint64) {
	for len(b) >= 2 {
		sum += uint64(binary.BigEndian.Uint16(b))
		b = b[2:]
	}
	if len(b) == 1 {
		sum += uint64(b[0]) << 8
	}
	return sum
}

func fold(sum uint64) uint16 {
	for sum > 0xffff {
		sum = sum&0xffff + sum>>16
	}
	return uint16(sum)
}
