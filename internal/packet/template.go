// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"encoding/binary"
	"fmt"
)

// Template makes the frames of one stream by writing into memory that already holds one of them only what differs from
// frame to frame: lengths, source port, stamp, checksums. The payload's pattern depends on the position alone, so the
// same memory serves frames of every size. Memory prepared by Init stays good for as long as nobody else writes to it.
// A Template is used by one goroutine; its methods do not allocate.
type Template struct {
	flow    Flow
	run     uint32
	stream  uint8
	v4      bool
	header  int // bytes before the payload
	udp     int // offset of the UDP header
	longest int
	kinds   []shape
	cycle   []uint8 // index into kinds, for each position of the cycle of sizes
}

// shape is what all frames of one size have in common.
type shape struct {
	frame, payload int    // bytes, without FCS
	ip             uint16 // length field of the IP header
	ipSum          uint16 // IPv4 header checksum
	udp            uint16 // length field of the UDP header
	sum            uint64 // ones' complement sum over pseudo header and datagram, without source port, number and time
}

// NewTemplate prepares frames of the given sizes in bytes, FCS included, which are used in turn.
func NewTemplate(f Flow, run uint32, stream uint8, sizes []int) (*Template, error) {
	if len(sizes) == 0 {
		return nil, fmt.Errorf("template: no sizes")
	}
	t := &Template{flow: f, run: run, stream: stream, v4: f.Dst.Is4(), header: f.HeaderLen()}
	t.flow.Flows = max(f.Flows, 1)
	t.udp = t.header - UDPLen
	at := map[int]uint8{}
	for _, size := range sizes {
		k, known := at[size]
		if !known {
			if len(t.kinds) == 256 {
				return nil, fmt.Errorf("template: more than 256 different sizes")
			}
			s, err := t.shape(size)
			if err != nil {
				return nil, err
			}
			k = uint8(len(t.kinds))
			at[size], t.kinds = k, append(t.kinds, s)
			t.longest = max(t.longest, s.frame)
		}
		t.cycle = append(t.cycle, k)
	}
	return t, nil
}

// shape builds a frame of the size the slow way, number and time being 0, and keeps what it would share with the others.
func (t *Template) shape(size int) (shape, error) {
	f := t.flow
	f.SrcPort = 0
	b, err := f.Build(make([]byte, max(size, 0)), size, 0, Stamp{Run: t.run, Stream: t.stream})
	if err != nil {
		return shape{}, err
	}
	s := shape{frame: len(b), payload: len(b) - t.header, udp: uint16(len(b) - t.udp)}
	if t.v4 {
		s.ip, s.ipSum = binary.BigEndian.Uint16(b[EthernetLen+2:]), binary.BigEndian.Uint16(b[EthernetLen+10:])
		s.sum = pseudo4(b[EthernetLen:], len(b)-t.udp)
	} else {
		s.ip = binary.BigEndian.Uint16(b[EthernetLen+4:])
		s.sum = pseudo6(b[EthernetLen:], len(b)-t.udp)
	}
	u := b[t.udp:]
	u[6], u[7] = 0, 0
	s.sum = uint64(Fold(Sum(u, s.sum)))
	return s, nil
}

// Longest is the number of bytes of the longest frame, without FCS.
func (t *Template) Longest() int { return t.longest }

// Header is the number of bytes before the UDP payload.
func (t *Template) Header() int { return t.header }

// Bytes is the number of bytes of the frame at a position of the cycle of sizes, without FCS.
func (t *Template) Bytes(position int) int { return t.kinds[t.cycle[position]].frame }

// Cycle is how many positions the cycle of sizes has.
func (t *Template) Cycle() int { return len(t.cycle) }

// Init writes into b, at least Longest bytes, all that Frame leaves alone.
func (t *Template) Init(b []byte) error {
	_, err := t.flow.Build(b, t.longest+FCSLen, 0, Stamp{Run: t.run, Stream: t.stream})
	return err
}

// Frame makes the frame of a position, flow, number and intended send time (ns) in b, which Init has prepared, and
// returns its length in bytes.
func (t *Template) Frame(b []byte, position, flow int, number uint64, at int64) int {
	s := &t.kinds[t.cycle[position]]
	b = b[:s.frame]
	port := t.flow.SrcPort + uint16(flow)
	if t.v4 {
		_ = b[EthernetLen+IPv4Len+UDPLen+StampLen-1]
		binary.BigEndian.PutUint16(b[EthernetLen+2:], s.ip)
		binary.BigEndian.PutUint16(b[EthernetLen+10:], s.ipSum)
	} else {
		_ = b[EthernetLen+IPv6Len+UDPLen+StampLen-1]
		binary.BigEndian.PutUint16(b[EthernetLen+4:], s.ip)
	}
	u := b[t.udp:]
	_ = u[UDPLen+StampLen-1]
	// Number and time stand at even offsets, so their 16-bit words are summed as they are (RFC 1071, section 2).
	sum := s.sum + uint64(port) + number>>32&0xff + number&0xffffffff + uint64(at)>>32 + uint64(at)&0xffffffff
	binary.BigEndian.PutUint16(u, port)
	binary.BigEndian.PutUint16(u[4:], s.udp)
	binary.BigEndian.PutUint16(u[6:], udpChecksum(sum))
	t.stamp(u[UDPLen:], number, at)
	return s.frame
}

// InitPayload writes into b what Payload leaves alone.
func (t *Template) InitPayload(b []byte) {
	Stamp{Run: t.run, Stream: t.stream}.Put(b)
	Fill(b, StampLen)
}

// Payload makes the UDP payload of a position, number and time in b, which InitPayload has prepared, and returns its
// length in bytes: for senders whose headers the kernel writes.
func (t *Template) Payload(b []byte, position int, number uint64, at int64) int {
	t.stamp(b, number, at)
	return t.kinds[t.cycle[position]].payload
}

func (t *Template) stamp(p []byte, number uint64, at int64) {
	_ = p[StampLen-1]
	p[5] = byte(number >> 32)
	binary.BigEndian.PutUint32(p[6:], uint32(number))
	binary.BigEndian.PutUint64(p[10:], uint64(at))
}
