// SPDX-License-Identifier: Apache-2.0

package fragments

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"twopath/internal/packet"
)

// cutter makes one datagram after another and cuts it to pieces.
type cutter struct {
	flow  packet.Flow
	per   int    // bytes a fragment carries at most, a multiple of 8
	id    uint32 // of datagram 0; others follow
	whole []byte
}

// extent is what a fragment carries of a datagram: bytes from..to behind the IP header.
type extent struct{ from, to int }

// cut returns the frames of datagram n, in the order they are sent.
func (c *cutter) cut(n int, s packet.Stamp, p Pattern, rng *rand.Rand) ([][]byte, error) {
	frame, err := c.flow.Build(c.whole, len(c.whole)+packet.FCSLen, n%max(c.flow.Flows, 1), s)
	if err != nil {
		return nil, err
	}
	segment := frame[c.flow.HeaderLen()-packet.UDPLen:]
	var parts []extent
	for at := 0; at < len(segment); at += c.per {
		parts = append(parts, extent{at, min(at+c.per, len(segment))})
	}
	last := len(parts) - 1
	switch p {
	case Shuffled:
		rng.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	case Duplicated: // not the one that completes the datagram: its copy would begin another, which times out
		twice := parts[:0:0]
		for _, x := range parts[:last] {
			twice = append(twice, x, x)
		}
		parts = append(twice, parts[last])
	case Overlapping: // the last to be sent, so that nothing of the datagram comes after it was dropped
		parts[last].from -= 8
		parts[last].to = min(parts[last].to, parts[last].from+c.per)
	case Missing:
		i := n % len(parts)
		parts = slices.Delete(parts, i, i+1)
	}
	out := make([][]byte, len(parts))
	for i, x := range parts {
		more := x.to < len(segment) && !(p == Overlapping && i == last)
		out[i] = c.fragment(frame, segment, x, more, c.id+uint32(n))
	}
	return out, nil
}

// fragment makes one frame. frame is the whole datagram's, whose headers it takes over.
func (c *cutter) fragment(frame, segment []byte, x extent, more bool, id uint32) []byte {
	data := segment[x.from:x.to]
	if c.flow.Dst.Is4() {
		head := packet.EthernetLen + packet.IPv4Len
		b := make([]byte, max(head+len(data), minFrame))
		copy(b, frame[:head])
		copy(b[head:], data)
		ip := b[packet.EthernetLen:head]
		field := uint16(x.from / 8)
		if more {
			field |= 0x2000
		}
		binary.BigEndian.PutUint16(ip[2:], uint16(packet.IPv4Len+len(data)))
		binary.BigEndian.PutUint16(ip[4:], uint16(id))
		binary.BigEndian.PutUint16(ip[6:], field) // DF is off: this is what it would forbid
		ip[10], ip[11] = 0, 0
		binary.BigEndian.PutUint16(ip[10:], ^packet.Fold(packet.Sum(ip, 0)))
		return b
	}
	head := packet.EthernetLen + packet.IPv6Len
	b := make([]byte, max(head+8+len(data), minFrame))
	copy(b, frame[:head])
	ip, ext := b[packet.EthernetLen:head], b[head:head+8]
	binary.BigEndian.PutUint16(ip[4:], uint16(8+len(data)))
	ip[6] = 44 // fragment header (RFC 8200, section 4.5)
	ext[0] = packet.ProtoUDP
	field := uint16(x.from)
	if more {
		field |= 1
	}
	binary.BigEndian.PutUint16(ext[2:], field)
	binary.BigEndian.PutUint32(ext[4:], id)
	copy(b[head+8:], data)
	return b
}
