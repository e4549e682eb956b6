// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// echoing is the course of udp-echo: the peer asks, the SUT answers, and a program on the peer's device meters the answers.
// Sent and received are both counted at the peer: a packet is lost when its answer does not come, whichever way it went
// missing.
type echoing struct{}

func (echoing) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	sut, peer = b.sutPart(s), b.generatePart(s)
	peer.Role, peer.Queues = agent.Ping, b.Queues
	peer.Pinger = &agent.Pinger{PingPong: s.Load.PingPong}
	// Frames that wait for others to go along would have waited.
	peer.Generate.Coalesce, peer.Generate.Batch = false, 1
	return sut, peer
}

// echoQuiet is how long no answer must have come. A responder that is away for that long still answers when it is back, and an
// answer that took long is no loss.
const echoQuiet = 300 * time.Millisecond

// run is that of a receive test, and waits for the last answer too.
func (echoing) run(ctx context.Context, r *running) error {
	return r.observe(ctx, r.peer, r.sut, func(ctx, after context.Context) (err error) {
		if r.sent, err = r.load(ctx); err != nil {
			return err
		}
		if r.drained, err = r.sut.Drain(after, r.sent.Sent, echoQuiet, drainLimit); err != nil {
			return err
		}
		replies, err := r.peer.Drain(after, r.sent.Sent, echoQuiet, drainLimit)
		if err != nil {
			return err
		}
		r.drained.Complete = r.drained.Complete && replies.Complete
		if r.received, err = r.sut.Finish(after); err != nil {
			return err
		}
		r.answered, err = r.peer.Finish(after)
		return err
	})
}

func (e echoing) record(r *running, t *compare.Trial) error {
	g, rx, back := r.sent, r.received, r.answered
	numbers := g.Sent - g.Duplicates
	r.span(t, numbers, !r.s.Load.PingPong, back.FirstNS, back.LastNS)
	r.counters()
	r.counterReplies()
	t.Counters = nonZero(r.from.Counters, r.to.Counters)

	// A number whose answer is in was read, whatever else is known of it.
	read := min(max(rx.Unique, back.Unique), numbers)
	t.Received = min(back.Unique, numbers)
	t.Lost = numbers - t.Received
	excess := e.ledger(r, t, numbers, read)
	t.Duplicate, t.Reordered = back.Duplicate, back.Reordered
	t.Corrupt = rx.CorruptIP + rx.CorruptUDP + rx.BadContent + back.BadContent + back.Short
	t.Foreign = rx.Foreign + rx.WrongRun + back.WrongRun
	if len(rx.PerWorker) > 1 {
		t.PerWorker = rx.PerWorker
	}
	t.Late, t.LateMaxNs = g.LateSlots, g.MaxLateNS
	if g.Sent > 0 {
		t.LateMeanNs = compare.Num(float64(g.LateNS) / float64(g.Sent))
	}
	t.LatencyNs = latencyRecord(back.Latency, r.s.Load.PingPong)
	if err := r.cost(t); err != nil {
		return err
	}
	r.judge(t, back.Unique, numbers)
	e.judge(r, t)
	if excess > 0 {
		t.Invalidate("the run's own witnesses count %d packets more than were lost", excess)
	}
	return nil
}

// ledger places what was lost on either way: rows of the answers' way have "reply." before their id. It returns what the
// run's own witnesses count too much.
func (echoing) ledger(r *running, t *compare.Trial, numbers, read uint64) uint64 {
	generic, zeroCopy := r.got.Effective["attach"] == "generic", r.got.Effective["bind"] == "zerocopy"
	arm, sender := r.arm(), measure.SendUDP
	switch {
	case r.s.Role == agent.Reflect:
		arm, sender = measure.ArmSink, measure.SendXDPTX
	case r.s.Arm.Engine == compare.XDP:
		sender = measure.SendXSK
	}
	there := measure.Build(measure.Input{Arm: arm, Sender: measure.SendLive, Generic: generic, ZeroCopy: zeroCopy,
		Sent: numbers, Unique: read, Injected: r.sent.Duplicates, From: r.from.Counters, To: r.to.Counters})
	back := measure.Build(measure.Input{Arm: measure.ArmSink, Sender: sender,
		Sent: read, Unique: t.Received, Injected: r.received.Duplicate + r.received.Late,
		From: r.to.Counters, To: r.from.Counters, FromName: "SUT", ToName: "peer"})
	t.Ledger = there.Rows
	for _, row := range back.Rows {
		row.At = compare.ReplyRow + row.At
		t.Ledger = append(t.Ledger, row)
	}
	t.Checks = there.Checks
	for _, c := range back.Checks {
		c.What = "replies: " + c.What
		t.Checks = append(t.Checks, c)
	}
	if r.s.Role != agent.Reflect {
		c := r.to.Counters
		a, b := r.received.Received, c["send.sent"]+c["send.failed"]
		t.Checks = append(t.Checks, compare.CrossCheck{What: "requests read = answers sent + answers that could not be", A: a, B: b, OK: a == b})
	}
	t.Unexplained = there.Unexplained + back.Unexplained
	return there.OwnExcess + back.OwnExcess
}

// counterReplies adds what the meter counted to the peer's side.
func (r *running) counterReplies() {
	back, from := r.answered, r.from.Counters
	from["reader.received"] = back.Received
	from["reader.unique"] = back.Unique
	from["reader.duplicate"] = back.Duplicate
	from["reader.reordered"] = back.Reordered
	from["reader.late"] = back.Late
	from["reader.short"] = back.Short
	from["reader.foreign"] = back.WrongRun
	from["reader.corrupt_payload"] = back.BadContent
	from["gen.abandoned"] = r.sent.Abandoned
}

// echo says whether what is measured is how long answers take.
func (r *running) echo() bool { return r.s.Test == "udp-echo" }

// judge adds what only an echo test has. A responder that was away makes no trial invalid: how long its answers took counts
// from the intended time of the requests, so its absence is in the result; the record says what it was.
func (echoing) judge(r *running, t *compare.Trial) {
	if r.received.Stopped > 0 {
		t.Notes = append(t.Notes, "the responder's process was stopped and continued (SIGSTOP, SIGCONT) during a trial: its latencies show it")
	}
	if l := r.answered.Latency; l != nil {
		if l.Negative > 0 {
			t.Invalidate("%d answers came before their requests were due: the stamps are of another clock", l.Negative)
		}
		if l.Over > 0 {
			t.Notes = append(t.Notes, fmt.Sprintf("%d answers took longer than the histogram reaches (137 s); the maximum is exact", l.Over))
		}
	}
}

// latencyRecord makes the record's distribution of what the meter saw; nil when it saw nothing.
func latencyRecord(l *agent.Latency, pingPong bool) *compare.Latency {
	if l == nil || l.Count == 0 {
		return nil
	}
	out := &compare.Latency{Count: l.Count, Min: compare.Num(float64(l.MinNS)), Max: compare.Num(float64(l.MaxNS)),
		Mean: compare.Num(float64(l.SumNS) / float64(l.Count)), Base: "intended", Buckets: l.Buckets}
	if pingPong {
		out.Base = "sent"
	}
	if l.IPDVCount > 0 {
		out.Jitter, out.JitterCount = compare.Num(float64(l.IPDVSumNS)/float64(l.IPDVCount)), l.IPDVCount
	}
	out.Fill()
	return out
}
