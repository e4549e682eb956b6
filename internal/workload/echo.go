// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
)

// Responder is what an engine offers a worker that answers: it receives, and sends back what it has lent.
type Responder interface {
	Receiver
	// Reply sends the packets of the last Receive back to where they came from, payload unchanged: those at the given
	// places of its batch, in rising order. It returns how many it could send; it may wait for room, but not for long.
	Reply(which []int) (int, error)
}

// EchoOptions is one worker's part in udp-echo.
type EchoOptions struct {
	ReceiveOptions           // Receiver is left out
	Responder      Responder // receives and answers
}

// EchoResult is what one worker received and answered. Received = Replied + Failed.
type EchoResult struct {
	ReceiveResult
	Replied uint64 // requests answered: handed to the kernel or the device
	Failed  uint64 // requests whose answer could not be sent
}

// Echo is the udp-echo loop of one worker: take a batch, check and account each request as udp-rx does, send those of the run
// back, give the memory back. Run belongs to one goroutine; Stop and Live may be called from any.
type Echo struct {
	*Receive
	responder Responder
	which     []int
	replied   uint64
	failed    uint64
}

// NewEcho prepares a worker; all memory of the packet path is allocated here.
func NewEcho(o EchoOptions) (*Echo, error) {
	if o.Responder == nil {
		return nil, errors.New("echo options: Responder is nil")
	}
	o.Receiver = o.Responder
	r, err := NewReceive(o.ReceiveOptions)
	if err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	return &Echo{Receive: r, responder: o.Responder, which: make([]int, 0, len(r.batch))}, nil
}

// Run answers until Stop. The caller has locked the goroutine to a thread and placed it.
func (l *Echo) Run() error { return l.run(l) }

func (l *Echo) take(batch [][]byte, _ uint64) (uint64, error) {
	l.which = l.which[:0]
	for i := range batch {
		before := l.r.Received
		if l.o.Frames {
			l.frames(batch[i : i+1])
		} else {
			l.datagram(batch[i])
		}
		if l.r.Received != before {
			l.which = append(l.which, i)
		}
	}
	if len(l.which) > 0 {
		sent, err := l.responder.Reply(l.which)
		l.replied += uint64(sent)
		l.failed += uint64(len(l.which) - sent)
		if err != nil {
			return l.r.Received, fmt.Errorf("reply: %w", err)
		}
	}
	return l.r.Received, nil
}

// Answered is what was received and answered; call it when Run has returned.
func (l *Echo) Answered() EchoResult {
	return EchoResult{ReceiveResult: l.Result(), Replied: l.replied, Failed: l.failed}
}
