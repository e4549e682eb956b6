// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"
	"strings"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/packet"
)

// sending is the course of udp-tx: the SUT sends, an XDP program of the peer counts what arrives. Its limit is the
// live-frame generator in the sender's place.
type sending struct{}

// reversed is the flow of the same ports from the SUT to the peer.
func reversed(f packet.Flow) packet.Flow {
	f.SrcMAC, f.DstMAC, f.Src, f.Dst = f.DstMAC, f.SrcMAC, f.Dst, f.Src
	return f
}

func (sending) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	s.Load.Flow = reversed(s.Load.Flow)
	sut = b.sutPart(s)
	sut.Generate = &agent.Generator{Sizes: s.Load.Sizes, Rate: s.Load.PPS, Count: s.Load.Count, Seconds: s.Load.Seconds, Faults: s.Load.Faults}
	streams := max(b.Queues, 1)
	if s.Role == agent.Generate {
		sut.Generate.Coalesce, streams = true, len(b.CPUs.Readers)
	}
	sut.Streams = streams
	peer = agent.Prepare{Role: agent.Count, Device: b.peerDevice(), Flow: s.Load.Flow, Run: s.RunID, Queues: b.Queues, MaxSize: s.maxSize(), Streams: streams,
		Options: map[string]string{}}
	if s.Content && (s.Role == agent.Generate || s.Arm.Engine == compare.XDP || s.Arm.Variant == "packet") {
		// Their senders write the checksums, so they can be checked. Else the peer does the same work for all arms.
		peer.Options["csum"] = "complete"
	}
	return sut, peer
}

// run lets the SUT send and waits for the last frame at the peer.
func (sending) run(ctx context.Context, r *running) error {
	return r.observe(ctx, r.sut, r.peer, func(ctx, after context.Context) (err error) {
		if r.sent, err = r.drive(ctx, r.sut, r.peer); err != nil {
			return err
		}
		if r.drained, err = r.peer.Drain(after, r.sent.Sent, drainQuiet, drainLimit); err != nil {
			return err
		}
		r.received, err = r.peer.Finish(after)
		return err
	})
}

// record makes the trial's record. What the engine took and the sender's side dropped never left, so it is not sent: the
// ledger is made of all that the engine took, and then split.
func (c sending) record(r *running, t *compare.Trial) error {
	g, rx := r.sent, r.received
	c.counters(r)
	t.Counters = nonZero(r.to.Counters, r.from.Counters)
	handed := g.Sent
	if n, ok := r.from.Counters["xsk.tx_completed"]; ok {
		handed = min(handed, n) // what the kernel was not done with when the way went away
	}
	ledger := measure.Build(measure.Input{Arm: measure.ArmSink, Sender: c.sender(r.s), Generic: r.peerGot.Effective["attach"] == "generic",
		Sent: handed, Unique: rx.Unique, Injected: g.Duplicates, From: r.from.Counters, To: r.to.Counters, FromName: "SUT", ToName: "peer"})
	t.Handed = &handed
	t.Sent = handed
	for _, row := range ledger.Rows {
		if measure.AtSender(row.At) {
			t.Unsent = append(t.Unsent, row)
			t.Sent -= row.Packets
			continue
		}
		t.Ledger = append(t.Ledger, row)
	}
	t.Received = min(rx.Unique, t.Sent)
	t.Lost, t.Unexplained, t.Checks = t.Sent-t.Received, ledger.Unexplained, ledger.Checks
	t.Duplicate, t.Reordered = rx.Duplicate, rx.Reordered
	t.Corrupt = rx.CorruptIP + rx.CorruptUDP + rx.BadContent
	t.Foreign = rx.Foreign + rx.WrongRun
	t.Late, t.LateMaxNs = g.LateSlots, g.MaxLateNS
	r.span(t, t.Sent, true, 0, 0)
	if g.Sending != nil {
		if len(g.Sending.PerWorker) > 1 {
			t.PerWorker = g.Sending.PerWorker
		}
		r.received.CPU, r.received.SpinNS = g.Sending.CPU, g.Sending.SpinNS
		if err := r.cost(t); err != nil {
			return err
		}
	}
	c.effective(r, t)
	c.judge(r, t, handed)
	if n := ledger.OwnExcess; n > 0 {
		t.Invalidate("the run's own witnesses count %d packets more than were lost", n)
	}
	return nil
}

// sender is what the ledger knows of the SUT's way to send.
func (sending) sender(s Spec) measure.Sender {
	switch {
	case s.Role == agent.Generate:
		return measure.SendLive
	case s.Arm.Engine == compare.XDP:
		return measure.SendXSK
	case s.Arm.Variant == "packet":
		return measure.SendPacket
	}
	return measure.SendUDP
}

// counters adds what both parts counted to what the kernel did, under the ledger's names.
func (sending) counters(r *running) {
	to, rx := r.to.Counters, r.received
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
	from := r.from.Counters
	from["gen.sent"] = r.sent.Sent
	from["gen.duplicate"] = r.sent.Duplicates
	from["gen.late"] = r.sent.LateSlots
	if s := r.sent.Sending; s != nil {
		for k, v := range s.Counters {
			from[k] = v
		}
		from["send.empty_turns"], from["send.no_room"] = s.EmptyTurns, s.NoRoom
	}
}

// effective says where the peer receives, which the sender feels, instead of the SUT's own NAPI, which has nothing to do.
func (sending) effective(r *running, t *compare.Trial) {
	e := t.Effective
	e.NAPI, e.Sched, e.NAPICPUs, e.GRO = "", "", nil, ""
	if e.Other == nil {
		e.Other = map[string]string{}
	}
	if a, ok := r.peerGot.Effective["attach"].(string); ok {
		e.Other["peer_xdp"] = a
	}
	switch {
	case r.b.Far != nil:
	case r.b.PeerNAPI.Threaded:
		e.Other["peer_napi"] = "threaded on CPU " + strings.Trim(fmt.Sprint(r.b.PeerNAPI.CPUs), "[]")
	default:
		e.Other["peer_napi"] = "inline"
	}
	t.Notes = append(t.Notes, r.peerGot.Notes...)
}

// judge marks a trial that broke its plan. How fast the SUT sent is its result; the peer, the machine and the way are not.
func (sending) judge(r *running, t *compare.Trial, handed uint64) {
	g, rx := r.sent, r.received
	if r.interrupted {
		t.Invalidate("interrupted")
		return
	}
	if rx.Unique > handed {
		t.Invalidate("%d different frames received, but only %d sent: a stranger sends under this run's id", rx.Unique, handed)
	} else if rx.Unique > t.Sent {
		t.Invalidate("%d frames received, but only %d left the SUT by its device's count", rx.Unique, t.Sent)
	}
	if g.Sent > 0 && t.Seconds <= 0 {
		t.Invalidate("what was sent (%d) has no duration: send more, or at a rate", g.Sent)
	}
	if s := g.Sending; s != nil {
		if s.Failed != "" {
			t.Invalidate("sending ended after %d packets: %s", handed, s.Failed)
		}
		if s.Continued > 0 {
			t.Invalidate("the sender's process was stopped and continued (SIGSTOP, SIGCONT)")
		}
		if stall := float64(s.StallNS) / 1e9; stall > maxStallShare*g.Seconds {
			t.Invalidate("the machine under the sender stood still for %v (%.1f %% of the trial)", time.Duration(s.StallNS).Round(time.Microsecond), 100*stall/g.Seconds)
		}
	}
	if !r.drained.Complete {
		t.Invalidate("frames still came %v after the last was sent", drainLimit)
	}
	if r.b.Far == nil && r.b.PeerNAPI.Threaded {
		if err := r.b.Rig.Peer.VerifyNAPI(r.b.PeerNAPI); err != nil {
			t.Invalidate("the peer's placement not kept: %v", err)
		}
	}
	for _, side := range []struct {
		name     string
		counters map[string]uint64
	}{{"SUT", r.from.Counters}, {"peer", r.to.Counters}} {
		if n := side.counters["link.carrier_changes"]; n > 0 {
			t.Invalidate("the link of the %s went down or came up during the trial (%d carrier changes)", side.name, n)
		}
	}
	if n := len(r.to.Reset) + len(r.from.Reset); n > 0 {
		t.Invalidate("%d counters were reset during the trial (%v): the device was reconfigured", n, append(r.to.Reset, r.from.Reset...))
	}
}
