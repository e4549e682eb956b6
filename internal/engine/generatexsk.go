// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/agent"
	"twopath/internal/workload"
	"twopath/xsk"
)

// Rings and buffer of a generating socket. An open loop must not wait for the receiver: on a veth a frame is out until the
// other end has taken it or its ring of 256 slots was full, so what a socket may have out is several times that, in frames
// and in bytes of skbs (a socket's default of 208 KiB holds fewer small ones than such a ring does).
const (
	generateRing   = 2048
	generateBuffer = 32 << 20
)

// xskGenerator is the peer of a receive test that sends through AF_XDP sockets, one on each of its transmit queues: every
// queue of the receiver gets its share, however few CPUs send. Each CPU is a stream of its own and serves the queues that
// its number leaves, by flow; a frame costs an skb.
type xskGenerator struct {
	*sendPart
}

func newXSKGenerator(p agent.Prepare) (_ *xskGenerator, got agent.Prepared, err error) {
	if p.Generate == nil || len(p.CPUs) == 0 {
		return nil, got, errors.New("generate: no load or no CPUs given")
	}
	queues := max(p.Queues, 1)
	p.Engine, p.Variant, p.Options = "xdp", "auto", nil
	p.CPUs = p.CPUs[:min(len(p.CPUs), queues)]
	s, got, err := newSendOver(p, len(p.CPUs), func(streams []stream) (*sendSet, error) { return openFans(p, streams, queues) })
	if err != nil {
		return nil, got, fmt.Errorf("generate: %w", err)
	}
	got.Effective["method"] = agent.MethodXSK
	return &xskGenerator{s}, got, nil
}

// openFans opens a socket on every queue, and gives each stream those of its own.
func openFans(p agent.Prepare, streams []stream, queues int) (_ *sendSet, err error) {
	s := &sendSet{frames: true, batch: sendBatch}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	driver, err := driverOf(p.Device)
	if err != nil {
		return nil, err
	}
	if _, err := s.readyToSend(p, driver); err != nil {
		return nil, err
	}
	longest := 0
	fans := make([]*fan, len(streams))
	for i, st := range streams {
		fans[i] = &fan{flows: st.flows}
		longest = max(longest, st.template.Longest())
		s.senders = append(s.senders, fans[i])
	}
	o, err := sendOptions(p, driver, s.batch, longest)
	if err != nil {
		return nil, err
	}
	o.TxRing = generateRing
	var socks []*xsk.Socket
	for o.Queue = range queues {
		k, err := xsk.Open(o)
		if err != nil {
			return nil, err
		}
		s.undo = append(s.undo, k.Close)
		if err := unix.SetsockoptInt(k.FD(), unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, generateBuffer); err != nil {
			return nil, fmt.Errorf("send buffer of %d bytes: %w", generateBuffer, err)
		}
		socks = append(socks, k)
		f := fans[o.Queue%len(fans)]
		f.queues = append(f.queues, newXSKSender(k, s.batch, longest))
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
	s.effective = map[string]any{"bind": socks[0].Mode().Obtained.Bind.String(), "sockets": len(socks)}
	return s, nil
}

// Run sends on all CPUs at once. What the senders note of their own machine is what a generator tells of its gaps.
func (g *xskGenerator) Run() (agent.Generated, error) {
	t, err := g.sendPart.Run()
	t.Runs = 1
	t.MaxGapNS = t.MaxLateNS
	if s := t.Sending; s != nil {
		t.MaxGapNS = max(t.MaxGapNS, s.MaxStallNS)
		t.Failed = s.Failed
	}
	t.Sending = nil // of a SUT
	return t, err
}

// fan is one stream's sender over several queues. A run of packets of one flow goes to the queue of that flow, and the loop
// hands over no more than such a run at once.
type fan struct {
	queues []*xskSender
	flows  int
	next   uint64 // number of the packet that Reserve lends room for
}

// queue is where the next packet goes.
func (f *fan) queue() *xskSender {
	flow := 0
	if f.flows > 1 {
		flow = workload.FlowOf(f.next, f.flows)
	}
	return f.queues[flow%len(f.queues)]
}

func (f *fan) Buffers() [][]byte {
	var out [][]byte
	for _, q := range f.queues {
		out = append(out, q.Buffers()...)
	}
	return out
}

func (f *fan) Reserve(b [][]byte) (int, error) { return f.queue().Reserve(b) }

func (f *fan) Submit(b [][]byte, flow int) (int, error) {
	n, err := f.queue().Submit(b, flow)
	f.next += uint64(n)
	return n, err
}

func (f *fan) Flush(timeout time.Duration) error {
	var errs []error
	for _, q := range f.queues {
		errs = append(errs, q.Flush(timeout))
	}
	return errors.Join(errs...)
}

func (f *fan) Close() error { return nil } // the sockets are the set's
