// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"fmt"
	"slices"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

// Link types (www.tcpdump.org/linktypes.html).
const (
	linkEthernet = 1
	linkRaw      = 101
	linkRawBSD   = 12 // DLT_RAW, as files of some systems have it
	linkRawOpen  = 14
	linkSLL      = 113
	linkIPv4     = 228
	linkIPv6     = 229
	linkSLL2     = 276
)

// Lengths of the Linux cooked headers (LINKTYPE_LINUX_SLL, LINKTYPE_LINUX_SLL2).
const (
	sllLen  = 16
	sll2Len = 20
)

func linkName(l layers.LinkType) string {
	switch int(l) {
	case linkEthernet:
		return "Ethernet"
	case linkSLL:
		return "Linux cooked"
	case linkSLL2:
		return "Linux cooked v2"
	case linkRaw, linkRawBSD, linkRawOpen, linkIPv4, linkIPv6:
		return "raw IP"
	}
	return ""
}

// adder puts records into a capture.
type adder struct {
	c     *Capture
	mtu   int
	first time.Time
	last  time.Duration
	bytes int
}

// add takes one record. Every record counts once: among the frames, or among the skipped.
func (a *adder) add(data []byte, info gopacket.CaptureInfo, link layers.LinkType) error {
	c := a.c
	name := linkName(link)
	if name == "" {
		return &FileError{Path: c.Path, Cause: fmt.Sprintf("record %d has link type %d (%v)", c.Records, int(link), link),
			Cure: "Ethernet, Linux cooked (v1, v2) and raw IP can be replayed: record on such an interface"}
	}
	if !slices.Contains(c.Links, name) {
		c.Links = append(c.Links, name)
	}
	switch {
	case len(data) == 0:
		c.Skipped.Empty++
		return nil
	case len(data) < info.Length:
		c.Skipped.Cut++
		return nil
	}
	frame, skip := ethernet(data, int(link), &c.Skipped)
	if skip != nil {
		*skip++
		return nil
	}
	if len(frame) > maxFrame || len(frame) > a.longest(frame) {
		c.Skipped.TooLong++
		return nil
	}
	if a.bytes += len(frame); a.bytes > MaxBytes || len(c.Frames) == MaxFrames {
		return &FileError{Path: c.Path, Cause: fmt.Sprintf("it has more than %d frames or %d bytes", MaxFrames, MaxBytes),
			Cure: "cut it: editcap -c 10000000 IN OUT"}
	}
	a.time(info.Timestamp)
	c.Frames = append(c.Frames, frame)
	c.At = append(c.At, a.last)
	return nil
}

// longest is how long a frame may be: a tag does not count towards the MTU.
func (a *adder) longest(frame []byte) int {
	n := minFrame + a.mtu
	if t := binary.BigEndian.Uint16(frame[12:]); t == 0x8100 || t == 0x88a8 {
		n += 4
	}
	return n
}

// time moves the clock on; never back.
func (a *adder) time(t time.Time) {
	if len(a.c.Frames) == 0 {
		a.first = t
		return
	}
	at := t.Sub(a.first)
	if at < a.last {
		a.c.Backwards++
		return
	}
	a.last = at
}

// ethernet makes an Ethernet frame of a record, or says which count it belongs to.
func ethernet(data []byte, link int, s *Skipped) ([]byte, *uint64) {
	var src []byte
	var etherType uint16
	switch link {
	case linkEthernet:
		if len(data) < minFrame {
			return nil, &s.Short
		}
		return data, nil
	case linkSLL:
		if len(data) < sllLen {
			return nil, &s.Short
		}
		if binary.BigEndian.Uint16(data[4:]) == 6 {
			src = data[6:12]
		}
		etherType, data = binary.BigEndian.Uint16(data[14:]), data[sllLen:]
	case linkSLL2:
		if len(data) < sll2Len {
			return nil, &s.Short
		}
		if data[11] == 6 {
			src = data[12:18]
		}
		etherType, data = binary.BigEndian.Uint16(data), data[sll2Len:]
	default:
		switch data[0] >> 4 {
		case 4:
			etherType = 0x0800
		case 6:
			etherType = 0x86dd
		}
	}
	if etherType < 0x600 { // a length or one of Linux's own numbers (include/uapi/linux/if_ether.h)
		return nil, &s.NotEthernet
	}
	frame := make([]byte, minFrame+len(data))
	copy(frame[6:12], src)
	binary.BigEndian.PutUint16(frame[12:], etherType)
	copy(frame[14:], data)
	return frame, nil
}
