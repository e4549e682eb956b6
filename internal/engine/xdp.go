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

// Ring sizes: a ring of n rides out a reader's absence of n / rate, for 8192 frames 5.5 ms at gigabit line rate with 64-byte
// frames; but the frames of a larger ring cycle through more cache, and each costs more. Pilot trials weigh the two.
const (
	defaultRing = 8192
	xdpBatch    = 64
)

// pollWait bounds one sleep of a wait=poll reader, so that Stop is seen.
const pollWait = 10 * time.Millisecond

// openXDP opens an AF_XDP arm for udp-rx: a socket on every receive queue, and the redirect program on the device.
func openXDP(p agent.Prepare) (*set, error) {
	return openXDPWith(p, xsk.None, func(s *xsk.Socket, batch int, poll bool) worker {
		return &xskWorker{s: s, descs: make([]xsk.Desc, batch), poll: poll}
	})
}

// openXDPWith opens an AF_XDP arm with a transmit ring of txRing descriptors, or none, and workers made by workerOf.
func openXDPWith(p agent.Prepare, txRing int, workerOf func(s *xsk.Socket, batch int, poll bool) worker) (_ *set, err error) {
	s := &set{frames: true, batch: xdpBatch}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
		}
	}()
	if b := number(p.Options["batch"]); b > 0 {
		s.batch = b
	}
	opts, err := xskOptions(p)
	if err != nil {
		return nil, err
	}
	opts.TxRing = txRing
	s.spins = opts.Wait != xsk.Poll

	redirect, link, err := attachRedirect(p)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, redirect.Close, link.Close)
	opts.Attach = map[string]xsk.AttachMode{"native": xsk.Native, "generic": xsk.Generic}[link.Mode().String()]

	queues := make([]int, max(p.Queues, 1))
	for q := range queues {
		queues[q] = q
	}
	socks, err := xsk.OpenQueues(opts, queues...)
	if err != nil {
		return nil, err
	}
	// Sockets are closed through Queues, the UMEM last; the link goes before them (undo runs last to first), so that no
	// frame is redirected into a socket that is going away.
	s.undo = append([]func() error{socks.Close}, s.undo...)
	for q, k := range socks.Sockets {
		if err := redirect.SetSocket(q, k.FD()); err != nil {
			return nil, err
		}
		s.workers = append(s.workers, workerOf(k, s.batch, opts.Wait == xsk.Poll))
	}
	s.counters = func() (map[string]uint64, error) { return xdpCounters(redirect, socks) }
	s.own = func() map[string]uint64 { return xskOwn(socks) }
	mode := socks.Sockets[0].Mode()
	s.effective = xdpEffective(p, mode, link.Mode().String(), s.batch)
	if p.Variant != "generic" && link.Mode() == bpf.Generic {
		s.notes = append(s.notes, "XDP is attached in generic mode: the driver has no native XDP")
	}
	if mode.Obtained.Wait == xsk.BusyPoll && mode.Obtained.Bind == xsk.Copy {
		s.notes = append(s.notes, "busy polling: newer kernels give a NAPI to poll to zero-copy sockets only, and a copy-mode socket then only makes system calls")
	}
	s.notes = append(s.notes, mode.Downgrades()...)
	return s, nil
}

func xskOptions(p agent.Prepare) (xsk.Options, error) {
	ring := number(p.Options["ring"])
	if ring == 0 {
		ring = defaultRing
	}
	o := xsk.Options{Device: p.Device, RxRing: min(ring, 1<<16), TxRing: xsk.None, Strict: p.Strict, ChunkSize: 2048}
	// A frame lies behind 256 B of headroom; 2 KiB chunks keep twice as many frames in the cache. Zero-copy wants 4 KiB:
	// some drivers cut frames over 1 KiB in smaller chunks (igb).
	if p.MaxSize > 2048-256 || p.Variant == "zerocopy" {
		o.ChunkSize = 4096
	}
	switch p.Variant {
	case "auto":
	case "zerocopy":
		o.Bind = xsk.ZeroCopy
	case "copy", "generic":
		o.Bind = xsk.Copy
	default:
		return o, fmt.Errorf("no such variant")
	}
	switch w := p.Options["wait"]; w {
	case "", "spin":
		o.Wait = xsk.Spin
	case "poll":
		o.Wait = xsk.Poll
	case "busypoll":
		o.Wait = xsk.BusyPoll
	default:
		return o, fmt.Errorf("wait: no policy %q", w)
	}
	return o, nil
}

// attachRedirect attaches natively, or generically when the arm says so; auto falls back to generic unless strict.
func attachRedirect(p agent.Prepare) (*bpf.Redirect, *bpf.Link, error) {
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, nil, fmt.Errorf("find device %s: %w", p.Device, err)
	}
	r, err := bpf.NewRedirect(bpf.RedirectOptions{Match: match(p), Queues: max(p.Queues, 1), Fragments: p.Fragments != nil})
	if err != nil {
		return nil, nil, err
	}
	mode := bpf.Native
	if p.Variant == "generic" {
		mode = bpf.Generic
	}
	link, err := bpf.Attach(r.Program(), ifi.Index, mode)
	var unsupported *bpf.NativeUnsupportedError
	if errors.As(err, &unsupported) && p.Variant == "auto" && !p.Strict {
		link, err = bpf.Attach(r.Program(), ifi.Index, bpf.Generic)
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, link, nil
}

// match is what the run's frames have in common. Queries carry no stamp, and come from whatever port their program has.
func match(p agent.Prepare) bpf.FlowMatch {
	if p.DNS != nil {
		return bpf.FlowMatch{Src: p.Flow.Src, Dst: p.Flow.Dst, DstPort: p.Flow.DstPort, AnyRun: true}
	}
	return bpf.FlowMatch{Src: p.Flow.Src, Dst: p.Flow.Dst, DstPort: p.Flow.DstPort, SrcPort: p.Flow.SrcPort, SrcPorts: max(p.Flow.Flows, 1), RunID: p.Run}
}

func xdpCounters(r *bpf.Redirect, q *xsk.Queues) (map[string]uint64, error) {
	c := map[string]uint64{}
	reasons, perQueue, err := r.Counters()
	if err != nil {
		return nil, err
	}
	for k, v := range reasons {
		c["redirect."+k] = v
	}
	var other uint64 // on queues that nobody reads
	for i, v := range perQueue {
		if v > 0 {
			c[fmt.Sprintf("redirect.queue_%d", i)] = v
		}
		if i >= len(q.Sockets) {
			other += v
		}
	}
	c["redirect.other_queue"] = other
	for _, s := range q.Sockets {
		st, err := s.Stats()
		if err != nil {
			return nil, err
		}
		c["xsk.rx_dropped"] += st.RxDropped
		c["xsk.rx_invalid_descs"] += st.RxInvalidDescs
		c["xsk.tx_invalid_descs"] += st.TxInvalidDescs
		c["xsk.rx_ring_full"] += st.RxRingFull
		c["xsk.rx_fill_ring_empty_descs"] += st.RxFillRingEmptyDescs
		c["xsk.tx_ring_empty_descs"] += st.TxRingEmptyDescs
	}
	return c, nil
}

func xskOwn(q *xsk.Queues) map[string]uint64 {
	c := map[string]uint64{}
	for _, s := range q.Sockets {
		n := s.RxCounters()
		c["xsk.batches"] += n.Batches
		c["xsk.empty_polls"] += n.EmptyPolls
		c["xsk.kicks"] += n.Kicks
		c["xsk.kick_errors"] += n.KickErrors
		c["xsk.waits"] += n.Waits
		c["xsk.wakeups"] += n.Wakeups
		c["xsk.timeouts"] += n.Timeouts
		c["xsk.eintr"] += n.EINTR
		if t := s.TxCounters(); t.Submitted > 0 {
			c["xsk.tx_submitted"] += t.Submitted
			c["xsk.tx_completed"] += t.Completed
			c["xsk.tx_kicks"] += t.Kicks
			c["xsk.tx_short"] += t.Short
			c["xsk.tx_eagain"] += t.EAGAIN
			c["xsk.tx_ebusy"] += t.EBUSY
			c["xsk.tx_enobufs"] += t.ENOBUFS
			c["xsk.tx_unsent"] += uint64(s.Pending())
		}
	}
	return c
}

func xdpEffective(p agent.Prepare, m xsk.Mode, attach string, batch int) map[string]any {
	o := m.Obtained
	csum := "verified"
	if p.Options["csum"] == "off" {
		csum = "off"
	}
	e := map[string]any{"attach": attach, "bind": o.Bind.String(), "wait": o.Wait.String(), "batch": batch, "ring": o.RxRing, "csum": csum,
		"sockets": max(p.Queues, 1)}
	other := map[string]string{"fill_ring": fmt.Sprint(o.FillRing), "chunk_bytes": fmt.Sprint(o.ChunkSize), "need_wakeup": fmt.Sprint(o.NeedWakeup), "huge_pages": o.HugePages.String()}
	if o.BusyPoll > 0 {
		other["busy_poll_us"] = fmt.Sprint(o.BusyPoll.Microseconds())
		other["busy_poll_budget"] = fmt.Sprint(o.BusyPollBudget)
	}
	e["other"] = other
	return e
}

// xskWorker fits a socket to the loop.
type xskWorker struct {
	s     *xsk.Socket
	descs []xsk.Desc
	n     int
	poll  bool
}

// Receive lends frames. A spinning worker returns at once when there are none.
func (w *xskWorker) Receive(b [][]byte) (int, error) {
	n := w.s.Receive(w.descs[:min(len(b), len(w.descs))])
	if n == 0 {
		if !w.poll {
			return 0, nil
		}
		if _, err := w.s.Wait(pollWait); err != nil {
			return 0, err
		}
		if n = w.s.Receive(w.descs[:min(len(b), len(w.descs))]); n == 0 {
			return 0, nil
		}
	}
	w.n = n
	for i, d := range w.descs[:n] {
		b[i] = w.s.Frame(d)
	}
	return n, nil
}

// Release gives the frames back to the fill ring.
func (w *xskWorker) Release() error {
	w.s.Release(w.descs[:w.n])
	w.n = 0
	return nil
}

// Calls are the returns of poll, and the calls that woke the kernel up to fill frames: a ring takes none to read.
func (w *xskWorker) Calls() (waits, reads uint64) {
	n := w.s.RxCounters()
	return n.Waits, n.Kicks
}

func (w *xskWorker) Queued() (uint64, error) { return uint64(w.s.Queued()), nil }
func (w *xskWorker) Wake() error             { return w.s.Wake() }

// Close is left to xsk.Queues, which owns the sockets and their memory.
func (w *xskWorker) Close() error { return nil }
