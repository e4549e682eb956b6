// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/dns"
	"twopath/internal/packet"
	"twopath/internal/workload"
	"twopath/kernelpath"
	"twopath/xsk"
)

// answerPart is the SUT of dns: workers that answer queries for a zone.
type answerPart struct {
	*receivePart
	answers []*workload.Answer
}

// answerer is a worker whose answers are messages of their own.
type answerer interface {
	worker
	workload.Answerer
}

func newAnswer(p agent.Prepare) (*answerPart, agent.Prepared, error) {
	if p.DNS == nil {
		return nil, agent.Prepared{}, errors.New("answer: no zone given")
	}
	zone, err := dns.ParseZone(strings.NewReader(p.DNS.Zone), p.DNS.File)
	if err != nil {
		return nil, agent.Prepared{}, err
	}
	a := &answerPart{}
	r, got, err := newReaders(p, openAnswer, func(w worker, o workload.ReceiveOptions) (loop, error) {
		answers, ok := w.(answerer)
		if !ok {
			return nil, fmt.Errorf("%s:%s cannot answer", p.Engine, p.Variant)
		}
		l, err := workload.NewAnswer(workload.AnswerOptions{ReceiveOptions: o, Answerer: answers, Handler: spoiled(zone, p.DNS.Wrong)})
		if err == nil {
			a.answers = append(a.answers, l)
		}
		return l, err
	})
	a.receivePart = r
	if err != nil {
		return a, got, err
	}
	other, _ := got.Effective["other"].(map[string]string)
	if other == nil {
		other = map[string]string{}
		got.Effective["other"] = other
	}
	sum := sha256.Sum256([]byte(p.DNS.Zone))
	other["zone"] = fmt.Sprintf("%s %d records, SHA-256 %x", zone.Origin(), zone.Records(), sum[:4])
	return a, got, nil
}

// Finish adds what was answered, by kind. Queries have no numbers of their own, so each counts as a different one.
func (a *answerPart) Finish() (agent.Received, error) {
	t, err := a.receivePart.Finish()
	if err != nil {
		return t, err
	}
	if t.Counters == nil {
		t.Counters = map[string]uint64{}
	}
	maps.Copy(t.Counters, a.set.own()) // again: what was flushed meanwhile counts as sent
	t.Unique = t.Received
	for _, l := range a.answers {
		r := l.Answered()
		t.Counters["send.sent"] += r.Answered
		t.Counters["send.failed"] += r.Failed
		t.Counters["send.silent"] += r.Silent
		for code, n := range r.Code {
			if n > 0 {
				t.Counters["answer."+dns.CodeName(code)] += n
			}
		}
	}
	return t, nil
}

// openAnswer makes the set of the arm that p names, with workers that answer.
func openAnswer(p agent.Prepare) (*set, error) {
	switch {
	case p.Engine == compare.XDP:
		return openXDPWith(p, echoTxRing, func(s *xsk.Socket, batch int, poll bool) worker {
			return &xskAnswer{xskEcho: xskEcho{xskWorker: xskWorker{s: s, descs: make([]xsk.Desc, batch), poll: poll}, tx: make([]xsk.Desc, batch)}, head: p.Flow.HeaderLen()}
		})
	case p.Engine == compare.Kernel:
		return openKernelWith(p, answerReceivers)
	}
	return nil, fmt.Errorf("no engine %q", p.Engine)
}

// answerReceivers opens the kernel's responders. epoll answers each query before it reads the next.
func answerReceivers(p agent.Prepare) ([]kernelReceiver, error) {
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
			return kernelpath.OpenEpollAnswer(kernelpath.EpollOptions{Socket: socket})
		})
	case "recvmmsg":
		return reuseport(p, func(shared bool) (kernelReceiver, error) {
			socket.ReusePort = shared
			return kernelpath.OpenRecvmmsgAnswer(kernelpath.RecvmmsgOptions{Socket: socket, Wait: wait})
		})
	}
	return nil, fmt.Errorf("no such variant")
}

// xskAnswer answers through the transmit ring of the socket it receives from.
type xskAnswer struct {
	xskEcho
	head  int // bytes of headers in front of an answer
	rooms int // frames of tx that are reserved
}

// Receive reserves a frame for each query that came, so that answers are written where they are sent from.
func (w *xskAnswer) Receive(b [][]byte) (int, error) {
	n, err := w.xskEcho.Receive(b)
	if n == 0 || err != nil {
		return n, err
	}
	var deadline time.Time
	for {
		if w.rooms += w.s.Reserve(w.tx[w.rooms:min(n, len(w.tx))]); w.rooms >= n {
			return n, nil
		}
		// In copy mode frames come back within Kick: that there are too few is rare, and the clock is not read before.
		if now := time.Now(); deadline.IsZero() {
			deadline = now.Add(replyWait)
		} else if now.After(deadline) {
			return n, nil
		}
		if err := w.s.Kick(); err != nil {
			return n, err
		}
	}
}

// Room is the part of the k-th frame that is for the message.
func (w *xskAnswer) Room(k int) []byte {
	if k >= w.rooms {
		return nil
	}
	b := w.s.Buffer(w.tx[k])
	return b[w.head : w.head+kernelpath.AnswerBytes]
}

// Answer puts headers in front of the messages and sends them.
func (w *xskAnswer) Answer(which, lengths []int) (int, error) {
	for k, i := range which {
		n := w.head + lengths[k]
		b := w.s.Buffer(w.tx[k])
		packet.Answer(b[:n], w.s.Frame(w.descs[i]))
		if n < packet.MinFrame {
			clear(b[n:packet.MinFrame])
			n = packet.MinFrame
		}
		w.tx[k].Len = uint32(n)
	}
	sent := w.s.Submit(w.tx[:len(which)])
	w.s.Cancel(w.tx[sent:w.rooms])
	w.rooms = 0
	return sent, w.s.Kick()
}

// Release gives back the queries, and the frames that no answer was sent from.
func (w *xskAnswer) Release() error {
	w.s.Cancel(w.tx[:w.rooms])
	w.rooms = 0
	return w.xskEcho.Release()
}

// spoiled makes every k-th answer wrong, in one way after the other: its last byte, its code, its question, its id.
func spoiled(h workload.Handler, every int) workload.Handler {
	if every == 0 {
		return h
	}
	return &spoiler{Handler: h, every: every}
}

type spoiler struct {
	workload.Handler
	every, answers, spoiled int
}

func (s *spoiler) Answer(dst, m []byte) (int, int) {
	n, code := s.Handler.Answer(dst, m)
	if s.answers++; n < 16 || s.answers%s.every != 0 {
		return n, code
	}
	switch s.spoiled++; s.spoiled % 4 {
	case 0:
		dst[n-1] ^= 1
	case 1:
		dst[3] ^= 5
	case 2:
		dst[13] ^= 1
	case 3:
		dst[0] ^= 0x80
	}
	return n, code
}
