// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/netstack/tcp"
	"twopath/xsk"
)

// tcpBatch is how many frames one turn takes, and how many buffers are borrowed from the transmit side at a time.
const tcpBatch = 64

// xskTCP is one worker of the xdp engine's TCP: a socket and the stack on it.
type xskTCP struct {
	s    *xsk.Socket
	l    *tcp.Load
	poll bool
	rx   []xsk.Desc
	tx   []xsk.Desc // borrowed; those before sent are written
	n    int        // borrowed
	at   int        // lent next
	sent int        // submitted
	held []tcp.Kind // what each transmit frame holds, by chunk
	bits uint
	tick int64
	err  error // of a kick
}

// Buffer lends a transmit frame. With none free it pushes out what is written and asks once more.
func (w *xskTCP) Buffer(k tcp.Kind) ([]byte, tcp.Kind) {
	if w.at == w.n {
		w.flush()
		w.n = w.s.Reserve(w.tx)
		w.at, w.sent = 0, 0
		if w.n == 0 {
			return nil, tcp.NoKind
		}
	}
	d := w.tx[w.at]
	slot := &w.held[d.Addr>>w.bits]
	held := *slot
	*slot = k
	return w.s.Buffer(d), held
}

func (w *xskTCP) Send(n int) {
	w.tx[w.at].Len = uint32(n)
	w.at++
}

// flush gives what is written to the kernel.
func (w *xskTCP) flush() {
	for w.sent < w.at {
		n := w.s.Submit(w.tx[w.sent:w.at])
		w.sent += n
		if err := w.s.Kick(); err != nil {
			w.err = err
			return
		}
		if n == 0 {
			w.s.Complete()
		}
	}
}

// work is one turn: what has come, what the clock asks for, and out with the answers.
func (w *xskTCP) work(now int64, idle bool) error {
	n := w.s.Receive(w.rx)
	if n == 0 && idle && w.poll {
		if _, err := w.s.Wait(time.Millisecond); err != nil {
			return err
		}
		n = w.s.Receive(w.rx)
		now = measure.Monotonic()
	}
	for _, d := range w.rx[:n] {
		w.l.Input(w.s.Frame(d), now)
	}
	w.s.Release(w.rx[:n])
	if now-w.tick >= int64(time.Millisecond) {
		w.l.Tick(now)
		w.tick = now
	}
	if w.sent < w.at {
		w.flush()
	}
	return w.err
}

func (w *xskTCP) Serve(now int64) error           { return w.work(now, true) }
func (w *xskTCP) Turn(now int64, idle bool) error { return w.work(now, idle) }
func (w *xskTCP) Open(intended, now int64) bool   { return w.l.Open(intended, now) }
func (w *xskTCP) Opened() uint64                  { return w.l.Counted().Opened }
func (w *xskTCP) Over() uint64                    { n := w.l.Counted(); return n.Completed + n.Errors() }
func (w *xskTCP) Wake() error                     { return w.s.Wake() }
func (w *xskTCP) Close() error                    { return w.l.Close() } // the socket is xsk.Queues' to close
func (w *xskTCP) connected() agent.Connected {
	n := w.l.Counters()
	tx, rx := w.s.TxCounters(), w.s.RxCounters()
	return agent.Connected{Opened: n.Opened, Established: n.Established, Completed: n.Completed, Open: n.Open, Skipped: n.Skipped,
		Requests: n.Requests, Responses: n.Responses, BytesIn: n.BytesIn, BytesOut: n.BytesOut,
		Errors: map[string]uint64{"refused": n.Refused, "reset": n.Reset, "timed_out": n.TimedOut, "response_timeout": n.ResponseTimeout,
			"idle": n.Idle, "bad_response": n.BadResponse, "early_close": n.EarlyClose},
		Counters: map[string]uint64{"tcp.rx": n.Rx, "tcp.tx": n.Tx, "tcp.bad": n.Bad, "tcp.tx_full": n.TxFull, "tcp.syn_again": n.SYNAgain,
			"tcp.data_again": n.DataAgain, "tcp.fin_again": n.FINAgain, "tcp.fast_retransmits": n.FastRetransmits, "tcp.dropped": n.Dropped,
			"tcp.resets_sent": n.ResetsSent, "tcp.challenges": n.Challenges,
			"xsk.kicks": tx.Kicks, "xsk.eagain": tx.EAGAIN, "xsk.ebusy": tx.EBUSY, "xsk.batches": rx.Batches, "xsk.empty_polls": rx.EmptyPolls}}
}

// openXDPTCP opens sockets, steering program and stacks for one end of a connection test.
func openXDPTCP(p agent.Prepare, role tcp.Role, n int) (_ *tcpSet, err error) {
	s := &tcpSet{}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
		}
	}()
	if n > 1 {
		return nil, errors.New("one worker only: connections of several queues have no home yet")
	}
	c := p.Connect
	o, err := xskOptions(p)
	if err != nil {
		return nil, err
	}
	o.TxRing, o.TxBudget = 4096, 4096
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, fmt.Errorf("find device %s: %w", p.Device, err)
	}
	local, localPort, localPorts, remotePort, remotePorts := p.Flow.Dst, c.ServerPort, c.ServerPorts, c.ClientPort, c.ClientPorts
	link := tcp.Link{Src: p.Flow.DstMAC, Dst: p.Flow.SrcMAC}
	if role == tcp.Client {
		local, localPort, localPorts, remotePort, remotePorts = p.Flow.Src, remotePort, remotePorts, localPort, localPorts
		link.Src, link.Dst = link.Dst, link.Src
	}
	steer, err := bpf.NewSteer(bpf.SteerOptions{Addresses: []netip.Addr{local}, LocalPort: localPort, LocalPorts: localPorts, RemotePort: remotePort,
		RemotePorts: remotePorts, Queues: max(p.Queues, 1)})
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, steer.Close)
	at, err := bpf.Attach(steer.Program(), ifi.Index, attachMode(p))
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, at.Close)
	queues, err := xsk.OpenQueues(o, 0)
	if err != nil {
		return nil, err
	}
	s.undo = append([]func() error{queues.Close}, s.undo...)
	k := queues.Sockets[0]
	if err := steer.SetSocket(0, k.FD()); err != nil {
		return nil, err
	}
	got := k.Mode().Obtained
	request, response := messages(c.Body, c.Keep)
	w := &xskTCP{s: k, poll: got.Wait == xsk.Poll, rx: make([]xsk.Desc, tcpBatch), tx: make([]xsk.Desc, tcpBatch)}
	for w.bits = 0; 1<<w.bits < got.ChunkSize; w.bits++ {
	}
	w.held = make([]tcp.Kind, got.RxFrames+got.TxFrames+1)
	w.l, err = tcp.NewLoad(tcp.LoadOptions{Role: role, Output: w, Link: link, HTTP: true, Keep: c.Keep, Requests: c.Requests, Request: request, Response: response,
		Seed: uint64(p.Run), NoVerify: c.Partial || p.Options["csum"] == "off",
		Tuples: tcp.Tuples{Clients: []netip.Addr{p.Flow.Src}, ClientPorts: tcp.PortRange{First: c.ClientPort, Count: c.ClientPorts},
			Servers: []netip.Addr{p.Flow.Dst}, ServerPorts: tcp.PortRange{First: c.ServerPort, Count: c.ServerPorts}}})
	if err != nil {
		return nil, err
	}
	s.workers = []tcpWorker{w}
	mode := k.Mode()
	s.effective = xdpEffective(p, mode, at.Mode().String(), tcpBatch)
	s.notes = mode.Downgrades()
	s.counters = func() (map[string]uint64, error) {
		out, err := steer.Counters()
		if err != nil {
			return nil, err
		}
		m := map[string]uint64{}
		for name, v := range out {
			m["steer."+name] = v
		}
		st, err := k.Stats()
		if err != nil {
			return nil, err
		}
		m["xsk.rx_dropped"], m["xsk.rx_ring_full"] = st.RxDropped, st.RxRingFull
		m["xsk.rx_fill_ring_empty_descs"], m["xsk.tx_invalid_descs"] = st.RxFillRingEmptyDescs, st.TxInvalidDescs
		return m, nil
	}
	return s, nil
}

func attachMode(p agent.Prepare) bpf.Mode {
	if p.Variant == "generic" {
		return bpf.Generic
	}
	return bpf.Native
}
