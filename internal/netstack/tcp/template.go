// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"encoding/binary"
	"net"

	"twopath/internal/packet"
)

// Kind is a kind of frame that an engine sends: frames of a kind differ in a few header fields only.
type Kind uint8

// The kinds. A frame buffer that was used for one is cheapest to use for the same again.
const (
	NoKind   Kind = iota
	KindSYN       // with options
	KindBare      // ACK, FIN, RST: no payload
	KindData      // the whole request, or a response of one segment
	KindPart      // a part of a longer response: its payload is written each time
	kinds
)

// Output is where frames leave: the transmit side of an engine, or a test's wire.
type Output interface {
	// Buffer lends room for a frame of a kind, MaxFrame bytes at least, and tells which kind of frame it held last. nil means
	// that there is no room now.
	Buffer(k Kind) (b []byte, held Kind)
	// Send hands over the first n bytes of the buffer lent last.
	Send(n int)
}

// template is a kind's frame without what differs from one connection and segment to the next.
type template struct {
	frame []byte
	ip    uint64 // sum, in 16 bits, of the IPv4 header without addresses
	tcp   uint64 // the same of the TCP segment and its pseudo header without addresses, ports, protocol, numbers, flags, window
}

// layout is where things are in a frame.
type layout struct {
	l2, l3, l4 int
	v6         bool
	server     bool // frames go from the server to the client
}

// Link is what frames carry below IP.
type Link struct {
	Src, Dst net.HardwareAddr
	VLAN     uint16 // 802.1Q tag; 0 is none
	TOS      uint8  // IPv4 TOS, IPv6 traffic class
	TTL      uint8  // 0 is 64
}

func (k Link) len() int {
	if k.VLAN != 0 {
		return packet.EthernetLen + 4
	}
	return packet.EthernetLen
}

// newTemplate builds the frame of a segment with the given options and payload.
func newTemplate(k Link, y layout, options, payload []byte) template {
	b := make([]byte, max(y.l4+tcpLen+len(options)+len(payload), minFrame))
	e := b
	copy(e, k.Dst)
	copy(e[6:], k.Src)
	if k.VLAN != 0 {
		binary.BigEndian.PutUint16(e[12:], packet.EtherTypeVLAN)
		binary.BigEndian.PutUint16(e[14:], k.VLAN)
		e = e[4:]
	}
	ttl := k.TTL
	if ttl == 0 {
		ttl = 64
	}
	n := tcpLen + len(options) + len(payload)
	p := b[y.l2:]
	t := template{frame: b}
	if y.v6 {
		binary.BigEndian.PutUint16(e[12:], packet.EtherTypeIPv6)
		binary.BigEndian.PutUint32(p, 6<<28|uint32(k.TOS)<<20)
		binary.BigEndian.PutUint16(p[4:], uint16(n))
		p[6], p[7] = protoTCP, ttl
	} else {
		binary.BigEndian.PutUint16(e[12:], packet.EtherTypeIPv4)
		p[0], p[1] = 0x45, k.TOS
		binary.BigEndian.PutUint16(p[2:], uint16(packet.IPv4Len+n))
		p[6] = 0x40 // DF
		p[8], p[9] = ttl, protoTCP
		t.ip = uint64(packet.Fold(packet.Sum(p[:packet.IPv4Len], 0)))
	}
	h := b[y.l4:]
	h[12] = uint8((tcpLen+len(options))/4) << 4
	copy(h[tcpLen:], options)
	copy(h[tcpLen+len(options):], payload)
	t.tcp = uint64(packet.Fold(packet.Sum(h, uint64(n)))) // padding is zero
	return t
}

// emit sends one segment of a connection: the template's frame, with the connection's addresses and ports, and the numbers
// given. payload is written into it for kinds whose payload is not the template's.
func (l *Load) emit(s *sock, k Kind, flags uint8, seq, ack uint32, payload []byte) bool {
	b, held := l.out.Buffer(k)
	if b == nil {
		l.n.TxFull++
		return false
	}
	t, y := &l.templates[k], &l.layout
	n := len(t.frame)
	if held != k {
		copy(b, t.frame)
	}
	sum := t.tcp
	if k == KindPart {
		n = y.l4 + tcpLen + len(payload)
		copy(b[y.l4+tcpLen:], payload)
		for ; n < minFrame; n++ {
			b[n] = 0
		}
		sum = uint64(packet.Fold(packet.Sum(payload, sum+uint64(len(payload)))))
	}
	p := b[y.l2:]
	from, to := &l.clients.addrs[s.client], &l.servers.addrs[s.server]
	fsum, sport, dport := l.clients.sums[s.client]+l.servers.sums[s.server], s.cport, s.sport
	if y.server {
		from, to, sport, dport = to, from, dport, sport
	}
	if y.v6 {
		copy(p[8:24], from[:])
		copy(p[24:40], to[:])
		if k == KindPart {
			binary.BigEndian.PutUint16(p[4:], uint16(tcpLen+len(payload)))
		}
	} else {
		ip := t.ip + uint64(fsum)
		if k == KindPart {
			binary.BigEndian.PutUint16(p[2:], uint16(packet.IPv4Len+tcpLen+len(payload)))
			ip += uint64(len(payload))
		}
		binary.BigEndian.PutUint32(p[12:], binary.BigEndian.Uint32(from[:]))
		binary.BigEndian.PutUint32(p[16:], binary.BigEndian.Uint32(to[:]))
		binary.BigEndian.PutUint16(p[10:], ^packet.Fold(ip))
	}
	window := l.window
	if flags&flagSYN != 0 {
		window = l.synWindow
	}
	h := b[y.l4:]
	binary.BigEndian.PutUint32(h, uint32(sport)<<16|uint32(dport))
	binary.BigEndian.PutUint32(h[4:], seq)
	binary.BigEndian.PutUint32(h[8:], ack)
	h[13] = flags
	binary.BigEndian.PutUint16(h[14:], window)
	sum += uint64(s.sum) + uint64(seq) + uint64(ack) + uint64(flags) + uint64(window)
	binary.BigEndian.PutUint16(h[16:], ^packet.Fold(sum))
	l.out.Send(n)
	l.n.Tx++
	if flags&flagACK != 0 {
		s.flags &^= flagAckOwed
	}
	return true
}

// minFrame is the smallest Ethernet frame without FCS; what is beyond a short packet is padding of zeros.
const minFrame = 60
