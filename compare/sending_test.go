// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"strings"
	"testing"
)

func sendPlan(arms ...string) Plan {
	p := DefaultPlan("udp-tx")
	if len(arms) > 0 {
		p.Arms = arms
	}
	p.Complete()
	return p
}

func TestSendPlan(t *testing.T) {
	p := sendPlan()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if p.Rates[0].Unit != MaxRate || strings.Join(p.Arms, " ") != "kernel:sendmmsg xdp:auto" {
		t.Errorf("default plan: %v at %v", p.Arms, p.Rates)
	}
	for _, c := range []struct {
		arm, want string
	}{
		{"kernel:recvmmsg", "not an arm of udp-tx"},
		{"kernel:write+batch=3", "not an option of kernel:write"},
		{"kernel:sendmmsg+batch=1025", "1024"},
		{"xdp:auto+wait=spin", "no use"},
		{"xdp:asavie+csum=off", "no use"},
	} {
		p := sendPlan(c.arm)
		err := p.Validate()
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want it to speak of %q", c.arm, err, c.want)
		}
	}
	for _, arm := range []string{"kernel:write+sndbuf=64k", "kernel:sendmmsg+gso+batch=128", "kernel:packet", "xdp:copy+ring=512+batch=32", "xdp:asavie+ring=64"} {
		p := sendPlan(arm)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", arm, err)
		}
	}
	p = sendPlan()
	p.Placement = PlaceShared
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "--peer-napi") {
		t.Errorf("a placement was accepted: %v", err)
	}
}

// A trial of a send test closes twice: what was handed over is sent or has a row, and what was sent is received or has one.
func TestSendTrialIdentities(t *testing.T) {
	handed := uint64(110)
	good := Trial{Seconds: 1, Handed: &handed, Sent: 100, Received: 97, Lost: 3, Valid: true, Unsent: []LedgerRow{{At: "tx.device_drop", Packets: 10, Grade: Exact}},
		Ledger: []LedgerRow{{At: "veth.ring_full", Packets: 3, Grade: Exact}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	bad := good
	bad.Unsent = []LedgerRow{{At: "tx.device_drop", Packets: 9, Grade: Exact}}
	if err := bad.Check(); err == nil {
		t.Error("a packet that is nowhere passed")
	}
	bad.Unsent = []LedgerRow{{Packets: 10, Grade: "sure"}}
	if err := bad.Check(); err == nil || !strings.Contains(err.Error(), "no place") || !strings.Contains(err.Error(), "grade") {
		t.Errorf("a row without place and grade: %v", err)
	}
}

// sendTrials are six blocks of two arms at the given rates in packets/s, of a plan that asks for asked (0 is max).
func sendDoc(asked, a, b float64, workA, workB float64) *Document {
	d := &Document{Test: "udp-tx", Plan: DefaultPlan("udp-tx"), Traffic: Traffic{Size: Size{Bytes: 64}, Rate: Rate{Unit: MaxRate}}}
	if asked > 0 {
		d.Traffic.Rate, d.Traffic.PPS = Rate{Unit: PPS, Value: asked}, Num(asked)
	}
	for block := 1; block <= 6; block++ {
		for i, arm := range []struct {
			name      string
			pps, work float64
		}{{"kernel:sendmmsg", a, workA}, {"xdp:auto", b, workB}, {"xdp:auto", b, workB}, {"kernel:sendmmsg", a, workA}} {
			n := uint64(arm.pps) + uint64(10*block+i)
			handed := n + 5
			d.Trials = append(d.Trials, Trial{Arm: arm.name, Kind: Measured, Block: block, Position: i + 1, Attempt: 1, Seconds: 1, Offered: max(n, uint64(asked)), Sent: n,
				Received: n, Handed: &handed, Unsent: []LedgerRow{{At: "tx.device_drop", Packets: 5, Witness: "w", Grade: Exact}}, Valid: true,
				CPU: &CPU{WorkNsPerPacket: Num(arm.work + float64(block))}})
		}
	}
	Conclude(d)
	return d
}

// Where the SUT sends, different loads are the result, not an obstacle; and the metric is the one that can differ.
func TestSendVerdicts(t *testing.T) {
	d := sendDoc(0, 500_000, 1_800_000, 1200, 500)
	if v := d.Verdict; v == nil || v.Metric != MetricReceived || v.Word != Faster || v.Bound != NoBound || *v.Ratio < 3.5 || *v.Ratio > 3.7 {
		t.Errorf("flood: %+v", d.Verdict)
	}
	d = sendDoc(1_000_000, 500_000, 1_000_000, 1200, 500)
	if v := d.Verdict; v.Metric != MetricReceived || v.Word != Faster || v.Bound != LowerBound {
		t.Errorf("one arm sends all that was asked for: %+v", v)
	}
	d = sendDoc(100_000, 100_000, 100_000, 1200, 500)
	if v := d.Verdict; v.Metric != MetricWork || v.Word != Faster || *v.Ratio < 2.3 || *v.Ratio > 2.5 {
		t.Errorf("both send all: %+v", v)
	}
	a := d.Arms[0]
	if a.Handed == nil || *a.Handed != a.Sent+60 || len(a.Unsent) != 1 || a.Unsent[0].Packets != 60 {
		t.Errorf("arm's totals: handed %v, sent %d, %+v", a.Handed, a.Sent, a.Unsent)
	}
}
