// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

func twoByTwo(tb testing.TB) *Schedule {
	s, err := NewSchedule(arms(tb, "kernel:recvmmsg", "xdp:auto"), ScheduleOptions{Blocks: 2, Warmup: 1, Seed: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// clock advances a second each time a trial is run.
type clock struct{ t time.Time }

func (c *clock) now() time.Time { return c.t }
func (c *clock) tick()          { c.t = c.t.Add(time.Second) }

func TestRunReportsProgress(t *testing.T) {
	s, c := twoByTwo(t), &clock{}
	var seen []Progress
	out, err := Run(context.Background(), s, RunOptions{Now: c.now, Progress: func(p Progress) { seen = append(seen, p) }},
		func(_ context.Context, spec TrialSpec) (Trial, error) { c.tick(); return goodTrial(), nil })
	if err != nil || out.Incomplete || len(out.Trials) != 10 {
		t.Fatalf("%d trials, %+v, %v", len(out.Trials), out.Reason, err)
	}
	for i, tr := range out.Trials {
		want := s.Trials[i]
		if tr.Arm != want.Label || tr.Kind != want.Kind || tr.Block != want.Block || tr.Position != want.Position || tr.Attempt != 1 || !tr.Valid {
			t.Errorf("trial %d is %+v, want %v", i, tr, want)
		}
	}
	if len(seen) != 20 || seen[0].Trial != nil || seen[1].Trial == nil || seen[0].Left != 0 {
		t.Fatalf("%d reports", len(seen))
	}
	mid, last := seen[9], seen[19]
	if mid.Done != 5 || mid.Total != 10 || mid.Blocks != 2 || mid.Elapsed != 5*time.Second || mid.Left != 5*time.Second {
		t.Errorf("half-way %+v", mid)
	}
	if last.Done != 10 || last.Left != 0 {
		t.Errorf("at the end %+v", last)
	}
}

func TestRunRepeatsInvalidTrials(t *testing.T) {
	s := twoByTwo(t)
	runs := map[string]int{}
	out, err := Run(context.Background(), s, RunOptions{}, func(_ context.Context, spec TrialSpec) (Trial, error) {
		tr := goodTrial()
		place := TrialSpec{Label: spec.Label, Block: spec.Block, Position: spec.Position}.String()
		runs[place]++
		if runs[place] != spec.Attempt {
			t.Errorf("%v is run %d", spec, runs[place])
		}
		switch {
		case spec.Block == 0, // a warm-up is not repeated
			spec.Block == 1 && spec.Position == 2 && spec.Attempt == 1,
			spec.Block == 2 && spec.Position == 1: // never gets valid
			tr.Invalidate("made up")
		}
		return tr, nil
	})
	if err != nil || out.Incomplete {
		t.Fatal(out.Reason, err)
	}
	if want := 2 + 8 + 1 + 2; len(out.Trials) != want {
		t.Errorf("%d trials, want %d", len(out.Trials), want)
	}
	var attempts []int
	for _, tr := range out.Trials {
		if tr.Block == 2 && tr.Position == 1 {
			attempts = append(attempts, tr.Attempt)
		}
	}
	if len(attempts) != MaxAttempts || attempts[2] != 3 {
		t.Errorf("attempts %v", attempts)
	}
}

func TestRunJudgesTrials(t *testing.T) {
	s, err := NewSchedule(arms(t, "xdp:auto"), ScheduleOptions{Blocks: 1})
	if err != nil {
		t.Fatal(err)
	}
	run := func(closed bool, change func(*Trial)) Trial {
		out, err := Run(context.Background(), s, RunOptions{ClosedLoop: closed}, func(context.Context, TrialSpec) (Trial, error) {
			tr := goodTrial()
			change(&tr)
			return tr, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.Trials[0]
	}
	if tr := run(false, func(tr *Trial) { tr.Offered = 101 }); !tr.Valid {
		t.Errorf("99 %% of the load: %q", tr.InvalidBecause)
	}
	if tr := run(false, func(tr *Trial) { tr.Offered = 102 }); tr.Valid || !strings.Contains(tr.InvalidBecause, "the peer sent 98.0 % of the load") {
		t.Errorf("98 %% of the load: %v, %q", tr.Valid, tr.InvalidBecause)
	}
	if tr := run(true, func(tr *Trial) { tr.Offered = 102 }); !tr.Valid {
		t.Errorf("closed loop: %q", tr.InvalidBecause)
	}
	if tr := run(false, func(tr *Trial) { tr.Unexplained = 0 }); tr.Valid || !strings.Contains(tr.InvalidBecause, "do not add up") {
		t.Errorf("an open ledger: %v, %q", tr.Valid, tr.InvalidBecause)
	}
}

func TestRunStopsWhenCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	out, err := Run(ctx, twoByTwo(t), RunOptions{}, func(_ context.Context, spec TrialSpec) (Trial, error) {
		if spec.Block == 1 && spec.Position == 3 {
			cancel()
			return Trial{}, ctx.Err()
		}
		return goodTrial(), nil
	})
	if err != nil || !out.Incomplete || len(out.Trials) != 4 {
		t.Fatalf("%d trials, %v, %v", len(out.Trials), out.Incomplete, err)
	}
	if !strings.HasPrefix(out.Reason, "interrupted at block 1, trial 3") || !strings.HasSuffix(out.Reason, "after 4 of 10 trials") {
		t.Errorf("reason %q", out.Reason)
	}
	out, err = Run(ctx, twoByTwo(t), RunOptions{}, func(context.Context, TrialSpec) (Trial, error) {
		t.Error("ran a trial after the cancel")
		return Trial{}, nil
	})
	if err != nil || !out.Incomplete || len(out.Trials) != 0 {
		t.Errorf("%+v, %v", out, err)
	}
}

func TestRunStopsOnAnError(t *testing.T) {
	broken := errors.New("agent died")
	out, err := Run(context.Background(), twoByTwo(t), RunOptions{}, func(_ context.Context, spec TrialSpec) (Trial, error) {
		if spec.Block == 2 {
			return Trial{}, broken
		}
		return goodTrial(), nil
	})
	if !errors.Is(err, broken) || !strings.HasPrefix(err.Error(), "block 2, trial 1") || !out.Incomplete || len(out.Trials) != 6 || !strings.HasPrefix(out.Reason, "failed at block 2") {
		t.Errorf("%d trials, %q, %v", len(out.Trials), out.Reason, err)
	}
}
