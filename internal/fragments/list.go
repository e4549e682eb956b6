// SPDX-License-Identifier: Apache-2.0

package fragments

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"twopath/internal/packet"
)

// MaxBytes is how much a list may take: frames are prepared, since every datagram has an id, a stamp and a checksum of its own.
const MaxBytes = 64 << 20

// MaxIDs is how many IPv4 datagrams a list may have: their ids have 16 bits, and one used again could meet what is left of
// the datagram before.
const MaxIDs = 1 << 16

// minFrame is Ethernet's smallest frame without FCS; shorter fragments are padded, as a NIC does.
const minFrame = 60

// Options is the traffic.
type Options struct {
	Flow    packet.Flow
	Run     uint32 // run id of the stamps
	Pattern Pattern
	Payload int     // UDP payload of a datagram, bytes, stamp included
	MTU     int     // of an IP packet, bytes: what a fragment has at most
	Count   int     // datagrams
	PPS     float64 // datagrams per second; 0 leaves out Due
	Seed    uint64  // of orders; the same seed gives the same list
}

// List is a load: frames without FCS, and when each is due.
type List struct {
	Frames [][]byte
	Due    []time.Duration // nil for a flood
	// Fragments is how many a whole datagram has.
	Fragments int
	Bytes     int

	owner   []uint32 // the datagram of each frame
	pattern Pattern
	count   int
}

// Sent is what a number of frames from the front of a list amounts to.
type Sent struct {
	Frames      uint64 `json:"frames"`
	Datagrams   uint64 `json:"datagrams"`   // of which at least one fragment was sent
	Missing     uint64 `json:"missing"`     // of these, sent with one fragment left out
	Overlapping uint64 `json:"overlapping"` // of these, sent with an overlap
}

// Undeliverable is how many datagrams nobody can put together, or may.
func (s Sent) Undeliverable() uint64 { return s.Missing + s.Overlapping }

// New prepares a load.
func New(o Options) (*List, error) {
	per, err := o.check()
	if err != nil {
		return nil, err
	}
	l := &List{pattern: o.Pattern, count: o.Count, Fragments: (packet.UDPLen + o.Payload + per - 1) / per}
	if l.Fragments < 2 {
		return nil, fmt.Errorf("fragments: a datagram of %d bytes of payload fits one packet of %d bytes", o.Payload, o.MTU)
	}
	rng := rand.New(rand.NewPCG(o.Seed, uint64(o.Run)))
	c := &cutter{flow: o.Flow, per: per, id: o.Run, whole: make([]byte, o.Flow.HeaderLen()+o.Payload)}
	group := 1
	if o.Pattern == Shuffled { // well within Linux' distance of 64 fragments, ipfrag_max_dist
		group = max(1, min(4, 48/l.Fragments))
	}
	interval := 0.0
	if o.PPS > 0 {
		interval = float64(time.Second) / o.PPS
	}
	for first := 0; first < o.Count; first += group {
		start := len(l.Frames)
		for n := first; n < min(first+group, o.Count); n++ {
			at := time.Duration(float64(n) * interval)
			stamp := packet.Stamp{Run: o.Run, Number: uint64(n), Time: int64(at)}
			pieces, err := c.cut(n, stamp, o.Pattern.of(uint64(n)), rng)
			if err != nil {
				return nil, err
			}
			for _, f := range pieces {
				l.Frames = append(l.Frames, f)
				l.owner = append(l.owner, uint32(n))
				if l.Bytes += len(f); l.Bytes > MaxBytes {
					return nil, fmt.Errorf("fragments: %d datagrams take more than %d MiB of prepared frames; %d fit", o.Count, MaxBytes>>20, n)
				}
				if o.PPS > 0 {
					l.Due = append(l.Due, at)
				}
			}
		}
		if group > 1 { // times stay where they are
			mixed := l.Frames[start:]
			rng.Shuffle(len(mixed), func(i, j int) {
				mixed[i], mixed[j] = mixed[j], mixed[i]
				l.owner[start+i], l.owner[start+j] = l.owner[start+j], l.owner[start+i]
			})
		}
	}
	return l, nil
}

// check gives the bytes of a datagram that a fragment carries at most.
func (o Options) check() (per int, err error) {
	header, most := packet.IPv4Len, 65535-packet.IPv4Len-packet.UDPLen
	if !o.Flow.Dst.Is4() {
		header, most = packet.IPv6Len+8, 65535-packet.UDPLen
	}
	switch {
	case !o.Pattern.known():
		return 0, fmt.Errorf("fragments: no pattern %q", o.Pattern)
	case o.Count < 1:
		return 0, errors.New("fragments: no datagrams")
	case o.Flow.Dst.Is4() && o.Count > MaxIDs:
		return 0, fmt.Errorf("fragments: %d datagrams, but IPv4 ids are 16 bits long: at most %d", o.Count, MaxIDs)
	case o.Payload < packet.StampLen || o.Payload > most:
		return 0, fmt.Errorf("fragments: a payload of %d bytes is not within %d..%d", o.Payload, packet.StampLen, most)
	case o.MTU < header+16:
		return 0, fmt.Errorf("fragments: an MTU of %d bytes leaves no room for fragments", o.MTU)
	case o.PPS < 0:
		return 0, errors.New("fragments: PPS is negative")
	}
	return (o.MTU - header) &^ 7, nil
}

// Sent tells what the first frames of the list were.
func (l *List) Sent(frames uint64) Sent {
	s := Sent{Frames: min(frames, uint64(len(l.Frames)))}
	seen := make([]bool, l.count)
	for _, n := range l.owner[:s.Frames] {
		if seen[n] {
			continue
		}
		seen[n] = true
		s.Datagrams++
		switch l.pattern.of(uint64(n)) {
		case Missing:
			s.Missing++
		case Overlapping:
			s.Overlapping++
		}
	}
	return s
}
