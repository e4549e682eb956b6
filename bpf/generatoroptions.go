// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Limits of a generator.
const (
	MaxSizes      = 16   // SIZES of c/generate.bpf.c
	MinFrameSize4 = 64   // Ethernet + IPv4 + UDP + stamp, with FCS
	MinFrameSize6 = 84   // Ethernet + IPv6 + UDP + stamp, with FCS
	MaxPatience   = 64   // PATIENCE_MAX of c/pace.h
	MaxFrameSize  = 3412 // what fits a live frame's page (3,408), with FCS
	fcs           = 4
)

// GeneratorOptions shapes a generator. One generator is one stream on one core.
type GeneratorOptions struct {
	IfIndex int   // sending interface, in the network namespace of the thread that calls Run
	Stream  uint8 // the top 8 bits of every sequence number
	RunID   uint32

	SrcMAC, DstMAC net.HardwareAddr
	Src, Dst       netip.Addr // both IPv4 or both IPv6
	DstPort        uint16     // 0 means 9000
	SrcPort        uint16     // of flow 0; 0 means 10000
	Flows          int        // source ports; flow = number mod Flows; 0 means 1

	Sizes []int   // frame sizes with FCS, cycled frame by frame; nil means the smallest; at most MaxSizes
	Rate  float64 // frames per second, 0 = as fast as it goes (flood)
	Count uint64  // frames in all, 0 = until stopped

	Batch int // frames per flush, 1..64; 0 means 64. At low rates 64 adds some us to a stamp, 1 adds least
	// Patience is how often a program run looks at the clock again while no frame is due, 0..MaxPatience. With 0, most of
	// a batch's runs are looks at the clock, so frames are handed over a few at a time; with 40 or so, about a
	// microsecond, they are handed over a batch at a time, as by a NIC that moderates its interrupts.
	Patience int
	CatchUp  float64       // highest rate after a stall, as a multiple of Rate, at least 1; 0 means 1.25
	Burst    int           // frames sent back to back before CatchUp limits; 0 means 96
	MaxLag   time.Duration // how far the schedule may fall behind before it is moved on; 0 means 50 ms

	// PingPong sends one request at a time: the next when this meter has seen the reply, not sooner than an interval of Rate
	// after the one before, or when GiveUp has passed. A stamp then holds the time of sending, and nothing is caught up.
	PingPong *EchoMeter
	GiveUp   time.Duration // how long a reply is waited for; 0 means 100 ms

	Faults Faults
}

// Faults are deliberate errors, each on every n-th number, 0 = never. Swap exchanges every n-th pair of neighbours.
type Faults struct {
	BadUDPChecksum uint32
	Duplicate      uint32 // the number is sent twice; the second copy counts as sent
	Swap           uint32
	WrongRun       uint32 // run id + 1
	WrongMAC       uint32 // last byte of the destination inverted
	BadPayload     uint32 // first pattern byte, under a right UDP checksum; frames with less than 20 B of payload are left alone
}

// Imix is the mix of frame sizes of this project: per 16 frames 9 of 64, 5 of 594, 2 of 1518.
func Imix() []int {
	return []int{64, 594, 64, 64, 594, 64, 1518, 64, 64, 594, 64, 594, 64, 64, 594, 1518}
}

// withDefaults fills in the zero values and refuses what cannot be.
func (o GeneratorOptions) withDefaults() (GeneratorOptions, error) {
	bad := func(format string, args ...any) (GeneratorOptions, error) {
		return o, fmt.Errorf("generator: "+format, args...)
	}
	if o.IfIndex < 1 {
		return bad("IfIndex is %d", o.IfIndex)
	}
	if len(o.SrcMAC) != 6 || len(o.DstMAC) != 6 {
		return bad("SrcMAC and DstMAC must be Ethernet addresses")
	}
	o.Src, o.Dst = o.Src.Unmap(), o.Dst.Unmap()
	if !o.Src.IsValid() || !o.Dst.IsValid() || o.Src.Is4() != o.Dst.Is4() {
		return bad("Src (%s) and Dst (%s) must be two IPv4 or two IPv6 addresses", o.Src, o.Dst)
	}
	least := MinFrameSize6
	if o.Src.Is4() {
		least = MinFrameSize4
	}
	setDefault(&o.DstPort, 9000)
	setDefault(&o.SrcPort, 10000)
	setDefault(&o.Flows, 1)
	setDefault(&o.GiveUp, 100*time.Millisecond)
	if len(o.Sizes) == 0 {
		o.Sizes = []int{least}
	}
	if o.Flows < 1 || int(o.SrcPort)+o.Flows > 1<<16 {
		return bad("%d flows from source port %d do not fit", o.Flows, o.SrcPort)
	}
	if len(o.Sizes) > MaxSizes {
		return bad("%d sizes, at most %d", len(o.Sizes), MaxSizes)
	}
	for _, s := range o.Sizes {
		if s < least || s > MaxFrameSize {
			return bad("frame size %d, want %d..%d (with FCS)", s, least, MaxFrameSize)
		}
	}
	p, err := o.pace().withDefaults("generator")
	if err != nil {
		return o, err
	}
	o.Batch, o.CatchUp, o.Burst, o.MaxLag = p.batch, p.catchUp, p.burst, p.maxLag
	if o.PingPong != nil && (o.Faults.Swap != 0 || o.Patience != 0 || o.GiveUp < time.Microsecond) {
		return bad("PingPong goes with neither Faults.Swap nor Patience, and GiveUp (%s) must be 1us or more", o.GiveUp)
	}
	if o.Count >= 1<<40 {
		return bad("Count is %d, numbers have 40 bits", o.Count)
	}
	return o, nil
}

func setDefault[T comparable](v *T, to T) {
	var zero T
	if *v == zero {
		*v = to
	}
}

func (o GeneratorOptions) pace() pace {
	return pace{rate: o.Rate, batch: o.Batch, patience: o.Patience, catchUp: o.CatchUp, burst: o.Burst, maxLag: o.MaxLag}
}

// checkDevice refuses an interface that cannot send these frames.
func (o GeneratorOptions) checkDevice() error {
	dev, err := sendingDevice(o.IfIndex)
	for _, s := range o.Sizes {
		if err == nil {
			err = checkMTU(dev, s-fcs)
		}
	}
	if err != nil {
		return fmt.Errorf("generator: %w", err)
	}
	return nil
}

var errTooLong = errors.New("message too long")
