// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
)

// testFrame describes a frame of the run; build makes it with code that shares nothing with the generator.
type testFrame struct {
	dstMAC, srcMAC net.HardwareAddr
	src, dst       netip.Addr
	sport, dport   uint16
	run            uint32
	stream         uint8
	number         uint64
	at             uint64
	payload        int // bytes, stamp included
	ttl            byte
}

const testRunID = 0x54503031

func frame4() testFrame {
	return testFrame{
		dstMAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 1}, srcMAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 2},
		src: netip.MustParseAddr("198.18.0.2"), dst: netip.MustParseAddr("198.18.0.1"),
		sport: 10000, dport: 9000, run: testRunID, payload: 18, ttl: 64,
	}
}

func frame6() testFrame {
	f := frame4()
	f.src, f.dst = netip.MustParseAddr("2001:2::2"), netip.MustParseAddr("2001:2::1")
	return f
}

func (f testFrame) match() FlowMatch {
	return FlowMatch{Src: f.src, Dst: f.dst, DstPort: 9000, SrcPort: 10000, SrcPorts: 16, RunID: testRunID, DstMAC: f.dstMAC}
}

func (f testFrame) build() []byte {
	be := binary.BigEndian
	payload := make([]byte, f.payload)
	for i := range payload {
		payload[i] = byte(i)
	}
	stamp := make([]byte, 18)
	be.PutUint32(stamp, f.run)
	be.PutUint64(stamp[2:], uint64(f.stream)<<40|f.number) // writes 2..9; the first two are the run's again
	be.PutUint32(stamp, f.run)
	be.PutUint64(stamp[10:], f.at)
	copy(payload, stamp)

	udp := make([]byte, 8, 8+len(payload))
	be.PutUint16(udp[0:], f.sport)
	be.PutUint16(udp[2:], f.dport)
	be.PutUint16(udp[4:], uint16(8+len(payload)))
	udp = append(udp, payload...)
	pseudo := append(f.src.AsSlice(), f.dst.AsSlice()...)
	pseudo = append(pseudo, 0, 17, byte(len(udp)>>8), byte(len(udp)))
	sum := referenceChecksum(append(pseudo, udp...))
	if sum == 0 {
		sum = 0xffff
	}
	be.PutUint16(udp[6:], sum)

	out := append(append([]byte(nil), f.dstMAC...), f.srcMAC...)
	if f.src.Is4() {
		ip := []byte{0x45, 0, 0, 0, 0, 0, 0x40, 0, f.ttl, 17, 0, 0}
		ip = append(append(ip, f.src.AsSlice()...), f.dst.AsSlice()...)
		be.PutUint16(ip[2:], uint16(20+len(udp)))
		be.PutUint16(ip[10:], referenceChecksum(ip))
		out = append(append(out, 0x08, 0x00), ip...)
	} else {
		ip := []byte{0x60, 0, 0, 0, byte(len(udp) >> 8), byte(len(udp)), 17, f.ttl}
		ip = append(append(ip, f.src.AsSlice()...), f.dst.AsSlice()...)
		out = append(append(out, 0x86, 0xdd), ip...)
	}
	return append(out, udp...)
}

// referenceChecksum is RFC 1071 word by word, carrying at once.
func referenceChecksum(b []byte) uint16 {
	var sum uint32
	for i := 0; i < len(b); i += 2 {
		w := uint32(b[i]) << 8
		if i+1 < len(b) {
			w |= uint32(b[i+1])
		}
		if sum += w; sum > 0xffff {
			sum -= 0xffff
		}
	}
	return ^uint16(sum)
}

// readStamp returns what varies in a frame of f's shape.
func (f testFrame) readStamp(b []byte) (testFrame, error) {
	ip := 20
	if !f.src.Is4() {
		ip = 40
	}
	if len(b) < 14+ip+8+18 {
		return f, fmt.Errorf("%d bytes are too few", len(b))
	}
	u := b[14+ip:]
	f.sport = binary.BigEndian.Uint16(u)
	f.run = binary.BigEndian.Uint32(u[8:])
	f.stream = u[12]
	f.number = uint64(u[13])<<32 | uint64(binary.BigEndian.Uint32(u[14:]))
	f.at = binary.BigEndian.Uint64(u[18:])
	f.payload = len(b) - 14 - ip - 8
	return f, nil
}
