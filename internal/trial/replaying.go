// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"maps"
	"strings"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/rig"
)

// replaying is the course of replay: the peer sends a capture's frames, the SUT follows their sessions.
type replaying struct{}

func (replaying) parts(b *Bench, s Spec) (sut, peer agent.Prepare) {
	sut = b.sutPart(s)
	replay := *s.Load.Replay
	sut.Role, sut.MaxSize, sut.Replay = agent.Following, maxReplayed, &replay
	if replay.DstMAC == nil && !replay.KeepMAC {
		replay.DstMAC = foreignMAC()
	}
	peer = agent.Prepare{Role: agent.Replaying, Device: b.peerDevice(), Run: s.RunID, CPUs: b.generators(), Queues: b.Queues, Replay: &replay}
	return sut, peer
}

// maxReplayed is the longest frame of a capture with FCS: what a live frame holds.
const maxReplayed = 3412

// segmentation are the offloads that, while any is on, keep a veth from giving frames of a raw sender to the other end's NAPI
// (drivers/net/veth.c, veth_skb_is_eligible_for_gro): the stack would then run on the sender's core, and for one engine only.
func segmentation() map[string]bool {
	return map[string]bool{"tx-tcp-segmentation": false, "tx-tcp6-segmentation": false, "tx-tcp-ecn-segmentation": false, "tx-tcp-mangleid-segmentation": false}
}

func (replaying) run(ctx context.Context, r *running) error {
	if r.b.Queues > 1 && r.b.Rig.Kind == rig.Veth && r.b.Far == nil {
		if err := r.b.Rig.Peer.SetFeatures(segmentation()); err != nil {
			return err
		}
	}
	return receiving{}.run(ctx, r)
}

func (c replaying) record(r *running, t *compare.Trial) error {
	g, rx := r.sent, r.received
	r.span(t, g.Sent, true, rx.FirstNS, rx.LastNS)
	r.counters()
	if r.arm() == measure.ArmPacket {
		tapped(r.to.Counters)
	}
	t.Counters = nonZero(r.from.Counters, r.to.Counters)
	sender := measure.SendLive
	if r.b.Queues > 1 {
		sender = measure.SendXSK
	}
	ledger := measure.Build(measure.Input{Arm: r.arm(), Sender: sender, Generic: r.got.Effective["attach"] == "generic",
		ZeroCopy: r.got.Effective["bind"] == "zerocopy", Sent: g.Sent, Unique: rx.Unique, From: r.from.Counters, To: r.to.Counters})
	t.Received = min(rx.Unique, g.Sent)
	t.Lost, t.Ledger, t.Unexplained, t.Checks = ledger.Lost, ledger.Rows, ledger.Unexplained, ledger.Checks
	t.Foreign = rx.Foreign
	t.Late, t.LateMaxNs = g.LateSlots, g.MaxLateNS
	if len(rx.PerWorker) > 1 {
		t.PerWorker = rx.PerWorker
	}
	t.Followed = followed(rx.Followed)
	if t.Effective != nil {
		if t.Effective.Other == nil {
			t.Effective.Other = map[string]string{}
		}
		if m, ok := r.peerGot.Effective["method"].(string); ok {
			t.Effective.Other["sender"] = m
		}
	}
	if err := r.cost(t); err != nil {
		return err
	}
	r.judge(t, rx.Unique, g.Sent)
	if n := ledger.OwnExcess; n > 0 {
		t.Invalidate("the run's own witnesses count %d packets more than were lost", n)
	}
	return nil
}

// tapped takes away the counters of what the stack does with frames after the tap has had them: to another host's address,
// it drops every one, and none is lost by that.
func tapped(c map[string]uint64) {
	maps.DeleteFunc(c, func(name string, _ uint64) bool {
		for _, layer := range []string{"ip.", "ip6.", "udp.", "udp6.", "link.rx_otherhost_dropped", "link.rx_nohandler"} {
			if strings.HasPrefix(name, layer) {
				return true
			}
		}
		return false
	})
}

// followed is the record of what the workers saw.
func followed(f *agent.Followed) *compare.Followed {
	if f == nil {
		return nil
	}
	out := &compare.Followed{Lines: f.Lines}
	for _, w := range f.Workers {
		out.Workers = append(out.Workers, compare.FollowedWorker{Received: w.Received, Loops: w.Loops, TCP: w.TCP, UDP: w.UDP, Other: w.Other,
			Closed: w.Closed, Reset: w.Reset, Untracked: w.Untracked, Requests: w.Requests, Cold: w.Cold,
			TSCCold: perFrame(w.ColdTicks, w.Cold), TSCWarm: perFrame(w.WarmTicks, w.Warm)})
	}
	return out
}

func perFrame(ticks, frames uint64) *float64 {
	if frames == 0 {
		return nil
	}
	return compare.Num(float64(ticks) / float64(frames))
}
