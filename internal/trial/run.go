// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"maps"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/rig"
)

// Run runs one trial and returns its record. A fault that a repeat may cure makes the trial invalid; an error means that
// the arm cannot run here. When ctx ends during the trial, the load is stopped, what was received is counted, and the
// record comes with ctx's error.
func (b *Bench) Run(ctx context.Context, s Spec) (t compare.Trial, err error) {
	t = compare.Trial{RunID: s.RunID, Started: time.Now(), Valid: true}
	c, err := courseOf(s)
	if err != nil {
		return t, err
	}
	for _, side := range b.Rig.Sides() {
		if err := side.LinkUp(); err != nil {
			return t, err
		}
	}
	napi := b.CPUs.NAPIOptions(s.Setting.Sched)
	if err := b.Rig.SUT.SetNAPI(napi); err != nil {
		return t, err
	}
	if b.Far == nil {
		if err := b.Rig.Peer.SetNAPI(b.PeerNAPI); err != nil {
			return t, err
		}
	}
	if b.Rig.Kind == rig.Veth { // a port's settings are its owner's, and no journal has them
		if err := b.Rig.SUT.SetDeferral(s.deferral()); err != nil {
			return t, err
		}
	}
	if err := b.setKnobs(s.Arm); err != nil {
		return t, err
	}
	defer func() {
		if e := b.RestoreKnobs(); e != nil { // the next trial would run with them
			err = errors.Join(err, e)
		}
	}()
	sut, peer, err := b.pair(ctx)
	if err != nil {
		return t, err
	}
	defer func() {
		if e := b.part(); e != nil && err == nil && ctx.Err() == nil {
			t.Invalidate("%v", e)
		}
	}()
	threads, err := b.Rig.SUT.NAPI()
	if err != nil {
		return t, err
	}
	r := &running{b: b, s: s, sut: sut, peer: peer}
	sutPart, peerPart := c.parts(b, s)
	for _, n := range threads {
		if n.PID != 0 {
			sutPart.NAPI = append(sutPart.NAPI, n.PID)
		}
	}
	if r.got, err = sut.Prepare(ctx, sutPart); err != nil {
		return t, err
	}
	if r.peerGot, err = peer.Prepare(ctx, peerPart); err != nil {
		return t, err
	}
	// Attaching XDP may bring NAPI threads back unpinned, under new ids.
	if err := settle(b.Rig.SUT, napi); err != nil {
		return t, err
	}
	if b.Far == nil {
		if err := settle(b.Rig.Peer, b.PeerNAPI); err != nil {
			return t, err
		}
	}
	knobs, err := b.inForce()
	if err != nil {
		return t, err
	}
	if err := c.run(ctx, r); err != nil {
		if errors.Is(err, agent.ErrDied) || errors.Is(err, agent.ErrHung) {
			t.Invalidate("%v", err)
			return t, nil
		}
		return t, err
	}
	if err := b.Rig.SUT.VerifyNAPI(napi); err != nil {
		t.Invalidate("placement not kept: %v", err)
	}
	if now, err := b.inForce(); err != nil {
		return t, err
	} else if what := changed(knobs, now); what != "" {
		t.Invalidate("%s", what)
	}
	e, err := r.effective(threads)
	if err != nil {
		return t, err
	}
	if e.Other == nil {
		e.Other = map[string]string{}
	}
	maps.Copy(e.Other, knobs)
	t.Effective, t.Notes = &e, r.got.Notes
	if err := c.record(r, &t); err != nil {
		return t, err
	}
	return t, ctx.Err()
}

// settle places a side's NAPI again if attaching has moved it.
func settle(s *rig.Side, napi rig.NAPIOptions) error {
	if s.VerifyNAPI(napi) == nil {
		return nil
	}
	if err := s.SetNAPI(napi); err != nil {
		return err
	}
	return s.VerifyNAPI(napi)
}
