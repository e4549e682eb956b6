// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// receiving is the course of udp-rx: the peer generates, the SUT reads.
type receiving struct{}

func (receiving) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	return b.sutPart(s), b.generatePart(s)
}

// sutPart is what an arm's agent is told in every test.
func (b *Bench) sutPart(s Spec) agent.Prepare {
	return agent.Prepare{Role: s.Role, Device: b.Rig.SUT.Name, Flow: s.Load.Flow, Run: s.RunID, Engine: s.Arm.Engine, Variant: s.Arm.Variant,
		Options: s.options(), Strict: s.Strict, CPUs: b.CPUs.Readers, Queues: b.Queues, MaxSize: s.maxSize(), Work: s.Work.String(),
		Content: s.Content, Streams: len(b.generators()), Every: s.Every}
}

// generatePart is what the peer's agent is told when it generates the load.
func (b *Bench) generatePart(s Spec) agent.Prepare {
	return agent.Prepare{Role: agent.Generate, Device: b.peerDevice(), Flow: b.flow(s), Run: s.RunID, CPUs: b.generators(),
		Queues: b.Queues, Generate: &agent.Generator{Method: b.Method, Sizes: s.Load.Sizes, Rate: s.Load.PPS, Coalesce: true, Count: s.Load.Count, Seconds: s.Load.Seconds, Faults: s.Load.Faults}}
}

// peerDevice is the interface of the peer, as its agent sees it.
func (b *Bench) peerDevice() string {
	if b.Far != nil {
		return b.Far.Device
	}
	return b.Rig.Peer.Name
}

// run lets the traffic flow and waits for the last frame.
func (receiving) run(ctx context.Context, r *running) error {
	return r.observe(ctx, r.peer, r.sut, func(ctx, after context.Context) (err error) {
		if r.sent, err = r.load(ctx); err != nil {
			return err
		}
		if r.drained, err = r.sut.Drain(after, r.sent.Sent, drainQuiet, drainLimit); err != nil {
			return err
		}
		r.received, err = r.sut.Finish(after)
		return err
	})
}

// record turns what was counted into the trial's record.
func (receiving) record(r *running, t *compare.Trial) error {
	g, rx := r.sent, r.received
	numbers := g.Sent - g.Duplicates
	r.span(t, numbers, true, rx.FirstNS, rx.LastNS)
	r.counters()
	t.Counters = nonZero(r.from.Counters, r.to.Counters)
	unique := rx.Unique
	if rx.ByDevice {
		unique = min(r.to.Counters["link.rx_packets"], numbers)
	}
	ledger := measure.Build(measure.Input{Arm: r.arm(), Sender: r.sender(), Generic: r.got.Effective["attach"] == "generic",
		ZeroCopy: r.got.Effective["bind"] == "zerocopy", Sent: numbers, Unique: unique, Injected: g.Duplicates, From: r.from.Counters, To: r.to.Counters,
		Fragments: r.pieces()})
	t.Received = min(unique, numbers)
	t.Lost, t.Ledger, t.Unexplained, t.Checks = ledger.Lost, ledger.Rows, ledger.Unexplained, ledger.Checks
	t.Duplicate, t.Reordered = rx.Duplicate, rx.Reordered
	t.Corrupt = rx.CorruptIP + rx.CorruptUDP + rx.BadContent
	t.Foreign = rx.Foreign + rx.WrongRun
	if len(rx.PerWorker) > 1 {
		t.PerWorker = rx.PerWorker
	}
	t.Milestones, t.ByCPU = milestones(rx.Milestones), r.byCPU()
	t.Late, t.LateMaxNs = g.LateSlots, g.MaxLateNS
	if err := r.cost(t); err != nil {
		return err
	}
	r.judge(t, unique, numbers)
	if n := ledger.OwnExcess; n > 0 {
		t.Invalidate("the run's own witnesses count %d packets more than were lost", n)
	}
	return nil
}

// counters adds what the reader and the engine counted to what the kernel did, under the ledger's names.
func (r *running) counters() {
	rx, to := r.received, r.to.Counters
	for k, v := range rx.Counters {
		to[k] = v
	}
	to["reader.received"] = rx.Received
	to["reader.unique"] = rx.Unique
	to["reader.duplicate"] = rx.Duplicate
	to["reader.reordered"] = rx.Reordered
	to["reader.late"] = rx.Late
	to["reader.foreign"] = rx.Foreign + rx.WrongRun
	to["reader.short"] = rx.Short
	to["reader.corrupt_ip"] = rx.CorruptIP
	to["reader.corrupt_udp"] = rx.CorruptUDP
	to["reader.corrupt_payload"] = rx.BadContent
	if rx.CPU != nil {
		to["reader.context_switches"] = rx.CPU.Switches
	}
	switch r.arm() {
	case measure.ArmXDP:
		to["xsk.queued"] = rx.Queued
	case measure.ArmPacket:
		to["packet.queued"] = rx.Queued
	case measure.ArmUDP, measure.ArmUDPGRO:
		to["sock.queued"] = rx.Queued
	}
	from := r.from.Counters
	from["gen.sent"] = r.sent.Sent
	from["gen.duplicate"] = r.sent.Duplicates
	from["gen.late"] = r.sent.LateSlots
}

// sender is how the peer sent, which decides what can become of a frame on its side.
func (r *running) sender() measure.Sender {
	if r.peerGot.Effective["method"] == agent.MethodXSK {
		return measure.SendXSK
	}
	return measure.SendLive
}

func (r *running) arm() measure.Arm {
	a := r.s.Arm
	switch {
	case r.s.Role == agent.Drop || a.Engine == compare.XDP:
		return measure.ArmXDP
	case a.Variant == "packet":
		return measure.ArmPacket
	case a.Variant == "nosocket":
		return measure.ArmNoSocket
	case a.On("gro"):
		return measure.ArmUDPGRO
	}
	return measure.ArmUDP
}

// judge marks a trial that broke its plan. The rules look at the peer and the machine, never at how well the arm did.
func (r *running) judge(t *compare.Trial, unique, numbers uint64) {
	g, rx := r.sent, r.received
	if r.interrupted {
		t.Invalidate("interrupted")
		return
	}
	if g.Failed != "" {
		t.Invalidate("the peer stopped sending: %s", g.Failed)
	}
	if unique > numbers {
		t.Invalidate("%d different frames received, but only %d sent: a stranger sends under this run's id", unique, numbers)
	}
	if g.Seconds > 0 && g.Sent > 1 && !r.s.Load.PingPong {
		if e := rateError(float64(g.Sent-1)/g.Seconds, r.s.Load.PPS); e != "" {
			t.Invalidate("%s", e)
		}
	}
	if g.Sent > 0 && t.Seconds <= 0 {
		t.Invalidate("what was sent (%d) has no duration: send more, or at a rate", g.Sent)
	}
	if g.Sent < r.s.Load.Count {
		t.Invalidate("the generator ended after %d of %d frames", g.Sent, r.s.Load.Count)
	}
	if gap := time.Duration(g.MaxGapNS); gap > maxGeneratorGap {
		t.Invalidate("the generator stood still for %v", gap.Round(time.Microsecond))
	}
	if stall := float64(rx.StallNS) / 1e9; stall > maxStallShare*g.Seconds {
		t.Invalidate("the machine under the reader stood still for %v (%.1f %% of the trial)", time.Duration(rx.StallNS).Round(time.Microsecond), 100*stall/g.Seconds)
	}
	if taken := r.disturbed(); taken > leastDisturbance && taken.Seconds() > maxDisturbedShare*g.Seconds && r.s.Role != agent.Drop {
		t.Invalidate("other tasks kept a reader from its CPU for %v (%.1f %% of the trial)", taken.Round(time.Microsecond), 100*taken.Seconds()/g.Seconds)
	}
	if rx.Stopped > 0 && !r.echo() {
		t.Invalidate("the reader's process was stopped and continued (SIGSTOP, SIGCONT)")
	}
	if !r.drained.Complete {
		t.Invalidate("frames still came %v after the last was sent", drainLimit)
	}
	for _, side := range []struct {
		name     string
		counters map[string]uint64
	}{{"SUT", r.to.Counters}, {"peer", r.from.Counters}} {
		if n := side.counters["link.carrier_changes"]; n > 0 {
			t.Invalidate("the link of the %s went down or came up during the trial (%d carrier changes)", side.name, n)
		}
	}
	if n := len(r.to.Reset) + len(r.from.Reset); n > 0 {
		t.Invalidate("%d counters were reset during the trial (%v): the device was reconfigured", n, append(r.to.Reset, r.from.Reset...))
	}
}
