// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"

	"twopath/internal/packet"
)

// TCP flags (RFC 9293, section 3.1).
const (
	flagFIN = 1 << iota
	flagSYN
	flagRST
	flagPSH
	flagACK
)

const (
	tcpLen   = 20
	protoTCP = 6
)

// segment is a received TCP segment. Slices lie in the frame.
type segment struct {
	src, dst     []byte // addresses as they stand in the frame
	sport, dport uint16
	seq, ack     uint32
	flags        uint8
	window       uint16
	options      []byte
	data         []byte
}

// length is what the segment takes of the sequence space.
func (g *segment) length() uint32 {
	n := uint32(len(g.data))
	if g.flags&flagSYN != 0 {
		n++
	}
	if g.flags&flagFIN != 0 {
		n++
	}
	return n
}

// Verdict is what became of a frame.
type Verdict uint8

// The verdicts.
const (
	Taken   Verdict = iota // it was a connection's, or answered
	NotOurs                // another protocol, address, port: for the kernel
	Bad                    // a length or checksum is wrong: dropped and counted
)

// parse takes a frame apart as far as TCP, and verifies both checksums unless told not to.
func (g *segment) parse(f []byte, l2 int, v6, verify bool) Verdict {
	if len(f) < l2 {
		return NotOurs
	}
	if v6 {
		return g.parse6(f[l2:], verify)
	}
	return g.parse4(f[l2:], verify)
}

func (g *segment) parse4(p []byte, verify bool) Verdict {
	if len(p) < packet.IPv4Len || p[0]>>4 != 4 {
		return NotOurs
	}
	if p[9] != protoTCP || binary.BigEndian.Uint16(p[6:])&0x3fff != 0 { // a fragment is the reassembler's
		return NotOurs
	}
	hl, total := int(p[0]&15)*4, int(binary.BigEndian.Uint16(p[2:]))
	if hl < packet.IPv4Len || total < hl+tcpLen || total > len(p) {
		return Bad
	}
	if verify && packet.Fold(packet.Sum(p[:hl], 0)) != 0xffff {
		return Bad
	}
	g.src, g.dst = p[12:16], p[16:20]
	t := p[hl:total]
	if verify {
		pseudo := uint64(binary.BigEndian.Uint32(p[12:])) + uint64(binary.BigEndian.Uint32(p[16:])) + protoTCP + uint64(len(t))
		if packet.Fold(packet.Sum(t, pseudo)) != 0xffff {
			return Bad
		}
	}
	return g.parseTCP(t)
}

func (g *segment) parse6(p []byte, verify bool) Verdict {
	if len(p) < packet.IPv6Len || p[0]>>4 != 6 || p[6] != protoTCP {
		return NotOurs
	}
	n := int(binary.BigEndian.Uint16(p[4:]))
	if n < tcpLen || packet.IPv6Len+n > len(p) {
		return Bad
	}
	g.src, g.dst = p[8:24], p[24:40]
	t := p[packet.IPv6Len : packet.IPv6Len+n]
	if verify && packet.Fold(packet.Sum(t, packet.Sum(p[8:40], protoTCP+uint64(n)))) != 0xffff {
		return Bad
	}
	return g.parseTCP(t)
}

func (g *segment) parseTCP(t []byte) Verdict {
	hl := int(t[12]>>4) * 4
	if hl < tcpLen || hl > len(t) {
		return Bad
	}
	g.sport, g.dport = binary.BigEndian.Uint16(t), binary.BigEndian.Uint16(t[2:])
	g.seq, g.ack = binary.BigEndian.Uint32(t[4:]), binary.BigEndian.Uint32(t[8:])
	g.flags, g.window = t[13]&0x3f, binary.BigEndian.Uint16(t[14:])
	g.options, g.data = t[tcpLen:hl], t[hl:]
	return Taken
}

// synOptions reads the options of a SYN: maximum segment size (RFC 9293, section 3.2) and window scale (RFC 7323). What is
// absent is 0 and -1.
func (g *segment) synOptions() (mss uint16, scale int) {
	scale = -1
	for o := g.options; len(o) > 0; {
		switch o[0] {
		case 0:
			return mss, scale
		case 1:
			o = o[1:]
			continue
		}
		if len(o) < 2 || int(o[1]) < 2 || int(o[1]) > len(o) {
			return mss, scale // the rest cannot be read
		}
		switch {
		case o[0] == 2 && o[1] == 4:
			mss = binary.BigEndian.Uint16(o[2:])
		case o[0] == 3 && o[1] == 3:
			scale = min(int(o[2]), 14)
		}
		o = o[o[1]:]
	}
	return mss, scale
}
