// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"time"
)

// BindMode is how frames get between driver and UMEM.
type BindMode int

const (
	Auto     BindMode = iota // the kernel chooses zero-copy if it can, else copy; Mode tells which
	Copy                     // the kernel copies each frame: any device
	ZeroCopy                 // the device uses the UMEM itself: drivers with support only
)

func (m BindMode) String() string { return name(int(m), "auto", "copy", "zerocopy") }

// AttachMode is how the caller attached the XDP program. This package only records it.
type AttachMode int

const (
	AttachUnknown AttachMode = iota
	Native                   // in the driver
	Generic                  // in the stack, on an skb
	Offload                  // in the device
)

func (m AttachMode) String() string { return name(int(m), "unknown", "native", "generic", "offload") }

// HugePages is whether the UMEM lies in 2 MiB pages (hugetlbfs reserves them: vm.nr_hugepages).
type HugePages int

const (
	HugeAuto    HugePages = iota // try, for a UMEM of 2 MiB or more; normal pages if there are none
	HugeNever                    // normal pages
	HugeRequire                  // an error if there are none
)

func (h HugePages) String() string { return name(int(h), "auto", "never", "require") }

// None as a ring size says: do not make this ring.
const None = -1

const (
	maxRing     = 1 << 16
	defaultRing = 2048
	// kernelBudget is TX_BATCH_SIZE in net/xdp/xsk.c: what one sendto sends in copy mode unless told otherwise.
	kernelBudget = 32
	// xdpHeadroom is XDP_PACKET_HEADROOM: what the kernel keeps free in front of each received frame, before Options.Headroom.
	xdpHeadroom = 256
)

// Options say what socket to open. Only the device is required; zero values mean the default named in each comment.
type Options struct {
	Device  string // interface name, in the network namespace of the calling thread
	Ifindex int    // or its index; if both are given they must agree
	Queue   int    // queue of the device, from 0

	Bind   BindMode   // default Auto
	Attach AttachMode // how the caller attached XDP: recorded in Mode, nothing else

	Wait           WaitMode      // what Wait does; default Spin
	BusyPoll       time.Duration // with Wait BusyPoll: SO_BUSY_POLL, whole microseconds; default 20 us
	BusyPollBudget int           // with Wait BusyPoll: frames per call, SO_BUSY_POLL_BUDGET; default 64, and more needs CAP_NET_ADMIN

	NoNeedWakeup bool // do not set XDP_USE_NEED_WAKEUP: every Kick is a system call then
	MultiBuffer  bool // XDP_USE_SG: packets in several descriptors, both ways; the XDP program must know fragments

	RxRing         int // slots, a power of two up to 65536; default 2048; None for a socket that only sends
	TxRing         int // slots, likewise; None for a socket that only receives
	FillRing       int // slots, likewise; default twice RxRing (at most 65536), so that a full RX ring is seen before an empty fill ring
	CompletionRing int // slots, likewise; default TxRing

	RxFrames int // frames to receive into, at most FillRing; default FillRing
	TxFrames int // frames to send from, at most TxRing and CompletionRing; default the smaller of them

	TxBudget int // frames per sendto in copy mode (XDP_MAX_TX_SKB_BUDGET, Linux 6.18), 32..TxRing; default 0 leaves the kernel's 32

	ChunkSize int       // bytes, 2048 or 4096; default 4096. Some drivers need 4096 for full frames in zero-copy mode (igb)
	Headroom  int       // bytes kept free in front of received frames, besides the kernel's 256; less than ChunkSize-256, in newer kernels at most ChunkSize-704
	HugePages HugePages // default HugeAuto
	Order     Order     // how TX frames are reused; default LIFO

	// UMEM to take frames from, made by NewUMEM; ChunkSize, Headroom and HugePages are its own then and must be 0 here. Nil means a UMEM for this socket alone.
	// Sockets on one UMEM have each their own frames, fill and completion ring, and must be on different queues or devices.
	UMEM *UMEM

	// Strict makes it an error, ErrDowngraded, to obtain less than was asked for by HugeAuto or TxBudget. All else that is refused is an error anyway.
	Strict bool

	// BindTimeout bounds the retries after EBUSY: the kernel gives up the queue of a closed socket only after a while, 20 ms as a rule and over 500 ms where
	// the kernel's own threads get no CPU. Default 2 s; negative means no retry.
	BindTimeout time.Duration
}

// withDefaults returns o complete and checked, or an OptionError.
func (o Options) withDefaults() (Options, error) {
	if o.Device == "" && o.Ifindex == 0 {
		return o, &OptionError{"Device", `""`, "must name an interface, or Ifindex be set"}
	}
	if o.Ifindex < 0 {
		return o, &OptionError{"Ifindex", o.Ifindex, "must be positive"}
	}
	if o.Queue < 0 {
		return o, &OptionError{"Queue", o.Queue, "must be 0 or more"}
	}
	if err := o.checkEnums(); err != nil {
		return o, err
	}
	if o.RxRing == None && o.TxRing == None {
		return o, &OptionError{"RxRing", "None", "and TxRing must not both be None"}
	}
	rings := []struct {
		field string
		size  *int
		def   int
		none  bool
	}{
		{"RxRing", &o.RxRing, defaultRing, true},
		{"TxRing", &o.TxRing, defaultRing, true},
	}
	for _, r := range rings {
		if err := ringSize(r.field, r.size, r.def, r.none); err != nil {
			return o, err
		}
	}
	// A socket that only sends has frames in its fill ring too: zero-copy drivers fill their hardware ring from it at bind, used or not.
	fill := defaultRing
	if o.RxRing != None {
		fill = min(2*o.RxRing, maxRing)
	}
	if err := ringSize("FillRing", &o.FillRing, fill, false); err != nil {
		return o, err
	}
	if err := ringSize("CompletionRing", &o.CompletionRing, max(o.TxRing, 1), false); err != nil {
		return o, err
	}
	if o.RxFrames == 0 {
		o.RxFrames = o.FillRing
	}
	if o.RxFrames < 1 || o.RxFrames > o.FillRing {
		return o, &OptionError{"RxFrames", o.RxFrames, fmt.Sprintf("must be 1..FillRing (%d)", o.FillRing)}
	}
	most := 0
	if o.TxRing != None {
		most = min(o.TxRing, o.CompletionRing)
	}
	if o.TxFrames == 0 {
		o.TxFrames = most
	}
	if o.TxFrames < 0 || o.TxFrames > most {
		return o, &OptionError{"TxFrames", o.TxFrames, fmt.Sprintf("must be 0..%d, the smaller of TxRing and CompletionRing", most)}
	}
	if o.TxBudget != 0 && (o.TxBudget < kernelBudget || o.TxBudget > o.TxRing) {
		return o, &OptionError{"TxBudget", o.TxBudget, fmt.Sprintf("must be %d..TxRing (%d)", kernelBudget, o.TxRing)}
	}
	if o.UMEM != nil {
		if o.ChunkSize != 0 || o.Headroom != 0 || o.HugePages != HugeAuto {
			return o, &OptionError{"ChunkSize", o.ChunkSize, "(with Headroom and HugePages) must be left out: UMEM has its own"}
		}
	} else {
		u, err := UMEMOptions{ChunkSize: o.ChunkSize, Headroom: o.Headroom, HugePages: o.HugePages, Frames: 1}.withDefaults()
		if err != nil {
			return o, err
		}
		o.ChunkSize = u.ChunkSize
	}
	if o.Wait == BusyPoll && o.BusyPoll == 0 {
		o.BusyPoll = 20 * time.Microsecond
	}
	if o.Wait == BusyPoll && o.BusyPollBudget == 0 {
		o.BusyPollBudget = 64
	}
	if o.BindTimeout == 0 {
		o.BindTimeout = 2 * time.Second
	}
	return o, nil
}

func (o Options) checkEnums() error {
	enums := []struct {
		field string
		value int
		last  int
	}{
		{"Bind", int(o.Bind), int(ZeroCopy)}, {"Attach", int(o.Attach), int(Offload)}, {"Wait", int(o.Wait), int(BusyPoll)}, {"Order", int(o.Order), int(FIFO)},
	}
	for _, e := range enums {
		if e.value < 0 || e.value > e.last {
			return &OptionError{e.field, e.value, "is not one of its constants"}
		}
	}
	if o.Wait != BusyPoll && (o.BusyPoll != 0 || o.BusyPollBudget != 0) {
		return &OptionError{"BusyPoll", o.BusyPoll, "and BusyPollBudget need Wait to be BusyPoll"}
	}
	if o.BusyPoll < 0 || o.BusyPoll%time.Microsecond != 0 || o.BusyPoll > time.Second {
		return &OptionError{"BusyPoll", o.BusyPoll, "must be whole microseconds, up to 1 s"}
	}
	if o.BusyPollBudget < 0 || o.BusyPollBudget > 1<<16-1 {
		return &OptionError{"BusyPollBudget", o.BusyPollBudget, "must be 1..65535"}
	}
	return nil
}

func ringSize(field string, size *int, def int, none bool) error {
	if *size == 0 {
		*size = def
	}
	if *size == None && none {
		return nil
	}
	if *size < 1 || *size > maxRing || *size&(*size-1) != 0 {
		return &OptionError{field, *size, fmt.Sprintf("must be a power of two, 1..%d", maxRing)}
	}
	return nil
}
