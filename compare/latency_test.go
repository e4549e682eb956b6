// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// bucketed makes a distribution as the meter does: below 128 ns exact, above in 128 steps for each power of two.
func bucketed(values []uint64) *Latency {
	l := &Latency{Base: "intended"}
	at := map[[2]uint64]uint64{}
	sum := 0.0
	for _, v := range values {
		from, to := v, v
		if v >= 128 {
			shift := uint(math.Ilogb(float64(v))) - 7
			from = v >> shift << shift
			to = from + 1<<shift - 1
		}
		at[[2]uint64{from, to}]++
		l.Count++
		sum += float64(v)
		l.Min, l.Max = extreme(l.Min, Num(float64(v)), math.Min), extreme(l.Max, Num(float64(v)), math.Max)
	}
	l.Mean = Num(sum / float64(l.Count))
	for b, n := range at {
		l.Buckets = append(l.Buckets, [3]uint64{b[0], b[1], n})
	}
	return MergeLatency([]*Latency{l})
}

// The percentiles are HdrHistogram's, within a bucket; minimum, maximum and mean are exact.
func TestLatencyAgainstHdrHistogram(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, n := range []int{19, 20, 1000, 99_999, 100_000} {
		hdr := hdrhistogram.New(1, 60_000_000_000, 4)
		values := make([]uint64, n)
		for i := range values {
			values[i] = uint64(math.Exp(3 + 15*rnd.Float64()*rnd.Float64()))
			if err := hdr.RecordValue(int64(values[i])); err != nil {
				t.Fatal(err)
			}
		}
		l := bucketed(values)
		for _, c := range []struct {
			q   float64
			got *float64
		}{{50, l.P50}, {90, l.P90}, {99, l.P99}, {99.9, l.P999}, {99.99, l.P9999}} {
			want := float64(hdr.ValueAtQuantile(c.q))
			if enough := float64(n)*(1-c.q/100) >= 10-1e-6; enough != (c.got != nil) {
				t.Errorf("%d samples, p%v: %v, want a number only with ten samples beyond", n, c.q, c.got)
			} else if enough && math.Abs(*c.got-want) > 0.01*want {
				t.Errorf("%d samples, p%v: %v, HdrHistogram has %v", n, c.q, *c.got, want)
			}
		}
		if math.Abs(*l.Max-float64(hdr.Max())) > 1e-4**l.Max || math.Abs(*l.Min-float64(hdr.Min())) > 1e-4**l.Min || math.Abs(*l.Mean-hdr.Mean()) > 1e-3**l.Mean {
			t.Errorf("%d samples: min %v max %v mean %v, HdrHistogram has %v %v %v", n, *l.Min, *l.Max, *l.Mean, hdr.Min(), hdr.Max(), hdr.Mean())
		}
	}
}

// Trials put together are as one trial of all: a second of one of them is in the tail of all.
func TestMergeLatency(t *testing.T) {
	var all []uint64
	var parts []*Latency
	for trial := range 5 {
		var some []uint64
		for i := range 1000 {
			v := uint64(20_000 + i)
			if trial == 3 && i < 200 {
				v = 1_000_000_000
			}
			some = append(some, v)
		}
		l := bucketed(some)
		l.Jitter, l.JitterCount = Num(float64(100*(trial+1))), 10
		parts = append(parts, l, nil, &Latency{})
		all = append(all, some...)
	}
	got, want := MergeLatency(parts), bucketed(all)
	if got.Count != want.Count || *got.P50 != *want.P50 || *got.P99 != *want.P99 || *got.Max != 1e9 || *got.Min != 20_000 || math.Abs(*got.Mean-*want.Mean) > 1e-3 {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if *got.P99 != 1e9 || *got.P50 > 22_000 || got.Base != "intended" || *got.Jitter != 300 || got.JitterCount != 50 {
		t.Errorf("p50 %v p99 %v base %q jitter %v of %d", *got.P50, *got.P99, got.Base, *got.Jitter, got.JitterCount)
	}
	parts[0].Base = "sent"
	if got := MergeLatency(parts); got.Base != "" {
		t.Errorf("two bases make %q", got.Base)
	}
	if MergeLatency(nil) != nil || MergeLatency([]*Latency{nil, {}}) != nil {
		t.Error("a distribution of nothing")
	}
}

// echoDocument has two arms over blocks; a and b are their medians in us, tails ten times that, and lost counts of 1000.
func echoDocument(mode string, a, b float64, lostA, lostB uint64) *Document {
	d := &Document{Test: "udp-echo", Plan: Plan{Test: "udp-echo", Mode: mode, Margin: DefaultMargin}, Traffic: Traffic{Size: Size{Bytes: 64}, PPS: Num(1000)},
		Rig: Rig{Placement: PlaceShared}}
	if mode == ModePingPong {
		d.Traffic.PPS, d.Traffic.Rate = nil, Rate{Unit: MaxRate}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for block := 1; block <= 6; block++ {
		for position := 1; position <= 4; position++ {
			name, us, lost := "kernel:recvmmsg", a, lostA
			if position == 2 || position == 3 {
				name, us, lost = "xdp:auto", b, lostB
			}
			us *= 1 + 0.01*rnd.Float64()
			sent := uint64(1000)
			if mode == ModePingPong {
				sent = uint64(1e6 / us)
				lost = lost * sent / 1000
			}
			t := Trial{Arm: name, Kind: Measured, Block: block, Position: position, Attempt: 1, Seconds: 1, Offered: sent, Sent: sent, Received: sent - lost, Lost: lost,
				Unexplained: lost, Valid: true, LatencyNs: &Latency{Count: sent - lost, P50: Num(us * 1000), P99: Num(us * 10_000), Mean: Num(us * 1000), Base: "intended"}}
			d.Trials = append(d.Trials, t)
		}
	}
	return d
}

func TestEchoVerdict(t *testing.T) {
	for _, c := range []struct {
		name   string
		mode   string
		a, b   float64
		lostA  uint64
		lostB  uint64
		metric string
		word   Word
		ratio  float64
		other  string
	}{
		{"the sooner median wins, the tail stands beside", "", 30, 20, 0, 0, MetricP50, Faster, 1.5, MetricP99},
		{"the kernel may win", "", 20, 30, 0, 0, MetricP50, Slower, 1 / 1.5, MetricP99},
		{"loss first", "", 20, 30, 500, 0, MetricReceived, Faster, 2, MetricP50},
		{"ping-pong: rates differ, and that is no obstacle", ModePingPong, 40, 20, 0, 0, MetricP50, Faster, 2, MetricP99},
	} {
		d := echoDocument(c.mode, c.a, c.b, c.lostA, c.lostB)
		Conclude(d)
		v := d.Verdict
		if v == nil || v.Metric != c.metric || v.Word != c.word || v.Ratio == nil || math.Abs(*v.Ratio-c.ratio) > 0.02*c.ratio {
			t.Errorf("%s: %+v", c.name, v)
			continue
		}
		if len(d.Comparisons) < 2 || d.Comparisons[1].Metric != c.other {
			t.Errorf("%s: comparisons %+v", c.name, d.Comparisons)
		}
	}
}

// Of two kernel arms the one that answers sooner speaks for the kernel, in ping-pong too, unless it loses.
func TestBestEchoArm(t *testing.T) {
	arm := func(name string, pps, p50, loss float64) *Arm {
		return &Arm{Name: name, ReceivedPPS: Num(pps), LatencyP50Ns: Num(p50), LossRatio: Num(loss)}
	}
	open, pong := terms{margin: 0.02, headline: MetricP50}, terms{margin: 0.02, headline: MetricP50, pingPong: true}
	if got := best([]*Arm{arm("slow", 1000, 40e3, 0), arm("quick", 1000, 20e3, 0)}, open); got.Name != "quick" {
		t.Errorf("open: %s", got.Name)
	}
	if got := best([]*Arm{arm("slow", 25e3, 40e3, 0), arm("quick", 50e3, 20e3, 0), arm("loses", 60e3, 10e3, 0.3)}, pong); got.Name != "quick" {
		t.Errorf("ping-pong: %s", got.Name)
	}
}

func TestModeIsChecked(t *testing.T) {
	for _, c := range []struct {
		test, mode string
		ok         bool
	}{{"udp-echo", "", true}, {"udp-echo", ModeOpen, true}, {"udp-echo", ModePingPong, true}, {"udp-echo", "ping", false}, {"udp-rx", ModePingPong, false}} {
		p := DefaultPlan(c.test)
		if err := p.Set("mode", c.mode); err != nil {
			t.Fatal(err)
		}
		p.Complete()
		if err := p.Validate(); (err == nil) != c.ok {
			t.Errorf("%s %q: %v", c.test, c.mode, err)
		}
		if c.ok && c.mode == ModePingPong && p.Rates[0].Unit != MaxRate {
			t.Errorf("ping-pong at %v: it sets its own rate", p.Rates)
		}
		if c.test == "udp-echo" && c.mode == "" && p.Rates[0].String() != "10k" && p.Rates[0].Value != 10_000 {
			t.Errorf("udp-echo at %v", p.Rates)
		}
	}
}
