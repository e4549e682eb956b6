// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"strings"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/rig"
)

// dnsPort is where the SUT answers.
const dnsPort = 53

// answering is the course of dns: the peer asks for names, the SUT answers for a zone. Sent and received are both counted at
// the peer: a query is lost when no right answer to it comes, whichever way it went missing.
type answering struct{}

// dnsperf tells whether the program of that name asks.
func (s Spec) dnsperf() bool { return s.Driver == compare.DriverDnsperf }

func (answering) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	s.Load.Flow.DstPort = dnsPort
	sut, peer = b.sutPart(s), b.generatePart(s)
	sut.Role, sut.DNS, peer.DNS = agent.AnswerDNS, s.DNS, s.DNS
	peer.Role, peer.Queues = agent.AskDNS, b.Queues
	if s.dnsperf() {
		peer.Role = agent.Dnsperf
	}
	return sut, peer
}

// run is that of an echo test. dnsperf's own kernel leaves UDP checksums to the device, and a veth never fills them in: its
// frames would not be those of a cable, and AF_XDP's readers would find them wrong. So the peer's kernel computes them, for
// all arms.
func (answering) run(ctx context.Context, r *running) (err error) {
	if r.s.dnsperf() && r.b.Rig.Kind == rig.Veth {
		restore, err := r.b.Rig.Peer.ComputeChecksums()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, restore()) }()
	}
	return echoing{}.run(ctx, r)
}

func (a answering) record(r *running, t *compare.Trial) error {
	g, rx, back := r.sent, r.received, r.answered
	r.span(t, g.Sent, !r.s.dnsperf(), back.FirstNS, back.LastNS)
	r.counters()
	r.counterReplies()
	for k, v := range back.Counters {
		r.from.Counters[k] = v
	}
	t.Counters = nonZero(r.from.Counters, r.to.Counters)

	t.Received = min(back.Unique, g.Sent)
	t.Lost = g.Sent - t.Received
	excess := a.ledger(r, t)
	wrong := back.Counters["reader.wrong"]
	t.Errors = &compare.Errors{Total: wrong, By: map[string]uint64{}}
	for _, kind := range []string{"question", "code", "answer"} {
		if n := back.Counters["reader.wrong_"+kind]; n > 0 {
			t.Errors.By["wrong "+kind] = n
		}
	}
	t.Duplicate = back.Counters["reader.unasked"] - min(back.Counters["reader.unasked"], rowOf(t, compare.ReplyRow+"reader.unasked"))
	t.Corrupt = rx.CorruptIP + rx.CorruptUDP + back.CorruptIP + back.CorruptUDP + back.Short
	t.Foreign = rx.Foreign
	if len(rx.PerWorker) > 1 {
		t.PerWorker = rx.PerWorker
	}
	t.Late, t.LateMaxNs = g.LateSlots, g.MaxLateNS
	if g.Sent > 0 && !r.s.dnsperf() {
		t.LateMeanNs = compare.Num(float64(g.LateNS) / float64(g.Sent))
	}
	t.LatencyNs = latencyRecord(back.Latency, r.s.dnsperf()) // dnsperf counts from the sending
	if err := r.cost(t); err != nil {
		return err
	}
	a.judge(r, t)
	if excess > 0 {
		t.Invalidate("the run's own witnesses count %d packets more than were lost", excess)
	}
	return nil
}

// ledger places what was lost on either way, as that of an echo test.
func (answering) ledger(r *running, t *compare.Trial) uint64 {
	generic, zeroCopy := r.got.Effective["attach"] == "generic", r.got.Effective["bind"] == "zerocopy"
	asks, reads, sender := measure.SendLive, measure.ArmSink, measure.SendUDP
	if r.s.dnsperf() {
		asks, reads = measure.SendUDP, measure.ArmUDP
	}
	if r.s.Arm.Engine == compare.XDP {
		sender = measure.SendXSK
	}
	read := min(max(r.received.Received, t.Received), t.Sent)
	there := measure.Build(measure.Input{Arm: r.arm(), Sender: asks, Generic: generic, ZeroCopy: zeroCopy,
		Sent: t.Sent, Unique: read, From: r.from.Counters, To: r.to.Counters})
	back := measure.Build(measure.Input{Arm: reads, Sender: sender, Sent: read, Unique: t.Received,
		From: r.to.Counters, To: r.from.Counters, FromName: "SUT", ToName: "peer"})
	t.Ledger, t.Checks = there.Rows, there.Checks
	for _, row := range back.Rows {
		row.At = compare.ReplyRow + row.At
		t.Ledger = append(t.Ledger, row)
	}
	for _, c := range back.Checks {
		c.What = "replies: " + c.What
		t.Checks = append(t.Checks, c)
	}
	c := r.to.Counters
	check := func(what string, a, b uint64) {
		t.Checks = append(t.Checks, compare.CrossCheck{What: what, A: a, B: b, OK: a == b})
	}
	check("queries read = answers sent + answers that could not be + no answer due", r.received.Received, c["send.sent"]+c["send.failed"]+c["send.silent"])
	if t.Lost == 0 && r.from.Counters["reader.unasked"] == 0 {
		for name, n := range c {
			if code, ok := strings.CutPrefix(name, "answer."); ok {
				check("answers made with code "+code+" = answers received with it", n, r.from.Counters["reply."+code])
			}
		}
	}
	t.Unexplained = there.Unexplained + back.Unexplained
	return there.OwnExcess + back.OwnExcess
}

// rowOf is what a ledger row has.
func rowOf(t *compare.Trial, at string) uint64 {
	for _, row := range t.Ledger {
		if row.At == at {
			return row.Packets
		}
	}
	return 0
}

// judge is that of a receive test, and what only this one has. What dnsperf offers depends on the answers it gets, so that
// its rate is no matter of the plan.
func (answering) judge(r *running, t *compare.Trial) {
	s := r.s
	if s.dnsperf() {
		r.s.Load.PPS, r.s.Load.Count = 0, 0
	}
	r.judge(t, min(r.received.Received, r.sent.Sent), r.sent.Sent)
	r.s = s
	if n := r.received.Received; n > r.sent.Sent {
		t.Invalidate("%d queries received, but only %d sent: a stranger asks too", n, r.sent.Sent)
	}
	for _, c := range t.Checks {
		if !c.OK && strings.HasPrefix(c.What, "answers made") {
			t.Invalidate("%s: %d and %d", c.What, c.A, c.B)
		}
	}
	if n := r.from.Counters["gen.forgotten"]; n > 0 && r.drained.Complete {
		t.Notes = append(t.Notes, "more queries were out than a flow has ids: answers that came after their id was used again are not told apart; use more --flows")
	}
}
