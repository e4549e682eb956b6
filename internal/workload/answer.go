// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"

	"twopath/internal/packet"
)

// Answerer is what an engine offers a worker whose answers are messages of their own.
type Answerer interface {
	Receiver
	// Room is the memory for the k-th answer to packets of the last Receive, until Answer or Release; nil when there is no
	// room for as many.
	Room(k int) []byte
	// Answer sends the first lengths[k] bytes of Room(k) to where packet which[k] of the last Receive came from; which
	// rises. It returns how many it could send; it may wait for room, but not for long.
	Answer(which, lengths []int) (int, error)
}

// Handler makes the answers.
type Handler interface {
	// Answer writes the answer to m into dst and returns its length and a code of its kind, or 0 when none is due.
	Answer(dst, m []byte) (n, code int)
}

// Codes is how many kinds of answers are told apart; the last stands for all above too.
const Codes = 24

// AnswerOptions is one worker's part in a test of requests and answers.
type AnswerOptions struct {
	ReceiveOptions // Receiver is left out; Run, Streams and Content are not looked at
	Answerer       Answerer
	Handler        Handler
}

// AnswerResult is what one worker received and answered. Received = Answered + Failed + Silent.
type AnswerResult struct {
	ReceiveResult
	Answered uint64        // handed to the kernel or the device
	Failed   uint64        // answers that could not be sent
	Silent   uint64        // requests that no answer is due to
	Code     [Codes]uint64 // answers made, by kind
}

// Answer is the loop of one worker of such a test: take a batch, check each frame as udp-rx does, have each request
// answered, send the answers, give the memory back. Run belongs to one goroutine; Stop and Live may be called from any.
type Answer struct {
	*Receive
	answerer       Answerer
	handler        Handler
	which, lengths []int
	a              AnswerResult
}

// NewAnswer prepares a worker; all memory of the packet path is allocated here.
func NewAnswer(o AnswerOptions) (*Answer, error) {
	if o.Answerer == nil || o.Handler == nil {
		return nil, errors.New("answer options: Answerer or Handler is nil")
	}
	o.Receiver = o.Answerer
	r, err := NewReceive(o.ReceiveOptions)
	if err != nil {
		return nil, fmt.Errorf("answer: %w", err)
	}
	n := len(r.batch)
	return &Answer{Receive: r, answerer: o.Answerer, handler: o.Handler, which: make([]int, 0, n), lengths: make([]int, 0, n)}, nil
}

// Run answers until Stop. The caller has locked the goroutine to a thread and placed it.
func (l *Answer) Run() error { return l.run(l) }

func (l *Answer) take(batch [][]byte, _ uint64) (uint64, error) {
	l.which, l.lengths = l.which[:0], l.lengths[:0]
	for i, m := range batch {
		if l.o.Frames {
			var ok bool
			if m, ok = l.payload(m); !ok {
				continue
			}
		}
		l.request(i, m)
	}
	if len(l.which) > 0 {
		sent, err := l.answerer.Answer(l.which, l.lengths)
		l.a.Answered += uint64(sent)
		l.a.Failed += uint64(len(l.which) - sent)
		if err != nil {
			return l.r.Received, fmt.Errorf("answer: %w", err)
		}
	}
	return l.r.Received, nil
}

// payload is the request in a frame, when that is the run's and sound.
func (l *Answer) payload(f []byte) ([]byte, bool) {
	p, verdict := l.o.Verifier.Frame(f)
	if verdict == packet.OK {
		return p, true
	}
	l.refused(verdict)
	return nil, false
}

// request has the request at place i of the batch answered.
func (l *Answer) request(i int, m []byte) {
	l.r.Received++
	l.r.Bytes += uint64(len(m))
	if l.o.Work != nil {
		l.o.Work.Do()
	}
	room := l.answerer.Room(len(l.which))
	if room == nil {
		l.a.Failed++
		return
	}
	n, code := l.handler.Answer(room, m)
	if n == 0 {
		l.a.Silent++
		return
	}
	l.a.Code[min(max(code, 0), Codes-1)]++
	l.which, l.lengths = append(l.which, i), append(l.lengths, n)
}

// Answered is what was received and answered; call it when Run has returned.
func (l *Answer) Answered() AnswerResult {
	a := l.a
	a.ReceiveResult = l.Result()
	return a
}
