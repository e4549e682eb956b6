// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/rig"
)

// Run runs one trial and returns its record. A fault that a repeat may cure makes the trial invalid; an error means that
// the arm cannot run here. When ctx ends during the trial, the load is stopped, what was received is counted, and the
// record comes with ctx's error.
func (b *Bench) Run(ctx context.Context, s Spec) (t compare.Trial, err error) {
	t = compare.Trial{RunID: s.RunID, Started: time.Now(), Valid: true}
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
	p := b.prepare(s, threads)
	got, err := sut.Prepare(ctx, p)
	if err != nil {
		return t, err
	}
	if _, err := peer.Prepare(ctx, b.generate(s)); err != nil {
		return t, err
	}
	// Attaching XDP may bring NAPI threads back unpinned, under new ids.
	if err := b.settle(napi); err != nil {
		return t, err
	}
	r := &running{b: b, s: s, sut: sut, peer: peer, got: got}
	if err := r.run(ctx); err != nil {
		if errors.Is(err, agent.ErrDied) || errors.Is(err, agent.ErrHung) {
			t.Invalidate("%v", err)
			return t, nil
		}
		return t, err
	}
	if err := b.Rig.SUT.VerifyNAPI(napi); err != nil {
		t.Invalidate("placement not kept: %v", err)
	}
	if err := r.record(&t, threads); err != nil {
		return t, err
	}
	return t, ctx.Err()
}

// settle places NAPI again if attaching has moved it.
func (b *Bench) settle(napi rig.NAPIOptions) error {
	if b.Rig.SUT.VerifyNAPI(napi) == nil {
		return nil
	}
	if err := b.Rig.SUT.SetNAPI(napi); err != nil {
		return err
	}
	return b.Rig.SUT.VerifyNAPI(napi)
}

func (b *Bench) prepare(s Spec, threads []rig.NAPIThread) agent.Prepare {
	p := agent.Prepare{Role: s.Role, Device: b.Rig.SUT.Name, Flow: s.Load.Flow, Run: s.RunID, Engine: s.Arm.Engine, Variant: s.Arm.Variant,
		Options: s.options(), Strict: s.Strict, CPUs: b.CPUs.Readers, Queues: b.Queues, MaxSize: s.maxSize(), Work: s.Work.String(),
		Content: s.Content, Streams: len(b.generators())}
	for _, t := range threads {
		if t.PID != 0 {
			p.NAPI = append(p.NAPI, t.PID)
		}
	}
	return p
}

func (b *Bench) generate(s Spec) agent.Prepare {
	device := ""
	if b.Far != nil {
		device = b.Far.Device
	} else {
		device = b.Rig.Peer.Name
	}
	return agent.Prepare{Role: agent.Generate, Device: device, Flow: b.flow(s), Run: s.RunID, CPUs: b.generators(),
		Generate: &agent.Generator{Sizes: s.Load.Sizes, Rate: s.Load.PPS, Coalesce: true, Count: s.Load.Count, Seconds: s.Load.Seconds, Faults: s.Load.Faults}}
}

// running is a trial under way.
type running struct {
	b         *Bench
	s         Spec
	sut, peer *agent.Process
	got       agent.Prepared

	sent        agent.Generated
	drained     agent.Drained
	received    agent.Received
	from, to    measure.Changes
	interrupted bool
}

// run reads the counters, lets the traffic flow, waits for the last frame, and reads them again.
func (r *running) run(ctx context.Context) error {
	sut0, err := r.sut.Counters(ctx)
	if err != nil {
		return err
	}
	peer0, err := r.peer.Counters(ctx)
	if err != nil {
		return err
	}
	if err := r.peer.Start(ctx); err != nil {
		return err
	}
	if err := r.sut.Start(ctx); err != nil {
		return err
	}
	if r.sent, err = r.load(ctx); err != nil {
		return err
	}
	// From here on a cancelled context must not keep what is there from being counted.
	after := context.WithoutCancel(ctx)
	if r.drained, err = r.sut.Drain(after, r.sent.Sent, drainQuiet, drainLimit); err != nil {
		return err
	}
	if r.received, err = r.sut.Finish(after); err != nil {
		return err
	}
	peer1, err := r.peer.Counters(after)
	if err != nil {
		return err
	}
	sut1, err := r.sut.Counters(after)
	if err != nil {
		return err
	}
	r.from = measure.Delta(measure.Snapshot(peer0), measure.Snapshot(peer1))
	r.to = measure.Delta(measure.Snapshot(sut0), measure.Snapshot(sut1))
	return nil
}

// load runs the generator. It is told to stop when ctx ends or the SUT's agent is gone, since nobody counts any more.
func (r *running) load(ctx context.Context) (agent.Generated, error) {
	type result struct {
		g   agent.Generated
		err error
	}
	c := make(chan result, 1)
	limit := time.Duration(2*r.s.Load.takes()*float64(time.Second)) + 30*time.Second
	go func() {
		g, err := r.peer.Run(context.WithoutCancel(ctx), limit)
		c <- result{g, err}
	}()
	select {
	case got := <-c:
		return got.g, got.err
	case <-r.sut.Gone():
		_ = r.peer.Stop(context.WithoutCancel(ctx))
		<-c
		return agent.Generated{}, fmt.Errorf("sut agent, while receiving: %w", agent.ErrDied)
	case <-ctx.Done():
		r.interrupted = true
		if err := r.peer.Stop(context.WithoutCancel(ctx)); err != nil {
			return agent.Generated{}, err
		}
		got := <-c
		return got.g, got.err
	}
}

// record turns what was counted into the trial's record.
func (r *running) record(t *compare.Trial, threads []rig.NAPIThread) error {
	g, rx := r.sent, r.received
	numbers := g.Sent - g.Duplicates
	t.Seconds = g.Seconds
	t.Sent = numbers
	t.Offered = numbers
	if pps := r.s.Load.PPS; pps > 0 {
		t.Seconds += 1 / pps // the last frame has its interval too: ten frames of 10/s take a second, not 0.9
		t.Offered = max(numbers, uint64(math.Round(pps*g.Seconds)))
	}
	if rx.FirstNS != 0 && rx.LastNS > rx.FirstNS {
		d := float64(rx.LastNS-rx.FirstNS) / 1e9
		t.ReceiveSeconds = &d
	}
	r.counters()
	t.Counters = nonZero(r.from.Counters, r.to.Counters)
	unique := rx.Unique
	if rx.ByDevice {
		unique = min(r.to.Counters["link.rx_packets"], numbers)
	}
	ledger := measure.Build(measure.Input{Arm: r.arm(), Sender: measure.SendLive, Generic: r.got.Effective["attach"] == "generic",
		ZeroCopy: r.got.Effective["bind"] == "zerocopy", Sent: numbers, Unique: unique, Injected: g.Duplicates, From: r.from.Counters, To: r.to.Counters})
	t.Received = min(unique, numbers)
	t.Lost, t.Ledger, t.Unexplained, t.Checks = ledger.Lost, ledger.Rows, ledger.Unexplained, ledger.Checks
	t.Duplicate, t.Reordered = rx.Duplicate, rx.Reordered
	t.Corrupt = rx.CorruptIP + rx.CorruptUDP + rx.BadContent
	t.Foreign = rx.Foreign + rx.WrongRun
	t.Late, t.LateMaxNs = g.LateSlots, g.MaxLateNS
	if err := r.cost(t); err != nil {
		return err
	}
	e, err := r.effective(threads)
	if err != nil {
		return err
	}
	t.Effective = &e
	t.Notes = r.got.Notes
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

// cost is the CPU time of the SUT, softirqs and NAPI included.
func (r *running) cost(t *compare.Trial) error {
	c := r.received.CPU
	if c == nil || r.s.Role == agent.Drop {
		return nil
	}
	rate := measure.TickRate{PerSecond: c.TicksPerSecond}
	cost, err := measure.Cost(measure.CostInput{Times: c.Times, SoftirqCPUs: r.softirqCPUs(c), Packets: t.Received, SpinNs: r.received.SpinNS, Rate: rate, Method: c.Method})
	if err != nil {
		return fmt.Errorf("cost of CPU: %w", err)
	}
	rec := cost.Record()
	t.CPU = &rec
	if tsc, err := cost.TSCPerPacket(); err == nil {
		t.TSCPerPacket = &tsc
	}
	return nil
}

// softirqCPUs are the CPUs whose network softirqs are the SUT's: its own, or with placement sender the generators'.
func (r *running) softirqCPUs(c *agent.CPU) []int {
	if c.Method == "schedstat" {
		return nil // threads only
	}
	cpus := map[int]bool{}
	for _, list := range [][]int{r.b.CPUs.Readers, r.b.CPUs.NAPI} {
		for _, n := range list {
			cpus[n] = true
		}
	}
	if r.b.CPUs.Placement == rig.Sender {
		for _, n := range r.b.CPUs.Gen {
			cpus[n] = true
		}
	}
	var out []int
	for n := range cpus {
		out = append(out, n)
	}
	return out
}

// judge marks a trial that broke its plan. The rules look at the peer and the machine, never at how well the arm did.
func (r *running) judge(t *compare.Trial, unique, numbers uint64) {
	g, rx := r.sent, r.received
	if r.interrupted {
		t.Invalidate("interrupted")
		return
	}
	if unique > numbers {
		t.Invalidate("%d different frames received, but only %d sent: a stranger sends under this run's id", unique, numbers)
	}
	if g.Seconds > 0 && g.Sent > 1 {
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
	if rx.Stopped > 0 {
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

// nonZero keeps the counters that moved, by side.
func nonZero(from, to map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for side, m := range map[string]map[string]uint64{"peer.": from, "sut.": to} {
		for k, v := range m {
			if v != 0 {
				out[side+k] = v
			}
		}
	}
	return out
}
