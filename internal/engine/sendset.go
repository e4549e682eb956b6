// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net/netip"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/packet"
	"twopath/internal/workload"
	"twopath/kernelpath"
)

// sender is the send half of one arm for one thread, and what an agent needs of it besides the loop.
type sender interface {
	workload.Sender
	// Buffers are all that Reserve lends, for the template to be written into once.
	Buffers() [][]byte
	Close() error
}

// stream is one sender's share of the traffic.
type stream struct {
	template *packet.Template
	first    int // its first flow
	flows    int
	shares   bool // the ports are other streams' too
	cpu      int
}

// sendSet is an opened arm: its senders, one per stream.
type sendSet struct {
	senders   []sender
	frames    bool // they lend room for Ethernet frames, not UDP payloads
	batch     int
	effective map[string]any
	notes     []string
	counters  func() (map[string]uint64, error) // the engine's witnesses, also while the loops run
	own       func() map[string]uint64          // what belongs to the sending goroutines: after they have ended
	undo      []func() error                    // last to first, after the senders are closed
}

func (s *sendSet) close() error {
	var errs []error
	for _, w := range s.senders {
		errs = append(errs, w.Close())
	}
	s.senders = nil
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	s.undo = nil
	return errors.Join(errs...)
}

// prepare writes what does not change into every buffer.
func (s *sendSet) prepare(streams []stream) error {
	for i, w := range s.senders {
		for _, b := range w.Buffers() {
			if !s.frames {
				streams[i].template.InitPayload(b)
			} else if err := streams[i].template.Init(b); err != nil {
				return err
			}
		}
	}
	return nil
}

// streams cuts the load's flows and numbers into n streams.
func streams(p agent.Prepare, n int) ([]stream, error) {
	flows := max(p.Flow.Flows, 1)
	var out []stream
	first := 0
	for i := range n {
		s := stream{first: first % flows, flows: flows / n, cpu: p.CPUs[i%len(p.CPUs)], shares: flows < n}
		if i < flows%n {
			s.flows++
		}
		s.flows = max(s.flows, 1)
		first += s.flows
		f := p.Flow
		f.SrcPort, f.Flows = f.SrcPort+uint16(s.first), s.flows
		var err error
		if s.template, err = packet.NewTemplate(f, p.Run, uint8(i), p.Generate.Sizes); err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// openSend makes the set of the arm that p names.
func openSend(p agent.Prepare, streams []stream) (*sendSet, error) {
	switch {
	case p.Engine == compare.XDP && p.Variant == "asavie":
		return openAsavieSend(p, streams)
	case p.Engine == compare.XDP:
		return openXDPSend(p, streams)
	case p.Engine == compare.Kernel:
		return openKernelSend(p, streams)
	}
	return nil, fmt.Errorf("no engine %q", p.Engine)
}

// kernelSender is what all senders of kernelpath have in common.
type kernelSender interface {
	sender
	Counters() map[string]uint64
	Effective() kernelpath.Effective
}

func openKernelSend(p agent.Prepare, streams []stream) (_ *sendSet, err error) {
	s := &sendSet{frames: p.Variant == "packet", counters: func() (map[string]uint64, error) { return nil, nil }}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
		}
	}()
	var ks []kernelSender
	for _, st := range streams {
		k, err := openKernelSender(p, st)
		if err != nil {
			return nil, err
		}
		ks = append(ks, k)
		s.senders = append(s.senders, k)
	}
	s.own = func() map[string]uint64 {
		sum := map[string]uint64{}
		for _, k := range ks {
			for name, v := range k.Counters() {
				sum[name] += v
			}
		}
		return sum
	}
	e := ks[0].Effective()
	s.batch = number(p.Options["batch"])
	s.effective = map[string]any{"attach": "none", "batch": e.Batch, "sockets": len(ks)}
	other := map[string]string{"sndbuf_bytes": fmt.Sprint(e.Sndbuf)}
	if s.frames {
		s.effective["ring"] = e.Ring.Blocks
		other["qdisc_bypass"] = fmt.Sprint(e.QdiscBypass)
	} else {
		s.effective["sockets"] = sockets(streams)
	}
	if e.GSO {
		other["segmentation"] = "UDP_SEGMENT"
	}
	s.effective["other"] = other
	if e.SndbufAsked > 0 && e.Sndbuf < 2*e.SndbufAsked {
		s.notes = append(s.notes, fmt.Sprintf("send buffer: asked for %d bytes, got %d: net.core.wmem_max is the cap without CAP_NET_ADMIN", e.SndbufAsked, e.Sndbuf/2))
		if p.Strict {
			return nil, errors.New(s.notes[0])
		}
	}
	return s, nil
}

func sockets(streams []stream) int {
	n := 0
	for _, s := range streams {
		n += s.flows
	}
	return n
}

func openKernelSender(p agent.Prepare, st stream) (kernelSender, error) {
	batch, sndbuf := number(p.Options["batch"]), number(p.Options["sndbuf"])
	o := kernelpath.SendSocket{Local: netip.AddrPortFrom(p.Flow.Src, p.Flow.SrcPort+uint16(st.first)), Remote: netip.AddrPortFrom(p.Flow.Dst, p.Flow.DstPort),
		Flows: st.flows, Batch: batch, Buffer: st.template.Longest() - st.template.Header(), Sndbuf: sndbuf, ReusePort: st.shares}
	switch p.Variant {
	case "write":
		return kernelpath.OpenWrite(o)
	case "sendto":
		return kernelpath.OpenSendto(o)
	case "sendmmsg":
		return kernelpath.OpenSendmmsg(kernelpath.SendmmsgOptions{SendSocket: o, GSO: p.Options["gso"] == "on"})
	case "packet":
		return kernelpath.OpenPacketSend(kernelpath.PacketSendOptions{Interface: p.Device, Buffer: st.template.Longest(), Sndbuf: sndbuf})
	}
	return nil, errors.New("no such variant")
}
