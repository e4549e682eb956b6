// SPDX-License-Identifier: Apache-2.0

package session

import (
	"slices"
	"testing"

	"twopath/compare"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

func TestSearchCandidates(t *testing.T) {
	for _, c := range []struct {
		arm       string
		placement rig.Placement
		most      float64
		want      []string
	}{
		{"xdp:auto", rig.Shared, 5e6, []string{"wait=spin ring=8192 sched=fifo", "wait=poll ring=8192 sched=fifo", "wait=spin ring=8192 sched=other", "wait=poll ring=8192 sched=other"}},
		{"xdp:auto+wait=poll+ring=512", rig.Shared, 5e6, []string{"wait=poll sched=fifo", "wait=poll sched=other"}},
		{"xdp:auto+wait=spin", rig.Split, 1e6, []string{"wait=spin ring=32768 sched=fifo", "wait=spin ring=32768 sched=other"}},
		{"kernel:epoll", rig.Shared, 5e6, []string{"sched=fifo", "sched=other"}},
	} {
		var got []string
		for _, set := range cellOf(c.placement, "best", 0).searchCandidates(arm(t, c.arm), c.most) {
			got = append(got, set.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s: %q, want %q", c.arm, c.placement, got, c.want)
		}
	}
	sends := cellOf(rig.Shared, "best", 0)
	sends.o.Plan.Test = "udp-tx"
	if got := sends.searchCandidates(arm(t, "xdp:auto"), 5e6); len(got) != 1 || got[0] != (trial.Setting{}) {
		t.Errorf("a sender has settings to try: %v", got)
	}
}

// TestCoarseGoal: what settings are tried with is quick whatever the goal, and no stricter than a tenth of a percent.
func TestCoarseGoal(t *testing.T) {
	for _, preset := range compare.GoalPresets() {
		g := coarseGoal(preset)
		if g.FinalSeconds > 0.5 || g.SumSeconds != 2*g.FinalSeconds || g.ExceedRatio != 0.5 || g.Width < coarseWidth || g.LossRatio < 0.001 || g.LossRatio < preset.LossRatio {
			t.Errorf("%s: %+v", preset.Name, g)
		}
		if _, err := compare.NewSearch(compare.SearchOptions{Goals: []compare.Goal{g}, MinLoad: 1000, MaxLoad: 1e6}); err != nil {
			t.Errorf("%s: %v", preset.Name, err)
		}
	}
}

func TestOutdone(t *testing.T) {
	goal := coarseGoal(compare.GoalPresets()[0])
	at := func(name string, trials ...compare.LoadTrial) tried {
		s, err := compare.NewSearch(compare.SearchOptions{Goals: []compare.Goal{goal}, MinLoad: 1000, MaxLoad: 4e6})
		if err != nil {
			t.Fatal(err)
		}
		for _, tr := range trials {
			tr.Seconds = goal.FinalSeconds
			s.Add(tr)
		}
		return tried{arm: arm(t, name), search: s}
	}
	good, bad, worst := compare.LoadTrial{Load: 500_000}, compare.LoadTrial{Load: 400_000, LossRatio: 0.5}, compare.LoadTrial{Load: 500_000, LossRatio: 1}
	for name, c := range map[string]struct {
		all  []tried
		want bool
	}{
		"another bore more":      {[]tried{at("xdp:auto", bad, bad), at("xdp:auto", good)}, true},
		"it failed once":         {[]tried{at("xdp:auto", bad), at("xdp:auto", good)}, false},
		"of another arm":         {[]tried{at("xdp:auto", bad, bad), at("kernel:epoll", good)}, false},
		"it has not failed":      {[]tried{at("xdp:auto"), at("xdp:auto", good)}, false},
		"it failed at that load": {[]tried{at("xdp:auto", worst, worst), at("xdp:auto", good)}, false},
	} {
		if got := outdone(c.all, 0); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
