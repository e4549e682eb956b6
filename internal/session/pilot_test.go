// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"slices"
	"testing"
	"time"

	"twopath/compare"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// cellOf is a cell with just what choosing looks at.
func cellOf(placement rig.Placement, sched string, pps float64) *cell {
	p := compare.DefaultPlan("udp-rx")
	p.SoftirqSched = sched
	s := &cell{o: &Options{Plan: p, Bench: &trial.Bench{CPUs: rig.CPUPlan{Placement: placement}}}, pps: pps}
	s.doc.Rig.Placement = string(placement)
	return s
}

func arm(t *testing.T, name string) compare.ArmSpec {
	t.Helper()
	a, err := compare.ParseArm(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestCandidates(t *testing.T) {
	for _, c := range []struct {
		arm       string
		placement rig.Placement
		sched     string
		want      []string
	}{
		{"xdp:auto", rig.Shared, "best", []string{"wait=spin sched=fifo", "wait=poll sched=fifo", "wait=spin sched=other", "wait=poll sched=other"}},
		{"xdp:auto", rig.Shared, "fifo", []string{"wait=spin sched=fifo", "wait=poll sched=fifo"}},
		{"xdp:auto+wait=busypoll", rig.Shared, "other", []string{"wait=busypoll sched=other"}},
		{"xdp:auto", rig.Sender, "best", []string{"wait=spin", "wait=poll"}}, // NAPI has no thread to schedule
		{"kernel:recvmmsg", rig.Split, "best", []string{"wait=block sched=fifo", "wait=busypoll sched=fifo", "wait=block sched=other", "wait=busypoll sched=other"}},
		{"kernel:epoll", rig.Sender, "best", []string{""}},
		{"kernel:packet", rig.Shared, "best", []string{"sched=fifo", "sched=other"}},
		{"xdp:asavie", rig.Sender, "best", []string{""}},
	} {
		var got []string
		for _, s := range cellOf(c.placement, c.sched, 1e6).candidates(arm(t, c.arm), trial.Setting{}) {
			got = append(got, s.String())
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s, %s: %q, want %q", c.arm, c.placement, c.sched, got, c.want)
		}
	}
}

func TestRings(t *testing.T) {
	for _, c := range []struct {
		arm       string
		placement rig.Placement
		pps       float64
		want      []int
	}{
		{"xdp:auto", rig.Shared, 1_488_095, []int{8192}},  // 5 ms
		{"xdp:auto", rig.Sender, 1_488_095, []int{32768}}, // 20 ms
		{"xdp:auto", rig.Sender, 300_000, []int{8192}},
		{"xdp:auto", rig.Shared, 10, []int{1024}},
		{"xdp:auto", rig.Sender, 0, []int{1024, 8192}},
		{"xdp:auto+ring=64", rig.Sender, 0, []int{0}}, // the arm's own
		{"xdp:asavie", rig.Sender, 0, []int{0}},
		{"kernel:recvmmsg", rig.Sender, 0, []int{0}},
	} {
		var got []int
		for _, s := range cellOf(c.placement, "best", c.pps).rings(arm(t, c.arm), trial.Setting{Wait: "spin"}) {
			got = append(got, s.Ring)
			if s.Wait != "spin" {
				t.Errorf("%s: the rest of the setting is lost", c.arm)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s, %s, %.0f pps: %v, want %v", c.arm, c.placement, c.pps, got, c.want)
		}
	}
}

// pilotOf is a pilot trial of a second's load of a million.
func pilotOf(lost uint64, work float64, valid bool) compare.Trial {
	t := compare.Trial{Sent: 1_000_000, Received: 1_000_000 - lost, Lost: lost, Seconds: 1, Valid: valid, CPU: &compare.CPU{WorkNsPerPacket: &work}}
	if !valid {
		t.InvalidBecause = "a stall"
	}
	return t
}

func candidate(rank int, trials ...compare.Trial) *scored {
	c := &scored{rank: rank}
	for _, t := range trials {
		c.add(t, nil)
	}
	return c
}

func TestBetterOpenLoop(t *testing.T) {
	s := cellOf(rig.Shared, "best", 1e6)
	for _, c := range []struct {
		name  string
		x, y  *scored
		first bool
	}{
		{"less loss", candidate(1, pilotOf(1000, 900, true)), candidate(0, pilotOf(9000, 100, true)), true},
		{"as little loss: the one listed first", candidate(1, pilotOf(100, 100, true)), candidate(0, pilotOf(2000, 900, true)), false},
		{"no loss at all: the cheaper", candidate(1, pilotOf(0, 300, true)), candidate(0, pilotOf(0, 500, true)), true},
		{"valid before invalid", candidate(1, pilotOf(500_000, 1, true)), candidate(0, pilotOf(0, 1, false)), true},
		{"a valid second trial counts alone", candidate(0, pilotOf(900_000, 1, false), pilotOf(0, 1, true)), candidate(1, pilotOf(100_000, 1, true)), true},
	} {
		if got := s.better(c.x, c.y) > 0; got != c.first {
			t.Errorf("%s: first better is %v, want %v", c.name, got, c.first)
		}
		if got := s.better(c.y, c.x) > 0; got == c.first {
			t.Errorf("%s: not the opposite when exchanged", c.name)
		}
	}
}

func TestBetterClosedLoopIsTheRate(t *testing.T) {
	s := cellOf(rig.Sender, "best", 0)
	fast, slow := candidate(1, pilotOf(0, 900, true)), candidate(0, pilotOf(400_000, 100, true))
	if s.better(fast, slow) <= 0 {
		t.Error("the slower service rate was preferred")
	}
}

func TestCandidateThatCannotRun(t *testing.T) {
	c := &scored{setting: trial.Setting{Wait: "spin"}}
	c.add(compare.Trial{}, errors.New("no such queue"))
	if r := c.record(false); r.Note != "no such queue" || r.ReceivedPPS != nil || r.Setting != "wait=spin" {
		t.Errorf("%+v", r)
	}
}

func TestLoad(t *testing.T) {
	p := compare.DefaultPlan("udp-rx")
	p.Complete()
	s := cellOf(rig.Sender, "best", 300_000)
	s.o.Bench.Rig = &rig.Rig{SUT: &rig.Side{}, Peer: &rig.Side{}}
	s.o.Plan.Duration, s.o.Plan.Count = compare.Duration(2*time.Second), 0
	if l := s.load(0.5); l.Count != 300_000 || l.Seconds != 0 {
		t.Errorf("half of two seconds at 300,000/s: %d frames, %v s", l.Count, l.Seconds)
	}
	s.pps = 0
	if l := s.load(1); l.Count != 0 || l.Seconds != 2 {
		t.Errorf("a flood of two seconds: %d frames, %v s", l.Count, l.Seconds)
	}
	s.o.Plan.Count = 10
	if l := s.load(0.01); l.Count != 1 {
		t.Errorf("a hundredth of ten frames: %d, want at least one", l.Count)
	}
}

// A pilot trial is short, however long the measured ones are.
func TestPilotLoad(t *testing.T) {
	for _, c := range []struct {
		count   uint64
		seconds float64
		pps     float64
		want    uint64
		time    float64
	}{
		{300_000, 0, 1e6, 150_000, 0}, {100_000_000, 0, 1e6, 1_500_000, 0}, {1_000_000, 0, 0, 500_000, 0}, {10_000_000, 0, 0, 0, 1.5}, {0, 60, 0, 0, 1.5},
		{0, 60, 1e5, 150_000, 0}, {3, 0, 0.5, 1, 0}, {0, 1, 0, 0, 0.5},
	} {
		p := compare.DefaultPlan("udp-rx")
		p.Complete()
		p.Count, p.Duration = c.count, compare.Duration(c.seconds*1e9)
		s := cellOf(rig.Sender, "best", c.pps)
		s.o.Bench.Rig = &rig.Rig{SUT: &rig.Side{}, Peer: &rig.Side{}}
		s.o.Plan = p
		if l := s.pilotLoad(); l.Count != c.want || l.Seconds != c.time {
			t.Errorf("%d in %v s at %v/s: a pilot of %d in %v s, want %d in %v s", c.count, c.seconds, c.pps, l.Count, l.Seconds, c.want, c.time)
		}
	}
}

func TestLimitLossIsTheMedianOfValidTrials(t *testing.T) {
	of := func(lost uint64, valid bool) compare.Trial {
		t := pilotOf(lost, 1, valid)
		t.Kind = compare.LimitRun
		return t
	}
	if got := limitLoss([]compare.Trial{of(100, true), of(900_000, false), of(300, true), of(200, true)}); got == nil || *got != 0.0002 {
		t.Errorf("got %v, want 0.0002", got)
	}
	if got := limitLoss([]compare.Trial{pilotOf(1, 1, true)}); got != nil {
		t.Errorf("got %v of no limit trial", *got)
	}
}
