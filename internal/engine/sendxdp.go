// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"
	"time"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/xsk"
)

// Defaults of an AF_XDP sender. In copy mode a frame is out from the system call that sends it until the other end has
// taken it. So a short ring keeps all frames in the cache; and on a veth, whose ring of 256 looks full while up to 16 of its
// entries are read but not cleared, as many frames as sendFrames never overflow it: the sender waits instead of dropping.
const (
	sendRing   = 256
	sendFrames = 224
	nicRing    = 2048 // where a device's own ring is to be kept full
	sendBatch  = 128
	cacheLine  = 64
	tinyFill   = 64 // a socket that only sends needs no fill ring in copy mode
	sendOffset = 15 // cache lines by which frames are moved against each other
)

// openXDPSend opens an AF_XDP arm for udp-tx: a socket on each of the first queues, which receives nothing.
func openXDPSend(p agent.Prepare, streams []stream) (_ *sendSet, err error) {
	s := &sendSet{frames: true, batch: sendBatch}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
		}
	}()
	if b := number(p.Options["batch"]); b > 0 {
		s.batch = b
	}
	driver, err := driverOf(p.Device)
	if err != nil {
		return nil, err
	}
	attach, err := s.readyToSend(p, driver)
	if err != nil {
		return nil, err
	}
	longest := 0
	for _, st := range streams {
		longest = max(longest, st.template.Longest())
	}
	o, err := sendOptions(p, driver, s.batch, longest)
	if err != nil {
		return nil, err
	}
	var socks []*xsk.Socket
	for q := range streams {
		o.Queue = q
		k, err := xsk.Open(o)
		if err != nil {
			return nil, err
		}
		s.undo = append(s.undo, k.Close)
		socks = append(socks, k)
		w := newXSKSender(k, s.batch, longest)
		if w.faults = p.Generate.Faults; w.faults != (agent.Faults{}) {
			w.stray = 0 // so that a frame too long for the device still fits its chunk
		}
		s.senders = append(s.senders, w)
	}
	s.counters = func() (map[string]uint64, error) {
		c := map[string]uint64{}
		for _, k := range socks {
			st, err := k.Stats()
			if err != nil {
				return nil, err
			}
			c["xsk.tx_invalid_descs"] += st.TxInvalidDescs
			c["xsk.tx_ring_empty_descs"] += st.TxRingEmptyDescs
		}
		return c, nil
	}
	s.own = func() map[string]uint64 { return sendOwn(socks) }
	m := socks[0].Mode()
	s.effective = map[string]any{"attach": attach, "bind": m.Obtained.Bind.String(), "batch": s.batch, "ring": m.Obtained.TxRing,
		"sockets": len(socks), "other": map[string]string{"tx_budget": fmt.Sprint(m.Obtained.TxBudget), "chunk_bytes": fmt.Sprint(m.Obtained.ChunkSize),
			"need_wakeup": fmt.Sprint(m.Obtained.NeedWakeup), "completion_ring": fmt.Sprint(m.Obtained.CompletionRing)}}
	s.notes = append(s.notes, m.Downgrades()...)
	return s, nil
}

func sendOptions(p agent.Prepare, driver string, batch, longest int) (xsk.Options, error) {
	ring, frames := number(p.Options["ring"]), 0
	switch {
	case ring > 0:
	case driver == "veth":
		ring, frames = sendRing, max(sendFrames, min(batch, sendRing))
	default:
		ring = nicRing
	}
	for ring < batch {
		ring *= 2
	}
	// Not Strict: what is asked for by name is refused by Open anyway, and a kernel without a larger budget sends as well.
	o := xsk.Options{Device: p.Device, RxRing: xsk.None, TxRing: min(ring, 1<<16), TxBudget: max(batch, 32), ChunkSize: 2048}
	o.TxBudget = min(o.TxBudget, o.TxRing)
	if o.TxBudget < 32 {
		o.TxBudget = 0
	}
	if driver == "veth" {
		o.FillRing = tinyFill
	}
	o.TxFrames = frames
	if longest > 2048 || p.Variant == "zerocopy" {
		o.ChunkSize = 4096
	}
	switch p.Variant {
	case "auto":
	case "zerocopy":
		o.Bind = xsk.ZeroCopy
	case "copy", "generic":
		o.Bind = xsk.Copy
	default:
		return o, errors.New("no such variant")
	}
	return o, nil
}

// readyToSend attaches a program that passes all frames where sending needs one: some drivers of NICs make the queues for
// zero-copy sending only then (igb), and generic XDP is a program or nothing. It tells how.
func (s *sendSet) readyToSend(p agent.Prepare, driver string) (string, error) {
	mode := bpf.Native
	switch {
	case p.Variant == "generic":
		mode = bpf.Generic
	case driver == "veth" || p.Variant == "copy":
		return "none", nil
	}
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return "", fmt.Errorf("find device %s: %w", p.Device, err)
	}
	pass, err := bpf.NewPass(false)
	if err != nil {
		return "", err
	}
	link, err := bpf.Attach(pass.Program(), ifi.Index, mode)
	var unsupported *bpf.NativeUnsupportedError
	if errors.As(err, &unsupported) && p.Variant == "auto" && !p.Strict {
		s.notes = append(s.notes, "no XDP program is attached: the driver has no native XDP, and sending in copy mode needs none")
		return "none", pass.Close()
	}
	if err != nil {
		return "", errors.Join(err, pass.Close())
	}
	s.undo = append(s.undo, pass.Close, link.Close)
	return mode.String(), nil
}

func sendOwn(socks []*xsk.Socket) map[string]uint64 {
	c := map[string]uint64{}
	for _, s := range socks {
		n := s.TxCounters()
		c["xsk.tx_submitted"] += n.Submitted
		c["xsk.tx_completed"] += n.Completed
		c["xsk.tx_foreign"] += n.Foreign
		c["xsk.tx_kicks"] += n.Kicks
		c["xsk.tx_kicks_spared"] += n.KicksSpared
		c["xsk.tx_eagain"] += n.EAGAIN
		c["xsk.tx_ebusy"] += n.EBUSY
		c["xsk.tx_enobufs"] += n.ENOBUFS
		c["xsk.tx_failed"] += n.Failed
	}
	return c
}

// xskSender fits a socket to the loop.
type xskSender struct {
	s      *xsk.Socket
	descs  []xsk.Desc
	lent   int
	least  int // frames of a batch that make a system call worth its while
	faults agent.Faults
	count  uint32 // frames submitted, for the faults
	pause  int    // turns to let pass before the completion ring is looked at again
	stray  uint64 // mask of the bytes by which a frame is moved from the start of its chunk
}

func newXSKSender(s *xsk.Socket, batch, longest int) *xskSender {
	w := &xskSender{s: s, descs: make([]xsk.Desc, batch), least: max(batch/2, 1)}
	// Chunks are a power of two apart, so that the first lines of all frames would share a few sets of the first-level
	// cache. Where there is room, neighbours are moved against each other by a line.
	if sendOffset*cacheLine+longest <= s.Mode().Obtained.ChunkSize {
		w.stray = sendOffset * cacheLine
	}
	return w
}

// place moves a descriptor into its chunk, by the chunk's number.
func (w *xskSender) place(d xsk.Desc) xsk.Desc {
	d.Addr += d.Addr >> 11 * cacheLine & w.stray
	return d
}

// Buffers borrows every frame once and gives it back.
func (w *xskSender) Buffers() [][]byte {
	all := make([]xsk.Desc, w.s.Mode().Obtained.TxFrames)
	n := w.s.Reserve(all)
	var out [][]byte
	for _, d := range all[:n] {
		out = append(out, w.s.Buffer(w.place(d)))
	}
	w.s.Cancel(all[:n])
	return out
}

// pauseTurns is how many turns pass, about a microsecond, after the completion ring had too little: each look at it takes
// its cache line away from the core that writes it, which is the one that is waited for.
const pauseTurns = 40

// Reserve lends frames: as many as are asked for, or half a batch at least, for in copy mode every Submit is a system call.
// When there are fewer it kicks, for what is left on the ring keeps them.
func (w *xskSender) Reserve(b [][]byte) (int, error) {
	if w.pause > 0 {
		w.pause--
		return 0, nil
	}
	n := w.s.Reserve(w.descs[:min(len(b), len(w.descs))])
	if n < min(len(b), w.least) {
		w.s.Cancel(w.descs[:n])
		w.lent, w.pause = 0, pauseTurns
		return 0, w.s.Kick()
	}
	w.lent = n
	for i := range w.descs[:n] {
		w.descs[i] = w.place(w.descs[i])
		b[i] = w.s.Buffer(w.descs[i])
	}
	return n, nil
}

// Submit puts frames on the ring and has the kernel send. What it returns is the kernel's, sent or still on the ring.
func (w *xskSender) Submit(b [][]byte, _ int) (int, error) {
	n := min(len(b), w.lent)
	for i, p := range b[:n] {
		w.descs[i].Len = uint32(len(p))
	}
	if w.faults != (agent.Faults{}) {
		w.err(w.descs[:n])
	}
	took := w.s.Submit(w.descs[:n])
	w.s.Cancel(w.descs[took:w.lent])
	w.lent = 0
	return took, w.s.Kick()
}

// tooLong is a frame no device with an MTU of 1500 takes, within a chunk.
const tooLong = 1600

// err makes the mistakes that the load asks for.
func (w *xskSender) err(descs []xsk.Desc) {
	for i := range descs {
		w.count++
		switch f := w.faults; {
		case f.BadDescriptor > 0 && w.count%f.BadDescriptor == 0:
			descs[i].Len = 0
		case f.TooLong > 0 && w.count%f.TooLong == 0:
			descs[i].Len = tooLong
		}
	}
}

func (w *xskSender) Flush(timeout time.Duration) error { return w.s.Flush(timeout) }

// Close is left to the set, which owns the sockets.
func (w *xskSender) Close() error { return nil }
