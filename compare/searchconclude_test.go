// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"math"
	"strings"
	"testing"
)

// searched is the document of searches on simulated devices.
func searched(t *testing.T, b *benchOf, o SearchOptions, require []string, labels ...string) *Document {
	t.Helper()
	d := &Document{Schema: SchemaID, Test: "udp-rx", Plan: DefaultPlan("udp-rx"), Rig: Rig{Kind: "veth", Placement: PlaceShared},
		Search: &SearchInfo{Goals: o.Goals, MinLoadPPS: Num(o.MinLoad), MaxLoadPPS: Num(o.MaxLoad)}}
	d.Plan.Arms, d.Plan.Require = labels, require
	d.Plan.Complete()
	var searches []Searcher
	for _, label := range labels {
		s, err := NewSearch(o)
		if err != nil {
			t.Fatal(err)
		}
		searches = append(searches, Searcher{label, s})
	}
	out, err := RunSearches(context.Background(), searches, SearchRunOptions{}, b.run)
	if err != nil {
		t.Fatal(err)
	}
	d.Trials = out.Trials
	for _, s := range searches {
		spec, err := ParseArm(s.Label)
		if err != nil {
			t.Fatal(err)
		}
		a := Arm{Name: s.Label, Engine: spec.Engine, Requested: spec.Requested()}
		a.SetGoals(s.Search.Results())
		d.Arms = append(d.Arms, a)
	}
	ConcludeSearch(d)
	return d
}

func TestConcludeSearch(t *testing.T) {
	const a, b = "kernel:recvmmsg", "xdp:auto"
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick"), mustGoal(t, "loss=0,exceed=0,sum=1s")}, MinLoad: 1000, MaxLoad: 4e6}
	for _, c := range []struct {
		name         string
		kneeA, kneeB float64
		word         Word
		bound        Bound
		ratio        float64
		hasRange     bool
	}{
		{"b bears three times as much", 500_000, 1.5e6, Faster, NoBound, 3, true},
		{"a bears twice as much", 1e6, 500_000, Slower, NoBound, 0.5, true},
		{"the same, within the width", 1e6, 1.005e6, Inconclusive, NoBound, 1, true},
		{"b bears all there is", 500_000, 1e9, Faster, LowerBound, 8, false},
		{"both bear all there is", 1e9, 1e9, Inconclusive, NoBound, 1, false},
		{"a bears nothing", 0, 1e6, NotComparable, NoBound, 0, false},
	} {
		d := searched(t, &benchOf{devices: map[string]*device{a: {knee: c.kneeA}, b: {knee: c.kneeB}}}, o, nil, a, b)
		v := d.Verdict
		if v == nil || v.A != a || v.B != b || v.Metric != MetricConditional {
			t.Fatalf("%s: verdict %+v", c.name, v)
		}
		if v.Word != c.word || v.Word == Inconclusive && v.Because == "" || (v.Range != nil) != c.hasRange {
			t.Errorf("%s: %s (%s), range %v", c.name, v.Word, v.Because, v.Range)
		}
		if v.Bound != c.bound {
			t.Errorf("%s: bound %s", c.name, v.Bound)
		}
		if c.ratio > 0 && (v.Ratio == nil || math.Abs(*v.Ratio/c.ratio-1) > 0.07) {
			t.Errorf("%s: ratio %v, want about %v", c.name, Val(v.Ratio), c.ratio)
		}
		if v.Range != nil && !(v.Range[0] <= *v.Ratio && *v.Ratio <= v.Range[1]) {
			t.Errorf("%s: ratio %v outside its range %v", c.name, *v.Ratio, *v.Range)
		}
		for i := range d.Arms {
			if arm := &d.Arms[i]; arm.Trials == 0 || arm.Valid != arm.Trials || len(arm.Goals) != 2 || arm.LowerPPS != arm.Goals[0].LowerPPS {
				t.Errorf("%s: %+v", c.name, arm)
			}
		}
	}
}

func TestConcludeSearchChoosesTheHeadline(t *testing.T) {
	knees := map[string]*device{"kernel:epoll": {knee: 300_000}, "kernel:recvmmsg": {knee: 500_000}, "xdp:auto": {knee: 1e6}, "xdp:asavie": {knee: 2e6}}
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6}
	d := searched(t, &benchOf{devices: knees}, o, nil, "kernel:epoll", "kernel:recvmmsg", "xdp:auto", "xdp:asavie")
	if d.Verdict.A != "kernel:recvmmsg" || d.Verdict.B != "xdp:auto" || len(d.Comparisons) != 3 {
		t.Errorf("headline %s against %s, %d comparisons", d.Verdict.B, d.Verdict.A, len(d.Comparisons))
	}
	d = searched(t, &benchOf{devices: knees}, o, nil, "kernel:epoll", "kernel:recvmmsg")
	if d.Verdict.A != "kernel:epoll" || d.Verdict.B != "kernel:recvmmsg" || d.Verdict.Word != Faster {
		t.Errorf("of one engine: %+v", d.Verdict)
	}
	if d = searched(t, &benchOf{devices: knees}, o, nil, "xdp:auto"); d.Verdict != nil || d.Comparisons != nil {
		t.Errorf("one arm: %+v", d.Verdict)
	}
}

func TestSearchRequirements(t *testing.T) {
	b := &benchOf{devices: map[string]*device{"kernel:recvmmsg": {knee: 0}, "xdp:auto": {knee: 1e6}}}
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6}
	d := searched(t, b, o, []string{"xdp:auto.lower_pps>=900k", "xdp:auto.conditional_pps>=2M", "kernel.lower_pps>=1"}, "kernel:recvmmsg", "xdp:auto")
	if r := d.Requirements; len(r) != 3 || !r[0].OK || r[1].OK || r[2].OK || !strings.Contains(r[2].Because, "not measured") {
		t.Errorf("%+v", r)
	}
}

func TestSearchDocumentRoundTrip(t *testing.T) {
	b := &benchOf{devices: map[string]*device{"kernel:recvmmsg": {knee: 5e5}, "xdp:auto": {knee: 1e9}}}
	d := searched(t, b, SearchOptions{Goals: []Goal{mustGoal(t, "quick"), mustGoal(t, "rfc2544,final=1s,sum=1s")}, MinLoad: 1000, MaxLoad: 4e6}, nil, "kernel:recvmmsg", "xdp:auto")
	var w strings.Builder
	if err := d.Write(&w); err != nil {
		t.Fatal(err)
	}
	again, err := Read(strings.NewReader(w.String()))
	if err != nil || len(again) != 1 {
		t.Fatal(err)
	}
	if r := again[0]; r.Search == nil || len(r.Search.Goals) != 2 || len(r.Arms[0].Goals) != 2 || r.Arms[0].Goals[1].Goal != d.Search.Goals[1] ||
		r.Arms[1].Goals[0].Irregular != AtMaxLoad || *r.Trials[0].LoadPPS != *d.Trials[0].LoadPPS {
		t.Errorf("read back %+v", r.Arms)
	}
	ConcludeSearch(&again[0])
	if *again[0].Verdict.Ratio != *d.Verdict.Ratio || again[0].Verdict.Word != d.Verdict.Word {
		t.Error("concluding again gives another verdict")
	}
}
