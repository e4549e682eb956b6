// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/fragments"
	"twopath/internal/measure"
)

// sendFragments is the peer of the test fragments: it sends a prepared list from one CPU.
type sendFragments struct {
	generatePart // its device, its counters; it has no generators
	cpu          int
	list         *fragments.List
	replayer     *bpf.Replayer
}

func newSendFragments(p agent.Prepare) (_ *sendFragments, got agent.Prepared, err error) {
	s := &sendFragments{}
	defer func() {
		if err != nil {
			_ = s.Close()
		}
	}()
	l, f := p.Generate, p.Fragments
	if l == nil || f == nil || len(p.CPUs) == 0 {
		return nil, got, errors.New("send fragments: no load or no CPU given")
	}
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("send fragments: find device %s: %w", p.Device, err)
	}
	if err := s.readyToSend(ifi); err != nil {
		return nil, got, err
	}
	s.cpu = p.CPUs[0]
	s.list, err = fragments.New(fragments.Options{Flow: p.Flow, Run: p.Run, Pattern: fragments.Pattern(f.Pattern), Payload: f.Payload, MTU: f.MTU,
		Count: int(min(l.Count, 1<<31-1)), PPS: l.Rate, Seed: f.Seed})
	if err != nil {
		return nil, got, err
	}
	batch, patience := handover(l)
	s.replayer, err = bpf.NewReplayer(bpf.ReplayerOptions{IfIndex: ifi.Index, Frames: s.list.Frames, Due: s.list.Due, Batch: batch, Patience: patience})
	if err != nil {
		return nil, got, err
	}
	if s.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective = map[string]any{"method": "xdp-live-frames"}
	return s, got, nil
}

// Live counts frames, as Generated.Sent does.
func (s *sendFragments) Live() agent.Live { return agent.Live{Sent: s.replayer.State().Sent} }

// Stop ends Run soon.
func (s *sendFragments) Stop() { s.replayer.Stop() }

// Run sends the list once.
func (s *sendFragments) Run() (agent.Generated, error) {
	var r bpf.ReplayerResult
	err := onCPU(s.cpu, func() (err error) {
		r, err = s.replayer.Run()
		return err
	})
	sent := s.list.Sent(r.Sent)
	g := agent.Generated{Sent: r.Sent, PerStream: []uint64{sent.Datagrams}, StartNS: int64(r.Start), EndNS: int64(r.End), ShiftedNS: uint64(r.Shifted),
		LateSlots: r.LateSlots, MaxLateNS: uint64(r.LateMax), MaxGapNS: uint64(r.GapMax), Stopped: r.Stopped, Runs: r.Runs,
		Fragments: &agent.FragmentsSent{Frames: sent.Frames, Datagrams: sent.Datagrams, Missing: sent.Missing, Overlapping: sent.Overlapping,
			Fragments: s.list.Fragments, Bytes: s.list.Bytes}}
	if r.Sent > 1 {
		g.Seconds = float64(r.End-r.Start) / 1e9
	}
	return g, err
}

// Close frees the list and what the device was given.
func (s *sendFragments) Close() error {
	var err error
	if s.replayer != nil {
		err = s.replayer.Close()
	}
	return errors.Join(err, s.generatePart.Close())
}
