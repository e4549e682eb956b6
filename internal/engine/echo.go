// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/packet"
	"twopath/internal/workload"
	"twopath/kernelpath"
	"twopath/xsk"
)

// echoPart is the SUT of udp-echo: the workers of udp-rx, each with a way to answer.
type echoPart struct {
	*receivePart
	echoes []*workload.Echo
}

// responder is a worker that can answer.
type responder interface {
	worker
	workload.Responder
}

func newEcho(p agent.Prepare) (*echoPart, agent.Prepared, error) {
	e := &echoPart{}
	r, got, err := newReaders(p, openEcho, func(w worker, o workload.ReceiveOptions) (loop, error) {
		answers, ok := w.(responder)
		if !ok {
			return nil, fmt.Errorf("%s:%s cannot answer", p.Engine, p.Variant)
		}
		l, err := workload.NewEcho(workload.EchoOptions{ReceiveOptions: o, Responder: answers})
		if err == nil {
			e.echoes = append(e.echoes, l)
		}
		return l, err
	})
	e.receivePart = r
	return e, got, err
}

// Finish adds what was answered.
func (e *echoPart) Finish() (agent.Received, error) {
	t, err := e.receivePart.Finish()
	if err != nil {
		return t, err
	}
	if t.Counters == nil {
		t.Counters = map[string]uint64{}
	}
	maps.Copy(t.Counters, e.set.own()) // again: what was flushed meanwhile counts as sent
	for _, l := range e.echoes {
		a := l.Answered()
		t.Counters["send.sent"] += a.Replied
		t.Counters["send.failed"] += a.Failed
	}
	return t, nil
}

// openEcho makes the set of the arm that p names, with workers that answer.
func openEcho(p agent.Prepare) (*set, error) {
	switch {
	case p.Engine == compare.XDP && p.Variant == "asavie":
		return openAsavieEcho(p)
	case p.Engine == compare.XDP:
		return openXDPWith(p, echoTxRing, func(s *xsk.Socket, batch int, poll bool) worker {
			return &xskEcho{xskWorker: xskWorker{s: s, descs: make([]xsk.Desc, batch), poll: poll}, tx: make([]xsk.Desc, batch)}
		})
	case p.Engine == compare.Kernel:
		return openKernelWith(p, echoReceivers)
	}
	return nil, fmt.Errorf("no engine %q", p.Engine)
}

// echoReceivers opens the kernel's responders. epoll answers each datagram before it reads the next.
func echoReceivers(p agent.Prepare) ([]kernelReceiver, error) {
	socket := kernelSocket(p)
	wait, err := kernelWait(p.Options["wait"])
	if err != nil {
		return nil, err
	}
	switch p.Variant {
	case "epoll":
		socket.Batch = 1
		return reuseport(p, func(shared bool) (kernelReceiver, error) {
			socket.ReusePort = shared
			return kernelpath.OpenEpollEcho(kernelpath.EpollOptions{Socket: socket})
		})
	case "recvmmsg":
		o := kernelpath.RecvmmsgOptions{Socket: socket, Wait: wait}
		if wait == kernelpath.WaitBusyPoll {
			o.BusyPoll = echoBusyPoll
		}
		return reuseport(p, func(shared bool) (kernelReceiver, error) {
			o.ReusePort = shared
			return kernelpath.OpenRecvmmsgEcho(o)
		})
	}
	return nil, fmt.Errorf("no such variant")
}

// echoBusyPoll is how long a responder polls the device before it sleeps: longer than the gap of 1,000 requests a second, for
// one that falls asleep between requests would only show what sleeping costs.
const echoBusyPoll = 10 * time.Millisecond

// echoTxRing is the transmit ring of a responder, and the number of its frames: in copy mode they come back within the system
// call that sends them, so a few stay in the cache.
const echoTxRing = 256

// replyWait bounds how long a responder waits for a free frame; after that its device is stuck.
const replyWait = 10 * time.Millisecond

// xskEcho answers through the transmit rings of the socket it receives from. Frames of the two directions are apart, so an
// answer is a copy.
type xskEcho struct {
	xskWorker
	tx []xsk.Desc
}

// Receive first sends what an earlier kick had to leave.
func (w *xskEcho) Receive(b [][]byte) (int, error) {
	if w.s.Pending() > 0 {
		if err := w.s.Kick(); err != nil {
			return 0, err
		}
	}
	return w.xskWorker.Receive(b)
}

// Reply turns the frames round and sends them.
func (w *xskEcho) Reply(which []int) (int, error) {
	sent := 0
	for sent < len(which) {
		n, err := w.reserve(len(which) - sent)
		if err != nil || n == 0 {
			return sent, err
		}
		for j, i := range which[sent : sent+n] {
			f := w.s.Frame(w.descs[i])
			b := w.s.Buffer(w.tx[j])
			k := copy(b, f)
			packet.Swap(b[:k])
			w.tx[j].Len = uint32(k)
		}
		if k := w.s.Submit(w.tx[:n]); k < n {
			w.s.Cancel(w.tx[k:n])
			return sent + k, w.s.Kick()
		}
		sent += n
		if err := w.s.Kick(); err != nil {
			return sent, err
		}
	}
	return sent, nil
}

// reserve gets up to n free frames into tx, and waits for one a little.
func (w *xskEcho) reserve(n int) (int, error) {
	k := w.s.Reserve(w.tx[:min(n, len(w.tx))])
	if k > 0 {
		return k, nil
	}
	for deadline := time.Now().Add(replyWait); k == 0 && time.Now().Before(deadline); {
		if err := w.s.Kick(); err != nil {
			return 0, err
		}
		k = w.s.Reserve(w.tx[:min(n, len(w.tx))])
	}
	return k, nil
}

// Queued gives the kernel a last chance to send what it holds.
func (w *xskEcho) Queued() (uint64, error) {
	if err := w.s.Flush(replyWait); err != nil && !errors.Is(err, xsk.ErrStalled) {
		return 0, err
	}
	return w.xskWorker.Queued()
}
