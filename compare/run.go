// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"fmt"
	"time"
)

// MaxAttempts is how often a measured trial is run when it comes out invalid:
// once, and repeated in its block at most twice.
const MaxAttempts = 3

// MinOfferedShare is the share of the load a peer must have sent for the
// trial to say anything about the receiver.
const MinOfferedShare = 0.99

// Progress tells how far a run is. It is reported before each trial, with
// Trial nil, and after it.
type Progress struct {
	Spec    TrialSpec
	Trial   *Trial        // that just ended; nil before a trial
	Done    int           // scheduled trials that are over
	Total   int           // scheduled trials; repeats are not in it
	Blocks  int           // in the schedule
	Elapsed time.Duration // since the run began
	Left    time.Duration // from the mean time of the trials so far; 0 before the first has ended
}

// RunOptions adjust [Run]; the zero value is an open-loop run without progress.
type RunOptions struct {
	// ClosedLoop is set for --rate max with placement sender: what the peer
	// offers depends on the receiver then, and is not judged.
	ClosedLoop bool
	Progress   func(Progress)   // (optional) called from Run's goroutine
	Now        func() time.Time // (optional) for tests
}

// Outcome is what a run gave, whole or in part. Trials are in the order they
// were run, the invalid and the discarded included.
type Outcome struct {
	Trials     []Trial
	Incomplete bool
	Reason     string // when incomplete
}

// Run runs the trials of s one after another through do, which performs one
// and fills in its counts. Run itself writes the trial's place in the
// schedule, checks its identities and its load, marks it invalid if they
// fail, and repeats an invalid measured trial at once, at most twice.
//
// When ctx is cancelled, Run stops, drops the trial under way and returns the
// rest as incomplete, with a nil error. When do fails, Run stops likewise and
// returns that error too; a fault that a repeat may cure is an invalid trial,
// not an error.
func Run(ctx context.Context, s *Schedule, o RunOptions, do func(context.Context, TrialSpec) (Trial, error)) (Outcome, error) {
	now := o.Now
	if now == nil {
		now = time.Now
	}
	report := o.Progress
	if report == nil {
		report = func(Progress) {}
	}
	var out Outcome
	p := Progress{Total: len(s.Trials)}
	for _, spec := range s.Trials {
		p.Blocks = max(p.Blocks, spec.Block)
	}
	stop := func(spec TrialSpec, why string) {
		out.Incomplete, out.Reason = true, fmt.Sprintf("%s at %s, after %d of %d trials", why, spec, p.Done, p.Total)
	}
	began := now()
	for _, spec := range s.Trials {
		for {
			if ctx.Err() != nil {
				stop(spec, "interrupted")
				return out, nil
			}
			p.Spec, p.Trial = spec, nil
			report(p)
			t, err := do(ctx, spec)
			if ctx.Err() != nil {
				stop(spec, "interrupted")
				return out, nil
			}
			if err != nil {
				stop(spec, "failed")
				return out, fmt.Errorf("%s: %w", spec, err)
			}
			place(&t, spec)
			judge(&t, o.ClosedLoop)
			out.Trials = append(out.Trials, t)

			repeat := !t.Valid && spec.Kind != Warmup && spec.Attempt < MaxAttempts
			p.Elapsed = now().Sub(began)
			if !repeat {
				p.Done++
			}
			p.Left = p.Elapsed / time.Duration(len(out.Trials)) * time.Duration(p.Total-p.Done)
			p.Trial = &t
			report(p)
			if !repeat {
				break
			}
			spec.Attempt++
		}
	}
	return out, nil
}

func place(t *Trial, spec TrialSpec) {
	t.Arm, t.Kind = spec.Label, spec.Kind
	t.Block, t.Position, t.Attempt = spec.Block, spec.Position, spec.Attempt
}

// judge marks a trial invalid whose counts contradict themselves or whose
// peer did not send the load.
func judge(t *Trial, closedLoop bool) {
	if err := t.Check(); err != nil {
		t.Invalidate("the counts do not add up: %v", err)
	}
	if closedLoop || !t.Valid {
		return
	}
	if float64(t.Sent) < MinOfferedShare*float64(t.Offered) {
		t.Invalidate("the peer sent %.1f %% of the load, which says nothing about the receiver", 100*float64(t.Sent)/float64(t.Offered))
	}
}
