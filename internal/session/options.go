// SPDX-License-Identifier: Apache-2.0

package session

import (
	"fmt"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

// Options is a plan and all that is needed to carry it out.
type Options struct {
	Plan    compare.Plan // completed and validated
	Bench   *trial.Bench
	Argv    []string
	Version string
	Host    compare.Host
	Rig     compare.Rig // kind, interfaces, driver; the rest is filled in
	LinkBPS float64     // bit rate of the link, 0 if there is none (veth)
	// Capture is what a replay sends, without Loops, which follow from rate and duration.
	Capture    *compare.Capture
	CaptureMTU int // that it was read for
	// Warnings are caveats known before the first trial.
	Warnings []compare.Warning
	// DNS (of dns) is what both sides are told, and Frames the bytes of a frame with FCS, and of its payload, on average.
	DNS    *agent.DNS
	Frames Frames
	// Every (optional) has the readers note what each so many packets took them.
	Every uint64
	// Single is a run of arms without a comparison.
	Single bool
	// Search finds each arm's bounds by the plan's goals, instead of comparing at its rate.
	Search bool
	// Progress (optional) is called from Run's goroutine before and after each trial.
	Progress func(Progress)
}

// Frames are sizes in bytes, on average, of a test whose frames have the sizes that their contents give them.
type Frames struct{ WithFCS, Payload float64 }

// Phase is what a session is doing.
type Phase string

// The phases, in order.
const (
	PhaseLimit  Phase = "limit"
	PhasePilot  Phase = "pilot"
	PhaseTrial  Phase = "trial"
	PhaseSearch Phase = "search" // in a search's place of PhaseTrial
)

// Progress tells how far a session is.
type Progress struct {
	Phase   Phase
	Cell    compare.Cell
	Index   int // of the cell, from 1, of Cells
	Cells   int
	What    string // arm, or arm and setting
	Block   int    // from 1, of Blocks; 0 outside the blocks
	Blocks  int
	Done    int // trials over, of Total; both count this cell's measured trials only
	Total   int
	Left    time.Duration // of this cell; 0 when not known yet
	Trial   *compare.Trial
	Seconds float64 // that the trial's load takes
	// Search is set in a search, in its pilots too.
	Search *compare.SearchProgress
}

// CannotOffer is the error of a load beyond what the peer can send here.
type CannotOffer struct {
	Asked, Most float64 // frames/s
}

func (e *CannotOffer) Error() string {
	return fmt.Sprintf("the peer cannot offer %.0f frames/s: its generator reached %.0f here; use --rate %.1fM, or --rate max with --placement sender",
		e.Asked, e.Most, e.Most*0.9/1e6)
}

// floodSeconds is how long the limit is measured.
const floodSeconds = 0.4

// minHeadroom is how much more than the load the generator must be able to offer: at its very limit every disturbance of
// its core would be a hole in the load.
const minHeadroom = 1.05

func (o *Options) report(p Progress) {
	if o.Progress != nil {
		o.Progress(p)
	}
}
