// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"time"

	"github.com/asavie/xdp"

	"twopath/internal/agent"
	"twopath/internal/packet"
)

// asavieEchoRing is the transmit ring of an asavie responder; its frames are those it receives into.
const asavieEchoRing = 256

// openAsavieEcho opens the asavie/xdp library as a responder.
func openAsavieEcho(p agent.Prepare) (*set, error) {
	var all []*asavieEcho
	s, err := openAsavieWith(p, asavieEchoRing, func(w *asavieWorker) worker {
		e := &asavieEcho{asavieWorker: w, out: make([]xdp.Desc, 0, asavieEchoRing)}
		all = append(all, e)
		return e
	})
	if err != nil {
		return nil, err
	}
	s.own = func() map[string]uint64 {
		c := map[string]uint64{}
		for _, w := range all {
			c["xsk.tx_submitted"] += w.submitted
			c["xsk.tx_completed"] += w.completed
			c["xsk.tx_unsent"] += w.submitted - w.completed
		}
		return c
	}
	return s, nil
}

// asavieEcho answers as the library's forwarding example does: the frame that came is changed in place and sent.
type asavieEcho struct {
	*asavieWorker
	out                  []xdp.Desc
	submitted, completed uint64
}

// Reply turns the frames round and sends them.
func (w *asavieEcho) Reply(which []int) (int, error) {
	sent := 0
	for sent < len(which) {
		n := min(len(which)-sent, w.s.NumFreeTxSlots(), cap(w.out))
		w.out = w.out[:0]
		for _, i := range which[sent : sent+n] {
			d := w.descs[i]
			packet.Swap(w.s.GetFrame(d))
			w.out = append(w.out, d)
		}
		took, err := w.transmit(w.out)
		sent += took
		if err != nil {
			return sent, err
		}
		if took == 0 && !w.complete(replyWait) {
			return sent, nil
		}
	}
	w.complete(0)
	return sent, nil
}

// transmit turns the library's panic on an errno it does not know into an error, as asavieSender does.
func (w *asavieEcho) transmit(descs []xdp.Desc) (n int, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = 0, fmt.Errorf("%w: asavie/xdp panics: %v", errWayGone, r)
		}
	}()
	n = w.s.Transmit(descs)
	w.submitted += uint64(n)
	return n, nil
}

// complete takes completions, and waits for the first a little; it says whether there was one.
func (w *asavieEcho) complete(wait time.Duration) bool {
	for deadline := time.Now().Add(wait); ; {
		if n := w.s.NumCompleted(); n > 0 {
			w.s.Complete(n)
			w.completed += uint64(n)
			return true
		}
		if w.submitted == w.completed || !time.Now().Before(deadline) {
			return false
		}
		if _, err := w.transmit(nil); err != nil {
			return false
		}
	}
}

// Receive lets Poll's own completions count.
func (w *asavieEcho) Receive(b [][]byte) (int, error) {
	before := w.s.NumTransmitted()
	n, err := w.asavieWorker.Receive(b)
	w.completed += uint64(before - w.s.NumTransmitted())
	return n, err
}

// Release fills the ring with frames that are free; those being sent are not.
func (w *asavieEcho) Release() error {
	if n := min(w.s.NumFreeFillSlots(), len(w.descs)); n > 0 && !w.poll {
		w.s.Fill(w.s.GetDescs(n))
	}
	return nil
}

// Queued waits for what is being sent.
func (w *asavieEcho) Queued() (uint64, error) {
	for w.completed < w.submitted && w.complete(replyWait) {
	}
	return w.asavieWorker.Queued()
}
