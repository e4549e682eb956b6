// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// machine is a made-up rig: what each arm can receive, what the machine's
// noise does to that, and what goes wrong.
type machine struct {
	offered  float64            // packets/s; 0 is a closed loop: each arm is offered what it takes
	capacity map[string]float64 // packets/s an arm can take, by label
	work     map[string]float64 // CPU ns per packet, by label; nil: not measured
	noise    func() float64     // factor on capacity and work of a trial; nil: none
	drift    float64            // factor by which capacity grows over the run
	invalid  func(TrialSpec) bool
	done     int
}

// trial makes up the counts of one one-second trial.
func (m *machine) trial(spec TrialSpec) Trial {
	factor := 1.0
	if m.noise != nil {
		factor = m.noise()
	}
	m.done++
	takes := m.capacity[spec.Label] * factor * math.Pow(1+m.drift, float64(m.done))
	sent := m.offered
	if sent == 0 {
		sent = takes
	}
	received := min(takes, sent)
	t := Trial{Seconds: 1, Offered: uint64(sent), Sent: uint64(sent), Received: uint64(received), Valid: true}
	t.Lost = t.Sent - t.Received
	if t.Lost > 0 {
		ring := t.Lost / 3
		t.Ledger = []LedgerRow{
			{At: "veth.ring_full", Packets: ring, Witness: "peer ethtool tx_queue_0_xdp_xmit_errors", Grade: Exact},
			{At: "udp.socket_full", Packets: t.Lost - ring, Witness: "SO_MEMINFO drops", Grade: Bounded},
		}
	}
	if m.work != nil {
		t.CPU = &CPU{WorkNsPerPacket: Num(m.work[spec.Label] * factor), SpinNsPerPacket: Num(100), Cores: Num(1)}
	}
	if m.invalid != nil && m.invalid(spec) {
		t.Invalidate("made up")
	}
	return t
}

// measure runs a whole comparison on m and concludes it.
func (m *machine) measure(tb testing.TB, blocks int, seed uint64, arms ...string) *Document {
	tb.Helper()
	d := &Document{Schema: SchemaID, Version: "test", Started: time.Unix(1e9, 0).UTC(), Test: "udp-rx", Seed: seed, Plan: DefaultPlan("udp-rx")}
	d.Plan.Arms, d.Plan.Blocks, d.Plan.Seed = arms, blocks, seed
	d.Plan.Complete()
	d.Traffic = Traffic{Size: d.Plan.Sizes[0], FrameBytes: 64, PayloadBytes: 18, IPVersion: 4, Rate: d.Plan.Rates[0], PPS: Num(m.offered), Flows: 1, Queues: 1}
	d.Rig = Rig{Kind: "veth", Placement: PlaceShared, CPUs: CPUs{"sut": {0}, "peer": {1}}}
	if m.offered == 0 {
		d.Traffic.Rate, d.Traffic.PPS, d.Rig.Placement = Rate{Unit: MaxRate}, nil, PlaceSender
	}
	s, err := d.Plan.Schedule()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := Run(context.Background(), s, RunOptions{ClosedLoop: d.ClosedLoop()}, func(_ context.Context, spec TrialSpec) (Trial, error) {
		return m.trial(spec), nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	d.Trials, d.Incomplete, d.Reason = out.Trials, out.Incomplete, out.Reason
	Conclude(d)
	return d
}

// noises are kinds of disturbance of scale sd, all seen on shared machines.
func noises(rng *rand.Rand, sd float64) map[string]func() float64 {
	return map[string]func() float64{
		"normal":  func() float64 { return math.Exp(sd * rng.NormFloat64()) },
		"stalls":  func() float64 { return 1 - min(0.9, sd*rng.ExpFloat64()) },
		"bimodal": func() float64 { return math.Exp(sd * (float64(rng.IntN(2)) + 0.1*rng.NormFloat64())) },
		"rare": func() float64 {
			if rng.IntN(8) == 0 {
				return 1 - 5*min(sd, 0.15)
			}
			return math.Exp(sd / 20 * rng.NormFloat64())
		},
	}
}

func describe(c *Comparison) string {
	if c == nil {
		return "no comparison"
	}
	ci := "none"
	if c.CI != nil {
		ci = fmt.Sprintf("%.4g..%.4g", c.CI[0], c.CI[1])
	}
	return fmt.Sprintf("%s vs %s, %s %s: %.4g [%s], %d blocks, %d/%d valid, bound %s -> %s (%s) %q",
		c.B, c.A, c.Metric, c.RatioIs, Val(c.Ratio), ci, c.Blocks, c.ValidTrials, c.Trials, c.Bound, c.Word, c.Because, c.Notes)
}
