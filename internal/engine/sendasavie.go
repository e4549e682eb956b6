// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"github.com/asavie/xdp"
	"golang.org/x/sys/unix"

	"twopath/internal/agent"
)

// Settings for sending with asavie/xdp, the best of those tried. It looks for free frames from the first on, so many frames
// cost it time.
const (
	asavieSendRing  = 256
	asavieSendBatch = 64
)

// openAsavieSend opens the asavie/xdp library as it is. Sending needs no XDP program.
func openAsavieSend(p agent.Prepare, streams []stream) (_ *sendSet, err error) {
	s := &sendSet{frames: true, batch: asavieSendBatch}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("xdp:asavie: %w", err), s.close())
		}
	}()
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, fmt.Errorf("find device %s: %w", p.Device, err)
	}
	ring := number(p.Options["ring"])
	if ring == 0 {
		ring = asavieSendRing
	}
	var all []*asavieSender
	for q := range streams {
		// A receive ring that nobody uses: without one the library's Stats runs into a nil pointer.
		k, err := asavieSocket(ifi.Index, q, &xdp.SocketOptions{NumFrames: ring, FrameSize: asavieChunk, FillRingNumDescs: 64,
			CompletionRingNumDescs: ring, RxRingNumDescs: 64, TxRingNumDescs: ring})
		if err != nil {
			return nil, err
		}
		w := &asavieSender{s: k, frames: ring}
		s.senders = append(s.senders, w)
		all = append(all, w)
	}
	s.counters = func() (map[string]uint64, error) {
		c := map[string]uint64{}
		for _, w := range all {
			st, err := w.s.Stats()
			if err != nil {
				return nil, err
			}
			c["xsk.tx_invalid_descs"] += st.KernelStats.Tx_invalid_descs
			c["xsk.tx_ring_empty_descs"] += st.KernelStats.Tx_ring_empty_descs
		}
		return c, nil
	}
	s.own = func() map[string]uint64 {
		c := map[string]uint64{}
		for _, w := range all {
			c["xsk.tx_submitted"] += w.submitted
			c["xsk.tx_completed"] += w.completed
			c["xsk.tx_kicks"] += w.kicks
		}
		return c
	}
	s.effective = map[string]any{"attach": "none", "bind": "copy", "batch": s.batch, "ring": ring, "sockets": len(streams)}
	return s, nil
}

// asavieSocket tries again while the kernel has not yet given up the queue of the socket before, as xsk.Open does.
func asavieSocket(ifindex, queue int, o *xdp.SocketOptions) (*xdp.Socket, error) {
	for deadline := time.Now().Add(2 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		k, err := xdp.NewSocket(ifindex, queue, o)
		// The library keeps no errno in its errors, only its text.
		if err == nil || !strings.Contains(err.Error(), unix.EBUSY.Error()) || time.Now().After(deadline) {
			return k, err
		}
	}
}

// asavieSender uses the library's own calls: descriptors that are free, Transmit, which makes a system call each time, and
// Complete.
type asavieSender struct {
	s                           *xdp.Socket
	descs                       []xdp.Desc
	frames                      int
	submitted, completed, kicks uint64
}

// Buffers are all frames of the socket.
func (w *asavieSender) Buffers() [][]byte {
	var out [][]byte
	for _, d := range w.s.GetDescs(w.frames) {
		out = append(out, w.s.GetFrame(d))
	}
	return out
}

func (w *asavieSender) complete() {
	if n := w.s.NumCompleted(); n > 0 {
		w.s.Complete(n)
		w.completed += uint64(n)
	}
}

func (w *asavieSender) Reserve(b [][]byte) (int, error) {
	w.complete()
	w.descs = w.s.GetDescs(min(len(b), w.s.NumFreeTxSlots()))
	if len(w.descs) == 0 {
		_, err := w.transmit(nil)
		return 0, err
	}
	for i, d := range w.descs {
		b[i] = w.s.GetFrame(d)
	}
	return len(w.descs), nil
}

func (w *asavieSender) Submit(b [][]byte, _ int) (int, error) {
	n := min(len(b), len(w.descs))
	for i, p := range b[:n] {
		w.descs[i].Len = uint32(len(p))
	}
	return w.transmit(w.descs[:n])
}

// transmit turns the library's panic on an errno it does not know, such as that of a link that is down, into an error.
func (w *asavieSender) transmit(descs []xdp.Desc) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("%w: asavie/xdp panics: %v", errWayGone, r)
		}
	}()
	w.kicks++
	n = w.s.Transmit(descs)
	w.submitted += uint64(n)
	return n, nil
}

func (w *asavieSender) Flush(timeout time.Duration) error {
	for deadline := time.Now().Add(timeout); w.completed < w.submitted; {
		if _, err := w.transmit(nil); err != nil {
			return fmt.Errorf("flush: %w", err)
		}
		w.complete()
		if w.completed < w.submitted && !time.Now().Before(deadline) {
			return fmt.Errorf("flush: %d frames not completed after %v", w.submitted-w.completed, timeout)
		}
	}
	return nil
}

func (w *asavieSender) Close() error { return w.s.Close() }
