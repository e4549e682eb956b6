// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"maps"
	"strings"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// connecting is the course of the connection tests: the SUT serves TCP, the peer opens connections and asks. What is sent
// is a connection opened, what is received one that ended as planned.
type connecting struct{}

func (connecting) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	c := s.Connect
	c.Count, c.Seconds, c.Rate = s.Load.Count, s.Load.Seconds, s.Load.PPS
	sut = b.sutPart(s)
	sut.Role = agent.Listen
	engine, variant := s.Arm.Engine, s.Arm.Variant
	if s.PeerArm.Engine != "" {
		engine, variant = s.PeerArm.Engine, s.PeerArm.Variant
	}
	peer = agent.Prepare{Role: agent.Dial, Device: b.peerDevice(), Flow: s.Load.Flow, Run: s.RunID, Engine: engine, Variant: variant,
		Options: s.PeerArm.Options, CPUs: b.generators(), Queues: b.Queues, MaxSize: s.maxSize()}
	if peer.Options == nil {
		peer.Options = sut.Options
	}
	// A kernel's socket on veth leaves the checksum to a device that is not there.
	toSUT, toPeer := c, c
	toSUT.Partial, toPeer.Partial = engine == compare.Kernel, s.Arm.Engine == compare.Kernel
	sut.Connect, peer.Connect = &toSUT, &toPeer
	return sut, peer
}

// run lets the peer open and ask; it ends when the last connection has.
func (connecting) run(ctx context.Context, r *running) error {
	return r.observe(ctx, r.peer, r.sut, func(ctx, after context.Context) (err error) {
		if r.sent, err = r.load(ctx); err != nil {
			return err
		}
		select { // the last FIN of a connection is the server's to see
		case <-time.After(drainQuiet):
		case <-r.sut.Gone():
		}
		r.received, err = r.sut.Finish(after)
		return err
	})
}

func (c connecting) record(r *running, t *compare.Trial) error {
	g, rx := r.sent.Connected, r.received.Connected
	maps.Copy(r.from.Counters, g.Counters)
	maps.Copy(r.to.Counters, rx.Counters)
	t.Counters = nonZero(r.from.Counters, r.to.Counters)
	r.span(t, g.Opened, true, r.sent.StartNS, g.FinishNS)
	t.Received = min(g.Completed, g.Opened)
	t.Opened, t.Completed, t.Requests = &g.Opened, &g.Completed, &g.Responses
	t.Lost = t.Sent - t.Received
	left := t.Lost
	errors := compare.Errors{By: map[string]uint64{}}
	for _, row := range measure.ConnectionRows() {
		name := strings.TrimPrefix(row.ID, "tcp.")
		n := g.Errors[name]
		if name == "unfinished" {
			n = g.Open
		}
		if n = min(n, left); n == 0 {
			continue
		}
		left -= n
		errors.Total += n
		errors.By[name] = n
		t.Ledger = append(t.Ledger, compare.LedgerRow{At: row.ID, Packets: n, Witness: "peer " + row.Witness, Grade: compare.Exact, Note: row.Hint})
	}
	t.Errors, t.Unexplained = &errors, left
	t.Late, t.LateMaxNs = g.Late, uint64(max(g.MaxLateNS, 0))
	if n := float64(t.Received); n > 0 {
		per := float64(r.to.Counters["link.rx_packets"]+r.to.Counters["link.tx_packets"]) / n
		t.PacketsPerConnection = &per
	}
	if err := r.cost(t); err != nil {
		return err
	}
	c.judge(r, t)
	return nil
}

func (connecting) judge(r *running, t *compare.Trial) {
	g := r.sent.Connected
	if r.interrupted {
		t.Invalidate("interrupted")
		return
	}
	if t.Sent > 1 && t.Seconds > 0 {
		if e := rateError(float64(t.Sent-1)/t.Seconds, r.s.Load.PPS); e != "" {
			t.Invalidate("%s", e)
		}
	}
	if t.Sent > 0 && t.Seconds <= 0 {
		t.Invalidate("%d connections have no duration: open more", t.Sent)
	}
	if g.Opened < r.s.Load.Count {
		t.Invalidate("the client ended after %d of %d connections", g.Opened, r.s.Load.Count)
	}
	if r.received.Stopped > 0 {
		t.Invalidate("the server's process was stopped and continued (SIGSTOP, SIGCONT)")
	}
	for name, counters := range map[string]map[string]uint64{"SUT": r.to.Counters, "peer": r.from.Counters} {
		if n := counters["link.carrier_changes"]; n > 0 {
			t.Invalidate("the link of the %s went down or came up during the trial (%d carrier changes)", name, n)
		}
	}
}
