// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"
	"os"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/packet"
	"twopath/kernelpath"
	"twopath/xsk"
)

// openXDPFollow opens an AF_XDP arm for replay: a socket on every receive queue, and on the device a program that takes every
// frame with the run's mark.
func openXDPFollow(p agent.Prepare) (_ *set, err error) {
	s := &set{frames: true, batch: xdpBatch}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
		}
	}()
	if b := number(p.Options["batch"]); b > 0 {
		s.batch = b
	}
	opts, err := xskOptions(p)
	if err != nil {
		return nil, err
	}
	s.spins = opts.Wait != xsk.Poll
	redirect, link, err := attachMarked(p)
	if err != nil {
		return nil, err
	}
	s.undo = append(s.undo, redirect.Close, link.Close)
	opts.Attach = map[string]xsk.AttachMode{"native": xsk.Native, "generic": xsk.Generic}[link.Mode().String()]
	queues := make([]int, max(p.Queues, 1))
	for q := range queues {
		queues[q] = q
	}
	socks, err := xsk.OpenQueues(opts, queues...)
	if err != nil {
		return nil, err
	}
	s.undo = append([]func() error{socks.Close}, s.undo...) // the link goes before the sockets, which go before the UMEM
	for q, k := range socks.Sockets {
		if err := redirect.SetSocket(q, k.FD()); err != nil {
			return nil, err
		}
		s.workers = append(s.workers, &xskWorker{s: k, descs: make([]xsk.Desc, s.batch), poll: opts.Wait == xsk.Poll})
	}
	s.counters = func() (map[string]uint64, error) { return xdpCounters(redirect, socks) }
	s.own = func() map[string]uint64 { return xskOwn(socks) }
	mode := socks.Sockets[0].Mode()
	s.effective = xdpEffective(p, mode, link.Mode().String(), s.batch)
	delete(s.effective, "csum") // neither engine looks at the checksums of other people's traffic
	if p.Variant != "generic" && link.Mode() == bpf.Generic {
		s.notes = append(s.notes, "XDP is attached in generic mode: the driver has no native XDP")
	}
	s.notes = append(s.notes, mode.Downgrades()...)
	return s, nil
}

// attachMarked is attachRedirect of the program for marked frames.
func attachMarked(p agent.Prepare) (*bpf.Redirect, *bpf.Link, error) {
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, nil, fmt.Errorf("find device %s: %w", p.Device, err)
	}
	r, err := bpf.NewMarked(bpf.MarkedOptions{Prefix: packet.MarkPrefix(p.Run), Queues: max(p.Queues, 1)})
	if err != nil {
		return nil, nil, err
	}
	mode := bpf.Native
	if p.Variant == "generic" {
		mode = bpf.Generic
	}
	link, err := bpf.Attach(r.Program(), ifi.Index, mode)
	var unsupported *bpf.NativeUnsupportedError
	if errors.As(err, &unsupported) && p.Variant == "auto" && !p.Strict {
		link, err = bpf.Attach(r.Program(), ifi.Index, bpf.Generic)
	}
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return r, link, nil
}

// openKernelFollow opens the kernel's arm: AF_PACKET rings that see every frame of the run, one for each worker. Frames are
// shared out by the queue they came on, so that each worker has the frames that it has on the other engine.
func openKernelFollow(p agent.Prepare) (_ *set, err error) {
	s := &set{frames: true}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err), s.close())
		}
	}()
	if p.Variant != "packet" {
		return nil, errors.New("no such variant")
	}
	prefix := packet.MarkPrefix(p.Run)
	var rings []*kernelpath.Packet
	// The kernel hands over a block when it is full or a millisecond old, so that at low rates their number is how long a
	// reader may be away: many small ones.
	o := kernelpath.PacketOptions{Interface: p.Device, Batch: number(p.Options["batch"]), SourceMAC: prefix[:], Promiscuous: true,
		Ring: kernelpath.Ring{BlockBytes: 64 << 10, Blocks: 256}}
	if p.Queues > 1 {
		o.Fanout = uint16(os.Getpid())&0x7fff | 1 // any number of ours: the group is the namespace's
	}
	for range max(p.Queues, 1) {
		r, err := kernelpath.OpenPacket(o)
		if err != nil {
			return nil, err
		}
		rings = append(rings, r)
		s.workers = append(s.workers, r)
	}
	e := rings[0].Effective()
	s.batch = e.Batch
	s.counters = func() (map[string]uint64, error) { return nil, nil }
	s.own = func() map[string]uint64 {
		sum := map[string]uint64{}
		for _, r := range rings {
			for k, v := range r.Counters() {
				sum[k] += v
			}
		}
		return sum
	}
	other := map[string]string{"ring": fmt.Sprintf("%d blocks of %d B", e.Ring.Blocks, e.Ring.BlockBytes), "promiscuous": "on"}
	if o.Fanout != 0 {
		other["fanout"] = "by queue"
	}
	s.effective = map[string]any{"attach": "none", "wait": e.Wait.String(), "batch": e.Batch, "sockets": len(rings), "other": other}
	return s, nil
}
