// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"fmt"
	"slices"
	"time"

	"twopath/compare"
)

// Source is a published measurement.
type Source struct {
	Name  string // on the command line
	Title string // of the publication, and where it is
	About string // what is repeated, in one line
	steps func(Scale) []Step
}

// Scale is how much of a source is repeated, and on what.
type Scale struct {
	Quick bool // minutes instead of a night
	CPUs  int  // that this machine has
	// Base has where it runs (port, peer, CPUs, placement, IP version); the rest is the steps' own.
	Base compare.Plan
}

// Step is one part of a source's sequence.
type Step struct {
	ID, Title string
	Plan      compare.Plan
	// Every has readers note what each so many packets took; 0 is not.
	Every uint64
	// Skip is why the step cannot be run here or by this version; "" if it can.
	Skip string
}

// Sources are those that can be repeated.
func Sources() []Source { return []Source{udpReceive(), lineRate64()} }

// Lookup finds a source by name.
func Lookup(name string) (Source, error) {
	var names []string
	for _, s := range Sources() {
		if s.Name == name {
			return s, nil
		}
		names = append(names, s.Name)
	}
	return Source{}, compare.Unknown("source", name, "no such source", names)
}

// Steps are the source's sequence for a scale, each plan complete and valid, or the step skipped with its reason.
func (s Source) Steps(sc Scale) []Step {
	steps := s.steps(sc)
	for i := range steps {
		st := &steps[i]
		if st.Skip != "" {
			continue
		}
		st.Plan.Complete()
		if err := st.Plan.Validate(); err != nil {
			st.Skip = err.Error()
		}
	}
	return steps
}

// plan is a step's plan: where from the base, the rest as given. Trials are few: a source ran each row once.
func (sc Scale) plan(arms ...string) compare.Plan { return sc.planOf("udp-rx", arms...) }

func (sc Scale) planOf(test string, arms ...string) compare.Plan {
	p := compare.DefaultPlan(test)
	b := sc.Base
	p.NIC, p.Peer, p.IP, p.CPUs, p.Placement, p.SoftirqSched, p.PeerNAPI = b.NIC, b.Peer, b.IP, b.CPUs, b.Placement, b.SoftirqSched, b.PeerNAPI
	p.Arms, p.Blocks, p.Warmup = arms, 1, 0
	return p
}

// count is the source's own number of packets, or a quick one.
func (sc Scale) count(full, quick uint64) uint64 {
	if sc.Quick {
		return quick
	}
	return full
}

// Seconds is about how long the step's trials take, pilots and set-up included, so that what is left can be told.
func (st Step) Seconds() float64 {
	if st.Skip != "" {
		return 0
	}
	const setUp, pilots = 0.7, 8 // seconds around a trial; trials of up to 1.5 s
	cells, err := st.Plan.Cells()
	if err != nil {
		return 0
	}
	total := 0.0
	for i, c := range cells {
		pps, err := c.Rate.Resolve(c.Size, 0, 1e6)
		if err != nil || pps == 0 {
			pps = 700_000
		}
		load := time.Duration(st.Plan.Duration).Seconds()
		if st.Plan.Count > 0 {
			load = float64(st.Plan.Count) / pps
		}
		trials := float64(2*len(st.Plan.Arms)*st.Plan.Blocks + st.Plan.Blocks)
		total += 1.1 + trials*(load+setUp)
		each := min(load/2, 1.5) + setUp
		if i == 0 {
			total += pilots * float64(len(st.Plan.Arms)) * each / 1.5
		} else {
			total += float64(len(st.Plan.Arms)) * each
		}
	}
	return total
}

// needs is why arms cannot be had in this version; "" if they can.
func needs(arms ...string) string {
	for _, a := range arms {
		if _, err := compare.ParseArm(a); err != nil {
			return fmt.Sprintf("this version has no %s", a)
		}
	}
	return ""
}

// StepsOf are the ids of a list of steps.
func StepsOf(steps []Step) []string {
	ids := make([]string, len(steps))
	for i, s := range steps {
		ids[i] = s.ID
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
