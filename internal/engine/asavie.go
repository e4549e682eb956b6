// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"

	"github.com/asavie/xdp"

	"twopath/bpf"
	"twopath/internal/agent"
)

// Settings for asavie/xdp: its defaults are 64-entry rings, which no one who measures would leave.
const (
	asavieRing  = 4096
	asavieChunk = 2048
	asavieBatch = 1024 // a Poll is a system call, so all that it found is taken
)

// openAsavie opens the asavie/xdp library as it is: its sockets, its rings, its XDP program, which redirects every frame
// of a queue. Only the program's attachment is ours: the library removes any program it finds on the device and leaves its
// own there after a crash, and neither may happen to a user's machine.
func openAsavie(p agent.Prepare) (*set, error) {
	return openAsavieWith(p, 64, func(w *asavieWorker) worker { return w })
}

// openAsavieWith opens it with a transmit ring of txRing descriptors, and makes of each receiving worker what workerOf says.
func openAsavieWith(p agent.Prepare, txRing int, workerOf func(*asavieWorker) worker) (_ *set, err error) {
	poll := p.Options["wait"] != "spin"
	s := &set{frames: true, spins: !poll, batch: asavieBatch}
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
		ring = asavieRing
	}
	queues := max(p.Queues, 1)
	prog, err := xdp.NewProgram(queues)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, prog.Close)
	link, err := bpf.Attach(prog.Program, ifi.Index, bpf.Native)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, link.Close)
	var socks []*xdp.Socket
	for q := range queues {
		k, err := xdp.NewSocket(ifi.Index, q, &xdp.SocketOptions{NumFrames: ring, FrameSize: asavieChunk, FillRingNumDescs: ring,
			CompletionRingNumDescs: txRing, RxRingNumDescs: ring, TxRingNumDescs: txRing})
		if err != nil {
			return nil, err
		}
		socks = append(socks, k)
		s.undo = append([]func() error{k.Close}, s.undo...)
		if err := prog.Register(q, k.FD()); err != nil {
			return nil, err
		}
		k.Fill(k.GetDescs(ring))
		s.workers = append(s.workers, workerOf(&asavieWorker{s: k, poll: poll}))
	}
	s.counters = func() (map[string]uint64, error) {
		c := map[string]uint64{}
		for _, k := range socks {
			st, err := k.Stats()
			if err != nil {
				return nil, err
			}
			c["xsk.rx_dropped"] += st.KernelStats.Rx_dropped
			c["xsk.rx_ring_full"] += st.KernelStats.Rx_ring_full
			c["xsk.rx_fill_ring_empty_descs"] += st.KernelStats.Rx_fill_ring_empty_descs
			c["xsk.rx_invalid_descs"] += st.KernelStats.Rx_invalid_descs
			c["xsk.tx_invalid_descs"] += st.KernelStats.Tx_invalid_descs
		}
		return c, nil
	}
	s.own = func() map[string]uint64 { return nil }
	s.effective = map[string]any{"attach": "native", "bind": "copy", "wait": map[bool]string{true: "poll", false: "spin"}[poll], "batch": s.batch, "ring": ring, "csum": "verified", "sockets": queues}
	if p.Options["csum"] == "off" {
		s.effective["csum"] = "off"
	}
	return s, nil
}

// asavieWorker uses the library as its documentation and examples do: fill the ring with free descriptors, Poll, Receive.
// With wait=spin it does what the interface allows beyond that: it looks at the ring without a system call and gives back
// the descriptors it got rather than searching for free ones.
type asavieWorker struct {
	s     *xdp.Socket
	descs []xdp.Desc
	poll  bool
}

// asavieWait bounds one Poll in ms, so that the end of a trial is seen.
const asavieWait = 10

func (w *asavieWorker) Receive(b [][]byte) (int, error) {
	n := 0
	if w.poll {
		if free := w.s.NumFreeFillSlots(); free > 0 {
			w.s.Fill(w.s.GetDescs(free))
		}
		var err error
		if n, _, err = w.s.Poll(asavieWait); err != nil {
			return 0, err
		}
	} else {
		n = w.s.NumReceived()
	}
	if n = min(n, len(b)); n == 0 {
		return 0, nil
	}
	w.descs = w.s.Receive(n)
	for i, d := range w.descs {
		b[i] = w.s.GetFrame(d)
	}
	return len(w.descs), nil
}

func (w *asavieWorker) Release() error {
	if w.poll {
		return nil // the next Receive fills the ring
	}
	if n := w.s.Fill(w.descs); n != len(w.descs) {
		return fmt.Errorf("xdp:asavie: the fill ring took %d of %d frames", n, len(w.descs))
	}
	return nil
}

func (w *asavieWorker) Queued() (uint64, error) { return uint64(w.s.NumReceived()), nil }
func (w *asavieWorker) Wake() error             { return nil }
func (w *asavieWorker) Close() error            { return nil }
