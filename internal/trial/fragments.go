// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"math"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// fragmented is the course of fragments: the peer sends datagrams in pieces, the SUT reads whole ones. What cannot be whole is
// waited for too, until reassembly gives it up: only then has every datagram its place.
type fragmented struct{ receiving }

func (fragmented) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	sut, peer = b.sutPart(s), b.generatePart(s)
	peer.Role = agent.SendFragments
	sut.Fragments, peer.Fragments = b.fragments(s), b.fragments(s)
	sut.Streams = 1
	sut.MaxSize = sut.Fragments.MTU + 18 // of a frame: Ethernet header and FCS
	return sut, peer
}

// fragments is the load, with leave to set the kernel's limits where the SUT's namespace is the rig's.
func (b *Bench) fragments(s Spec) *agent.Fragments {
	f := *s.Load.Fragments
	f.Own = b.Far == nil
	return &f
}

// pendingPoll is how often reassembly is asked whether it still waits; pendingGrace how much longer than its timeout.
const (
	pendingPoll  = 20 * time.Millisecond
	pendingGrace = 3 * time.Second
)

func (fragmented) run(ctx context.Context, r *running) error {
	before, err := r.sut.Counters(ctx)
	if err != nil {
		return err
	}
	if n := before.Counters[agent.PendingFragments]; n != 0 {
		return fmt.Errorf("the SUT holds %d incomplete datagrams of others before the trial: its namespace has other traffic in fragments", n)
	}
	err = r.observe(ctx, r.peer, r.sut, func(ctx, after context.Context) (err error) {
		if r.sent, err = r.load(ctx); err != nil {
			return err
		}
		sent := r.sent.Fragments
		if sent == nil {
			return fmt.Errorf("the peer's agent does not tell what it sent in fragments")
		}
		r.sent.Sent = sent.Datagrams
		expect := sent.Datagrams
		if sent.Missing+sent.Overlapping > 0 { // who is the last to come cannot be known
			expect = math.MaxUint64
		}
		if r.drained, err = r.sut.Drain(after, expect, drainQuiet, drainLimit); err != nil {
			return err
		}
		if r.received, err = r.sut.Finish(after); err != nil {
			return err
		}
		return r.settleFragments(after)
	})
	delete(r.to.Counters, agent.PendingFragments)
	return err
}

// settleFragments waits until reassembly holds nothing any more, or should not. The counters that count are read after it: a
// timer may run out between two of them.
func (r *running) settleFragments(ctx context.Context) error {
	deadline := time.Now().Add(r.s.Load.Fragments.Timeout() + pendingGrace)
	if r.interrupted { // nobody waits half a minute for a trial that does not count
		deadline = time.Now()
	}
	for {
		c, err := r.sut.Counters(ctx)
		if err != nil {
			return err
		}
		if r.pending = c.Counters[agent.PendingFragments]; r.pending == 0 || time.Now().After(deadline) {
			return nil
		}
		time.Sleep(pendingPoll)
	}
}

func (f fragmented) record(r *running, t *compare.Trial) error {
	if err := f.receiving.record(r, t); err != nil {
		return err
	}
	sent := r.sent.Fragments
	got := r.to.Counters["ip.ReasmReqds"] + r.to.Counters["ip6.ReasmReqds"]
	if r.arm() == measure.ArmXDP {
		got = r.to.Counters["fragments.received"]
	}
	whole := t.Received * uint64(sent.Fragments)
	t.Fragments = &compare.TrialFragments{Sent: sent.Frames, Received: got, Wasted: got - min(got, whole), Undeliverable: sent.Missing + sent.Overlapping}
	if r.pending > 0 && !r.interrupted {
		t.Invalidate("reassembly still held %d datagrams %v after its timeout", r.pending, pendingGrace)
	}
	return nil
}

// pieces is what the ledger must know of datagrams in fragments; nil in other tests.
func (r *running) pieces() *measure.Fragments {
	f := r.sent.Fragments
	if f == nil {
		return nil
	}
	return &measure.Fragments{Frames: f.Frames, Missing: f.Missing, Overlapping: f.Overlapping}
}
