// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/capture"
	"twopath/internal/measure"
	"twopath/internal/packet"
)

// replayPart is the peer of a replay. With one queue it sends XDP live frames. These reach one queue only from one core, so
// that several are fed through AF_XDP sockets, one for each queue, with all frames of a session on one.
type replayPart struct {
	cpu    int
	live   *bpf.Replayer
	queues *queueReplay
	reader *measure.Reader
	ready  *generatePart // what makes a NIC ready to send XDP frames
}

func newReplay(p agent.Prepare) (_ *replayPart, got agent.Prepared, err error) {
	r := &replayPart{ready: &generatePart{}}
	defer func() {
		if err != nil {
			_ = r.Close()
		}
	}()
	l := p.Replay
	if l == nil || len(p.CPUs) == 0 {
		return nil, got, errors.New("replay: no capture or no CPUs given")
	}
	r.cpu = p.CPUs[len(p.CPUs)-1]
	c, err := capture.Read(l.Path, capture.Options{MTU: l.MTU})
	if err != nil {
		return nil, got, err
	}
	if c.SHA256 != l.SHA256 {
		return nil, got, fmt.Errorf("replay: %s is another file here than where the trial is run from: copy it", l.Path)
	}
	hosts, err := capture.ParseHosts(l.Hosts)
	if err != nil {
		return nil, got, fmt.Errorf("replay: addresses: %w", err)
	}
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("replay: find device %s: %w", p.Device, err)
	}
	capture.Rewrite{DstMAC: l.DstMAC, Run: p.Run, Hosts: hosts}.Apply(c.Frames)
	o := bpf.ReplayerOptions{IfIndex: ifi.Index, Frames: c.Frames, Rate: l.Rate, Loops: l.Loops, LoopAt: packet.MarkLoopAt}
	if l.Speed > 0 {
		o.Due, o.Period = c.Schedule(l.Speed)
		o.Batch = 1
	} else if l.Rate > 0 {
		o.Batch, o.Patience = coalesceBatch, coalescePatience
	}
	if p.Queues > 1 {
		if r.queues, err = newQueueReplay(p.Device, p.Queues, o); err != nil {
			return nil, got, err
		}
		got.Effective = map[string]any{"method": "af_xdp"}
	} else {
		if err := r.ready.readyToSend(ifi); err != nil {
			return nil, got, err
		}
		if r.live, err = bpf.NewReplayer(o); err != nil {
			return nil, got, err
		}
		got.Effective = map[string]any{"method": "xdp-live-frames"}
	}
	if r.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	return r, got, nil
}

// Start does nothing: frames leave with Run.
func (r *replayPart) Start() error { return nil }

func (r *replayPart) Counters() (map[string]uint64, error) {
	s, err := r.reader.Read()
	if err == nil && r.queues != nil {
		err = r.queues.counters(s.Counters)
	}
	return s.Counters, err
}

func (r *replayPart) Live() agent.Live {
	if r.queues != nil {
		return agent.Live{Sent: r.queues.sent.Load()}
	}
	return agent.Live{Sent: r.live.State().Sent}
}

// Stop ends Run soon.
func (r *replayPart) Stop() {
	switch {
	case r.queues != nil:
		r.queues.stop.Store(true)
	case r.live != nil:
		r.live.Stop()
	}
}

// Run sends every frame of every loop.
func (r *replayPart) Run() (g agent.Generated, err error) {
	if r.queues != nil {
		err = onCPU(r.cpu, func() (err error) { g, err = r.queues.run(); return err })
		return g, err
	}
	var s bpf.ReplayerResult
	err = onCPU(r.cpu, func() (err error) { s, err = r.live.Run(); return err })
	g = agent.Generated{Sent: s.Sent, StartNS: int64(s.Start), EndNS: int64(s.End), ShiftedNS: uint64(s.Shifted), LateSlots: s.LateSlots,
		MaxLateNS: uint64(s.LateMax), MaxGapNS: uint64(s.GapMax), Stopped: s.Stopped, Runs: s.Runs, PerStream: []uint64{s.Sent}}
	if s.Sent > 1 {
		g.Seconds = float64(s.End-s.Start) / 1e9
	}
	return g, err
}

func (r *replayPart) Close() error {
	var errs []error
	if r.live != nil {
		errs = append(errs, r.live.Close())
	}
	if r.queues != nil {
		errs = append(errs, r.queues.close())
	}
	errs = append(errs, r.ready.Close())
	if r.reader != nil {
		errs = append(errs, r.reader.Close())
	}
	return errors.Join(errs...)
}
