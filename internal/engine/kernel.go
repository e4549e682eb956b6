// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"net/netip"
	"strconv"

	"twopath/internal/agent"
	"twopath/kernelpath"
)

// kernelReceiver is what all receivers of kernelpath have in common.
type kernelReceiver interface {
	worker
	Counters() map[string]uint64
	Effective() kernelpath.Effective
}

// openKernel opens a kernel arm for udp-rx.
func openKernel(p agent.Prepare) (*set, error) { return openKernelWith(p, kernelReceivers) }

// openKernelWith opens a kernel arm whose receivers are made by open.
func openKernelWith(p agent.Prepare, open func(agent.Prepare) ([]kernelReceiver, error)) (_ *set, err error) {
	s := &set{own: func() map[string]uint64 { return nil }}
	defer func() {
		if err != nil {
			_ = s.close()
		}
	}()
	rs, err := open(p)
	if err != nil {
		return nil, fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err)
	}
	for _, r := range rs {
		s.workers = append(s.workers, r)
	}
	e := rs[0].Effective()
	s.frames = p.Variant == "packet"
	s.device = p.Variant == "nosocket"
	s.spins = e.Wait == kernelpath.WaitSpin
	s.batch = e.Batch
	// kernelpath's counters are read by the reading goroutine or after it, so they are taken at the end only; the
	// kernel's own witnesses start at 0 with the sockets.
	s.own = func() map[string]uint64 {
		sum := map[string]uint64{}
		for _, r := range rs {
			for k, v := range r.Counters() {
				sum[k] += v
			}
		}
		return sum
	}
	s.counters = func() (map[string]uint64, error) { return nil, nil }
	s.effective = map[string]any{"attach": "none", "wait": e.Wait.String(), "batch": e.Batch, "rcvbuf_bytes": e.Rcvbuf, "sockets": len(rs)}
	if e.GRO {
		s.effective["gro"] = "udp"
	}
	other := map[string]string{}
	if e.Ring.Blocks > 0 {
		other["ring"] = fmt.Sprintf("%d blocks of %d B", e.Ring.Blocks, e.Ring.BlockBytes)
		other["quiet"] = e.Quiet.String()
	}
	if e.BusyPoll > 0 {
		other["busy_poll_us"] = strconv.FormatInt(e.BusyPoll.Microseconds(), 10)
		other["busy_poll_budget"] = strconv.Itoa(e.BusyPollBudget)
	}
	if e.Promiscuous {
		other["promiscuous"] = "on"
	}
	if len(other) > 0 {
		s.effective["other"] = other
	}
	if e.RcvbufAsked > 0 && e.Rcvbuf < 2*e.RcvbufAsked {
		s.notes = append(s.notes, fmt.Sprintf("receive buffer: asked for %d bytes, got %d: net.core.rmem_max is the cap without CAP_NET_ADMIN", e.RcvbufAsked, e.Rcvbuf/2))
		if p.Strict {
			return nil, fmt.Errorf("%s:%s: %s", p.Engine, p.Variant, s.notes[0])
		}
	}
	return s, nil
}

// kernelSocket is the UDP socket that p asks for.
func kernelSocket(p agent.Prepare) kernelpath.Socket {
	return kernelpath.Socket{Local: netip.AddrPortFrom(p.Flow.Dst, p.Flow.DstPort), Batch: number(p.Options["batch"]), Rcvbuf: number(p.Options["rcvbuf"]),
		Buffer: max(2048, p.MaxSize)}
}

func kernelReceivers(p agent.Prepare) ([]kernelReceiver, error) {
	socket := kernelSocket(p)
	if p.Fragments != nil { // what is read is the whole datagram
		socket.Buffer = max(2048, p.Fragments.Payload)
	}
	local, batch := socket.Local, socket.Batch
	wait, err := kernelWait(p.Options["wait"])
	if err != nil {
		return nil, err
	}
	switch p.Variant {
	case "epoll":
		socket.Buffer = max(4096, socket.Buffer) // S1 reads into 4096 bytes
		return reuseport(p, func(n bool) (kernelReceiver, error) {
			socket.ReusePort = n
			return kernelpath.OpenEpoll(kernelpath.EpollOptions{Socket: socket})
		})
	case "recvmmsg":
		return reuseport(p, func(n bool) (kernelReceiver, error) {
			socket.ReusePort = n
			return kernelpath.OpenRecvmmsg(kernelpath.RecvmmsgOptions{Socket: socket, Wait: wait, GRO: p.Options["gro"] == "on"})
		})
	case "packet":
		r, err := kernelpath.OpenPacket(kernelpath.PacketOptions{Interface: p.Device, Local: local, Batch: batch, Quiet: kernelpath.QuietSocket})
		if err != nil {
			return nil, err
		}
		return []kernelReceiver{r}, nil
	case "nosocket":
		r, err := kernelpath.OpenNoSocket(kernelpath.NoSocketOptions{Interface: p.Device})
		if err != nil {
			return nil, err
		}
		return []kernelReceiver{r}, nil
	}
	return nil, fmt.Errorf("no such variant")
}

// reuseport opens one socket, or with +reuseport[=N] N of them on the same port. Over several queues an arm that does not
// say gets one for each, as the other engine does.
func reuseport(p agent.Prepare, open func(shared bool) (kernelReceiver, error)) (rs []kernelReceiver, err error) {
	n := max(p.Queues, 1)
	shared := n > 1
	if v, ok := p.Options["reuseport"]; ok {
		shared = true
		if n = number(v); n == 0 {
			n = max(p.Queues, len(p.CPUs))
		}
	}
	for range n {
		r, err := open(shared)
		if err != nil {
			for _, r := range rs {
				_ = r.Close()
			}
			return nil, err
		}
		rs = append(rs, r)
	}
	return rs, nil
}

func kernelWait(s string) (kernelpath.Wait, error) {
	if s == "" {
		return kernelpath.WaitDefault, nil
	}
	return kernelpath.ParseWait(s)
}

// number reads an option that compare has checked; an absent one is 0, the engine's default.
func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}
