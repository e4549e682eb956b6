// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math/rand/v2"
)

// TrialSpec is one trial to be run.
type TrialSpec struct {
	Label    string // of the arm; an A/A twin is "xdp:auto#2"
	Arm      ArmSpec
	Kind     TrialKind
	Block    int // from 1; 0 for warm-up
	Position int // in the block, from 1
	Attempt  int // from 1
}

// String names the trial for progress and errors.
func (s TrialSpec) String() string {
	if s.Block == 0 {
		return fmt.Sprintf("%s of %s", s.Kind, s.Label)
	}
	again := ""
	if s.Attempt > 1 {
		again = fmt.Sprintf(", attempt %d", s.Attempt)
	}
	return fmt.Sprintf("block %d, trial %d, %s%s", s.Block, s.Position, s.Label, again)
}

// ScheduleOptions are what an order of trials depends on, beside the arms.
type ScheduleOptions struct {
	Blocks int
	Warmup int // discarded trials of each arm, before the first block
	Seed   uint64
}

// Schedule is the order of a run's trials.
type Schedule struct {
	Labels []string    // of the arms, as given
	Trials []TrialSpec // warm-up first, then block by block
}

// NewSchedule orders the trials so that a drift of the machine falls on all
// arms alike. A block holds every arm twice, in some order and then in that
// order reversed (A B B A; A B C C B A), which cancels a linear drift within
// the block. Every k blocks of k arms use the k rotations of one random
// order, in random sequence, so each arm is as often first as any other: for
// two arms, ABBA and BAAB alike. The same seed gives the same schedule.
//
// An arm given more than once is an A/A control: the second is labelled
// "NAME#2" and its trials are of kind [AA].
func NewSchedule(arms []ArmSpec, o ScheduleOptions) (*Schedule, error) {
	if len(arms) == 0 {
		return nil, fmt.Errorf("schedule trials: no arms")
	}
	if o.Blocks < 1 {
		return nil, fmt.Errorf("schedule trials: %d blocks", o.Blocks)
	}
	s := &Schedule{}
	specs := make([]TrialSpec, len(arms))
	seen := map[string]int{}
	for i, a := range arms {
		name := a.String()
		seen[name]++
		specs[i] = TrialSpec{Label: name, Arm: a, Kind: Measured, Attempt: 1}
		if n := seen[name]; n > 1 {
			specs[i].Label, specs[i].Kind = fmt.Sprintf("%s#%d", name, n), AA
		}
		s.Labels = append(s.Labels, specs[i].Label)
	}
	for range o.Warmup {
		for _, spec := range specs {
			spec.Kind = Warmup
			s.Trials = append(s.Trials, spec)
		}
	}
	rng := rand.New(rand.NewPCG(o.Seed, scheduleStream))
	k := len(specs)
	var order, offsets []int
	for b := range o.Blocks {
		if b%k == 0 {
			order, offsets = rng.Perm(k), rng.Perm(k)
		}
		for position := range 2 * k {
			i := position
			if i >= k {
				i = 2*k - 1 - position
			}
			spec := specs[order[(i+offsets[b%k])%k]]
			spec.Block, spec.Position = b+1, position+1
			s.Trials = append(s.Trials, spec)
		}
	}
	return s, nil
}

// Streams keep the random numbers of one seed apart by use.
const (
	scheduleStream  = 1
	bootstrapStream = 2
	signFlipStream  = 3
)

// Schedule is the schedule of a plan's arms; with AA, the first arm has a twin.
func (p *Plan) Schedule() (*Schedule, error) {
	arms, err := p.ArmSpecs()
	if err != nil {
		return nil, err
	}
	if p.AA && len(arms) > 0 {
		arms = append(arms, arms[0])
	}
	return NewSchedule(arms, ScheduleOptions{Blocks: p.Blocks, Warmup: p.Warmup, Seed: p.Seed})
}
