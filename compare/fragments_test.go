// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
)

// fragmentPlan is a completed plan of the test with some settings.
func fragmentPlan(t *testing.T, settings ...string) (Plan, error) {
	t.Helper()
	p := DefaultPlan(TestFragments)
	for _, s := range settings {
		key, value, _ := strings.Cut(s, "=")
		if err := p.Set(key, value); err != nil {
			return p, err
		}
	}
	p.Complete()
	return p, p.Validate()
}

func TestFragmentPlanDefaults(t *testing.T) {
	p, err := fragmentPlan(t)
	if err != nil {
		t.Fatal(err)
	}
	cells, err := p.Cells()
	if err != nil || len(cells) != 1 {
		t.Fatalf("%v, %v", cells, err)
	}
	f := p.FragmentTraffic(cells[0])
	if want := (FragmentTraffic{Pattern: "mix", MTU: 1500, Fragments: 3, Datagrams: 10_000, TimeoutSeconds: 1, MemoryBytes: 64 << 20, Distance: 64}); *f != want {
		t.Errorf("%+v, want %+v", *f, want)
	}
	// 1514+4, 1514+4 and 14+20+1048+4 bytes, and two gaps of 20 between them
	if got := cells[0].Size.Bytes; got != 1518+1518+1086+40 {
		t.Errorf("a datagram takes as long as a frame of %d B", got)
	}
	if p.Rates[0].Value != 10_000 || p.Duration != 0 || p.Count != 10_000 || p.Payload != 4000 {
		t.Errorf("%+v", p)
	}
	if other := DefaultPlan("udp-rx"); other.FragmentTraffic(Cell{}) != nil {
		t.Error("another test has fragments")
	}
}

// TestFragmentPlanFits: where nothing is said of how many, it is a second's load or what can be prepared.
func TestFragmentPlanFits(t *testing.T) {
	for settings, want := range map[string]uint64{
		"rate=500": 500, "rate=500,2k": 2000, "rate=max": 10_000, "payload=8000 pattern=in-order": 8100, "payload=65507 pattern=duplicated": 490, "rate=50k payload=1480": 35_562,
	} {
		p, err := fragmentPlan(t, strings.Fields(settings)...)
		if err != nil {
			t.Errorf("%s: %v", settings, err)
			continue
		}
		if d := float64(p.Count)/float64(want) - 1; d < -0.05 || d > 0.05 || d != 0 && want <= 2000 && want != 490 {
			t.Errorf("%s: %d datagrams, want about %d", settings, p.Count, want)
		}
	}
}

func TestFragmentPlanCells(t *testing.T) {
	p, err := fragmentPlan(t, "pattern=in-order,mix", "rate=1k,2k", "ip=6", "payload=1500", "mtu=1280", "frag_time=3s", "frag-memory=4M", "frag-distance=8")
	if err != nil {
		t.Fatal(err)
	}
	cells, _ := p.Cells()
	var got []string
	for _, c := range cells {
		got = append(got, c.Pattern+" "+c.Rate.String())
	}
	if !slices.Equal(got, []string{"in-order 1kpps", "in-order 2kpps", "mix 1kpps", "mix 2kpps"}) {
		t.Errorf("cells %q", got)
	}
	f := p.FragmentTraffic(cells[0])
	if f.Fragments != 2 || f.TimeoutSeconds != 3 || f.MemoryBytes != 4<<20 || f.Distance != 8 {
		t.Errorf("%+v", *f)
	}
	text, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	back := DefaultPlan("")
	if err := back.ReadPlan(strings.NewReader(string(text))); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	if again, _ := back.YAML(); string(again) != string(text) {
		t.Errorf("read back:\n%s\nwant\n%s", again, text)
	}
}

func TestFragmentPlanRefusals(t *testing.T) {
	for _, c := range []struct{ settings, want string }{
		{"pattern=reversed", "in-order"}, {"pattern=mix,mix", "twice"}, {"size=64", "--payload"}, {"payload=1472", "without fragments"},
		{"payload=65508", "65507"}, {"payload=17", "18"}, {"mtu=1501", "1500"}, {"mtu=59", "60"}, {"mtu=x", "whole number"}, {"queues=2", "--queues 1"},
		{"frag_time=1500ms", "whole seconds"}, {"frag_time=11m", "10m"}, {"frag_memory=1k", "4k"}, {"frag_memory=lots", "4M"}, {"frag_distance=0", "64"},
		{"duration=10s", "--count"}, {"count=70000 payload=1480", "--count"}, {"rate=max duration=1s", "--count"}, {"arms=kernel:packet,xdp:auto", "kernel:packet"},
	} {
		_, err := fragmentPlan(t, strings.Fields(c.settings)...)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want a usage error that speaks of %s", c.settings, err, c.want)
		}
	}
	p := DefaultPlan("udp-rx")
	if err := p.Set("pattern", "mix"); err != nil {
		t.Fatal(err)
	}
	p.Complete()
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "only the test fragments") {
		t.Errorf("a pattern in udp-rx: %v", err)
	}
}

// TestFragmentLossThatNobodyCouldAvoid does not decide what is compared.
func TestFragmentLossThatNobodyCouldAvoid(t *testing.T) {
	of := func(lost, undeliverable uint64) Trial {
		return Trial{Sent: 1000, Received: 1000 - lost, Lost: lost, Fragments: &TrialFragments{Sent: 3000, Received: 3000, Undeliverable: undeliverable}}
	}
	for _, c := range []struct {
		t    Trial
		want float64
	}{{of(400, 400), 0}, {of(410, 400), 0.01}, {of(300, 400), 0}, {Trial{Sent: 1000, Lost: 400}, 0.4}} {
		if got := c.t.AvoidableLoss(); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("lost %d: %v, want %v", c.t.Lost, got, c.want)
		}
	}
	if got := (&Trial{}).AvoidableLoss(); !math.IsNaN(got) {
		t.Errorf("nothing sent: %v", got)
	}
	work := 100.0
	var a, b Arm
	a.Name, b.Name = "kernel:recvmmsg", "xdp:auto"
	for _, arm := range []*Arm{&a, &b} {
		first, second := of(400, 400), of(401, 400)
		for _, x := range []*Trial{&first, &second} {
			x.Arm, x.Kind, x.Valid, x.Seconds, x.CPU = arm.Name, Measured, true, 1, &CPU{WorkNsPerPacket: &work}
		}
		arm.Aggregate([]Trial{first, second}, Size{Bytes: 64})
		if arm.Fragments.Sent != 6000 || arm.Fragments.Undeliverable != 800 || math.Abs(arm.AvoidableLoss()-0.0005) > 1e-12 {
			t.Errorf("%+v, avoidable %v", *arm.Fragments, arm.AvoidableLoss())
		}
	}
	if m := headlineMetric(&a, &b, terms{margin: 0.02}); m.Name != MetricWork {
		t.Errorf("judged on %s although neither lost what could be received", m.Name)
	}
}
