// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"strings"
	"testing"
)

func TestParseGoal(t *testing.T) {
	quick, _ := goalPreset(GoalQuick)
	for in, want := range map[string]Goal{
		"quick":   quick,
		"RFC2544": {Name: "rfc2544", FinalSeconds: 60, SumSeconds: 60, Width: 0.01, InitialSeconds: 1},
		"tst009":  {Name: "tst009", FinalSeconds: 60, SumSeconds: 120, ExceedRatio: 0.5, Width: 0.01, InitialSeconds: 1},
		"rfc2544,width=2%": {Name: "loss=0%,exceed=0%,width=2%,final=1m0s,sum=1m0s,initial=1s", FinalSeconds: 60, SumSeconds: 60, Width: 0.02,
			InitialSeconds: 1},
		"loss=0.1%, exceed=0.25 ,final=2s,sum=20s,width=1%,initial=500ms": {Name: "loss=0.1%,exceed=25%,width=1%,final=2s,sum=20s,initial=500ms",
			LossRatio: 0.001, ExceedRatio: 0.25, FinalSeconds: 2, SumSeconds: 20, Width: 0.01, InitialSeconds: 0.5},
		// A final duration takes along what it would contradict.
		"rfc2544,final=100ms": {Name: "loss=0%,exceed=0%,width=1%,final=100ms,sum=1m0s,initial=100ms", FinalSeconds: 0.1, SumSeconds: 60, Width: 0.01,
			InitialSeconds: 0.1},
	} {
		g, err := ParseGoal(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if g != want {
			t.Errorf("%s:\n%+v, want\n%+v", in, g, want)
		}
		if again, err := ParseGoal(g.String()); err != nil || again != g {
			t.Errorf("%s: read back as %+v, %v", g, again, err)
		}
	}
}

func TestParseGoalRefuses(t *testing.T) {
	for in, parts := range map[string][]string{
		"":                       {"goal", "no such goal"},
		"rcf2544":                {`did you mean "rfc2544"?`},
		"los=1%":                 {`did you mean "loss"?`},
		"loss=1%,rfc2544":        {"rfc2544", "comes first"},
		"loss=1%,loss=2%":        {"twice"},
		"loss=100%":              {"loss=1", "below 100 %"},
		"loss=-1%":               {"0 or more"},
		"exceed=1":               {"exceed", "below 100 %"},
		"width=0":                {"width", "0.01 %"},
		"width=60%":              {"50 %"},
		"final=5":                {"no unit"},
		"final=1ms":              {"10 ms"},
		"sum=5000s":              {"more than 1000 trials"},
		"final=1s,initial=2s":    {"not longer than final"},
		"loss=x":                 {"not a number"},
		"loss=0.1%,width=1%,foo": {"foo"},
	} {
		_, err := ParseGoal(in)
		var usage *UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: %v, want a usage error", in, err)
			continue
		}
		for _, part := range parts {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %v does not speak of %q", in, err, part)
			}
		}
	}
}

func TestGoalsOfAPlan(t *testing.T) {
	p := DefaultPlan("udp-rx")
	yaml := "goal:\n  - loss=0.1%,width=1%\n  - rfc2544\nmax_load: 2M\nmin_load: 10k\nmax_trials: 100\nmax_time: 10m\n"
	if err := p.ReadPlan(strings.NewReader(yaml)); err != nil {
		t.Fatal(err)
	}
	p.Complete()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	goals, err := p.SearchGoals()
	if err != nil || len(goals) != 2 || goals[0].LossRatio != 0.001 || goals[1].Name != GoalRFC2544 {
		t.Errorf("%+v, %v", goals, err)
	}
	out, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var again Plan
	if err := again.ReadPlan(strings.NewReader(string(out))); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}
	if len(again.Goals) != 2 || again.Goals[0] != p.Goals[0] || again.MaxLoad != p.MaxLoad || again.MaxTime != p.MaxTime || again.MaxTrials != 100 {
		t.Errorf("read back %+v from\n%s", again, out)
	}
	if err := p.Set("goal", "quick;quick"); err == nil {
		t.Error("a goal given twice is taken")
	}
	if err := p.Set("max-load", "max"); err == nil {
		t.Error("--max-load max is taken")
	}
}

func TestGoalRemarks(t *testing.T) {
	parse := func(s string) Goal {
		g, err := ParseGoal(s)
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if r := GoalRemarks([]Goal{parse("quick")}); len(r) != 0 {
		t.Errorf("the default goal is advised against: %q", r)
	}
	if r := GoalRemarks([]Goal{parse("rfc2544"), parse("tst009")}); len(r) != 0 {
		t.Errorf("presets of one length: %q", r)
	}
	got := strings.Join(GoalRemarks([]Goal{parse("loss=2%,width=1%,sum=500ms"), parse("rfc2544")}), "\n")
	for _, part := range []string{"width is below", "shorter than one trial", "different lengths"} {
		if !strings.Contains(got, part) {
			t.Errorf("%q lacks %q", got, part)
		}
	}
}

func FuzzParseGoal(f *testing.F) {
	for _, s := range []string{"quick", "rfc2544,width=2%", "loss=0.1%,exceed=50%,final=1s,sum=5s,width=1%,initial=100ms", "loss=,", "=,=", "final=1h"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		g, err := ParseGoal(s)
		if err != nil {
			return
		}
		again, err := ParseGoal(g.String())
		if err != nil {
			t.Fatalf("%q became %q, which is refused: %v", s, g, err)
		}
		if again.String() != g.String() {
			t.Fatalf("%q became %q, then %q", s, g, again)
		}
	})
}
