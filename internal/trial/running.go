// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/rig"
)

// running is a trial under way.
type running struct {
	b         *Bench
	s         Spec
	sut, peer *agent.Process
	got       agent.Prepared // by the SUT's agent
	peerGot   agent.Prepared

	sent        agent.Generated
	drained     agent.Drained
	received    agent.Received
	answered    agent.Received // of an echo test: by the peer, of the replies
	from, to    measure.Changes
	interrupted bool
	pending     uint64 // datagrams that reassembly held at the end
}

// observe reads both sides' counters, starts both parts, lets the traffic flow, and reads the counters again: from is the side
// that sends. What comes after the load is given a context that a cancelled trial does not end, for what is there is still to
// be counted.
func (r *running) observe(ctx context.Context, from, to *agent.Process, flow func(ctx, after context.Context) error) error {
	to0, err := to.Counters(ctx)
	if err != nil {
		return err
	}
	from0, err := from.Counters(ctx)
	if err != nil {
		return err
	}
	for _, p := range []*agent.Process{to, from} { // who receives is ready first
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	after := context.WithoutCancel(ctx)
	if err := flow(ctx, after); err != nil {
		return err
	}
	from1, err := from.Counters(after)
	if err != nil {
		return err
	}
	to1, err := to.Counters(after)
	if err != nil {
		return err
	}
	r.from = measure.Delta(measure.Snapshot(from0), measure.Snapshot(from1))
	r.to = measure.Delta(measure.Snapshot(to0), measure.Snapshot(to1))
	return nil
}

// span notes what was sent, and over what time it was sent and received; first and last are the receiver's ns, 0 when nothing
// came. Of a paced load the last packet has its interval too: ten packets of 10/s take a second, not 0.9.
func (r *running) span(t *compare.Trial, sent uint64, paced bool, first, last int64) {
	t.Seconds, t.Sent, t.Offered = r.sent.Seconds, sent, sent
	if pps := r.s.Load.PPS; pps > 0 && paced {
		t.Seconds += 1 / pps
		t.Offered = max(sent, uint64(math.Round(pps*r.sent.Seconds)))
	}
	if first != 0 && last > first {
		d := float64(last-first) / 1e9
		t.ReceiveSeconds = &d
	}
}

// load runs the peer's generator.
func (r *running) load(ctx context.Context) (agent.Generated, error) {
	return r.drive(ctx, r.peer, r.sut)
}

// drive runs the agent that sends. It is told to stop when ctx ends or the agent that counts is gone.
func (r *running) drive(ctx context.Context, sender, counter *agent.Process) (agent.Generated, error) {
	type result struct {
		g   agent.Generated
		err error
	}
	c := make(chan result, 1)
	limit := time.Duration(2*r.s.Load.takes()*float64(time.Second)) + 30*time.Second
	go func() {
		g, err := sender.Run(context.WithoutCancel(ctx), limit)
		c <- result{g, err}
	}()
	select {
	case got := <-c:
		return got.g, got.err
	case <-counter.Gone():
		_ = sender.Stop(context.WithoutCancel(ctx))
		<-c
		return agent.Generated{}, fmt.Errorf("%s, while receiving: %w", counter.Name(), agent.ErrDied)
	case <-ctx.Done():
		r.interrupted = true
		if err := sender.Stop(context.WithoutCancel(ctx)); err != nil {
			return agent.Generated{}, err
		}
		got := <-c
		return got.g, got.err
	}
}

// cost is the CPU time of the SUT, softirqs and NAPI included.
func (r *running) cost(t *compare.Trial) error {
	c := r.received.CPU
	if c == nil || r.s.Role == agent.Drop || r.s.Role == agent.Reflect {
		return nil
	}
	rate := measure.TickRate{PerSecond: c.TicksPerSecond}
	packets := t.Received
	if r.sent.Sending != nil {
		packets = t.Sent
	}
	cost, err := measure.Cost(measure.CostInput{Times: c.Times, SoftirqCPUs: r.softirqCPUs(c), Packets: packets, SpinNs: r.received.SpinNS, Rate: rate, Method: c.Method})
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

// disturbed is the time that strangers took from a reader: what tasks that are neither reader nor NAPI had of its CPU, as far
// as a reader was ready to run meanwhile. To such times its counters are blind, and what it loses then is not its arm's doing.
func (r *running) disturbed() time.Duration {
	c := r.received.CPU
	if c == nil {
		return 0
	}
	most := uint64(0)
	for _, t := range c.Times.CPUs {
		if slices.Contains(r.b.CPUs.Readers, t.CPU) {
			most = max(most, t.Other)
		}
	}
	if c.Waited != nil {
		most = min(most, *c.Waited)
	}
	return time.Duration(most)
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
