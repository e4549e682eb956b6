// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"slices"
)

// Placement says where the SUT's receive processing (NAPI) runs.
type Placement string

const (
	// Shared puts NAPI on the reader's CPU: one core is the wire, one is the system under test.
	Shared Placement = "shared"
	// Split gives NAPI a CPU of its own.
	Split Placement = "split"
	// Sender leaves NAPI in softirq, which on veth is the generating core: a closed loop that measures a service rate.
	Sender Placement = "sender"
)

// PlanOptions is what a CPU plan is made from.
type PlanOptions struct {
	CPUs      []int     // this process may use, such as from sched_getaffinity(2)
	Queues    int       // of the SUT; 0 means 1
	Placement Placement // "" means Shared on two CPUs, Split on three or more
	SUT       []int     // the user's choice (--cpus sut=..): readers first, then NAPI; empty means choose
	Peer      []int     // the user's choice (--cpus peer=..): generators first, then other threads; empty means choose
	OneSided  bool      // only the SUT is on this host: no generator takes a CPU
}

// CPUPlan says which CPU does what. No CPU of the SUT is one of the peer's.
type CPUPlan struct {
	Placement Placement
	Readers   []int    // reader of queue i runs on Readers[i mod len]
	NAPI      []int    // NAPI thread of queue i runs on NAPI[i mod len]; empty with Sender
	Gen       []int    // generating CPUs, in queue order: Gen[i] mod Queues is i when LiveFrames
	Others    []int    // for every other thread of agents and controller
	LiveQ     bool     // the generating CPUs reach every queue of a veth with XDP live frames (queue = CPU mod queues)
	Warnings  []string // what is worse than it could be, each a sentence
}

// NAPIOptions returns how to place the SUT's NAPI under this plan.
func (p CPUPlan) NAPIOptions(policy Policy) NAPIOptions {
	if p.Placement == Sender {
		return NAPIOptions{}
	}
	return NAPIOptions{Threaded: true, CPUs: p.NAPI, Policy: policy}
}

// PlanCPUs places readers, NAPI, generators and all other threads. It looks at nothing but its argument. When there are
// too few CPUs the error is a *Refusal that says how many it takes or what to use instead.
func PlanCPUs(o PlanOptions) (CPUPlan, error) {
	if o.Queues == 0 {
		o.Queues = 1
	}
	cpus := slices.Clone(o.CPUs)
	slices.Sort(cpus)
	cpus = slices.Compact(cpus)
	if err := o.check(cpus); err != nil {
		return CPUPlan{}, err
	}
	p := CPUPlan{Placement: o.Placement}
	if p.Placement == "" {
		p.Placement = defaultPlacement(cpus, o)
	}
	if err := o.enough(cpus, p.Placement); err != nil {
		return CPUPlan{}, err
	}
	free := without(cpus, o.SUT, o.Peer)
	sut := o.SUT
	if len(sut) == 0 {
		// The peer needs one CPU at least, and as many as there are queues if it can have them.
		reserve := 0
		if !o.OneSided && len(o.Peer) == 0 {
			reserve = 1
		}
		sut = free[:min(sutWants(p.Placement, o.Queues), max(sutNeeds(p.Placement), len(free)-reserve-spareForPeer(o, len(free), p.Placement)))]
		free = free[len(sut):]
	}
	p.assignSUT(sut, o.Queues)
	if o.OneSided {
		p.Others = free
		if len(free) == 0 {
			p.Others = p.Readers[len(p.Readers)-1:]
			p.warn("all other threads share CPU %d with a reader: give the process one more CPU", p.Others[0])
		}
		return p, nil
	}
	p.assignPeer(o.Peer, free, o.Queues)
	return p, nil
}

// sutNeeds is the least number of CPUs the SUT's side takes.
func sutNeeds(p Placement) int {
	if p == Split {
		return 2
	}
	return 1
}

// sutWants is the number of CPUs with which no reader and no NAPI thread shares one against the placement.
func sutWants(p Placement, queues int) int {
	if p == Split {
		return 2 * queues
	}
	return queues
}

// spareForPeer is how many CPUs beyond the first the peer gets before the SUT's side takes what it wants: half of the
// rest, up to one per queue.
func spareForPeer(o PlanOptions, free int, p Placement) int {
	if o.OneSided || len(o.Peer) > 0 {
		return 0
	}
	return min(o.Queues-1, max(0, (free-1-sutNeeds(p))/2))
}

func defaultPlacement(cpus []int, o PlanOptions) Placement {
	switch {
	case len(o.SUT) == 1:
		return Shared
	case len(o.SUT) >= 2:
		return Split
	case o.OneSided && len(cpus) >= 2:
		return Split
	case len(without(cpus, o.Peer)) >= 2 && len(cpus) >= 3:
		return Split
	}
	return Shared
}

func (p *CPUPlan) assignSUT(sut []int, queues int) {
	readers := sut
	if p.Placement == Split {
		n := min(queues, len(sut)/2)
		readers, p.NAPI = sut[:n], sut[n:min(len(sut), n+queues)]
	}
	p.Readers = readers[:min(queues, len(readers))]
	if p.Placement == Shared {
		p.NAPI = p.Readers
	}
	if len(p.Readers) < queues {
		p.warn("the readers of %d queues share %s", queues, cpuCount(len(p.Readers)))
	}
	if p.Placement == Split && len(p.NAPI) < queues {
		p.warn("NAPI of %d queues shares %s", queues, cpuCount(len(p.NAPI)))
	}
}

// assignPeer picks the generating CPUs so that, where there are enough, each queue is reached: frames from XDP live
// frames land on queue (CPU modulo queues).
func (p *CPUPlan) assignPeer(peer, free []int, queues int) {
	pool := peer
	if len(pool) == 0 {
		pool = free
	}
	p.LiveQ = true
	for q := range queues {
		i := slices.IndexFunc(pool, func(c int) bool { return c%queues == q })
		if i < 0 {
			p.LiveQ = false
			continue
		}
		p.Gen = append(p.Gen, pool[i])
	}
	if queues == 1 && len(peer) == 0 {
		p.Gen = pool[len(pool)-1:] // far from CPU 0, where interrupts and housekeeping tend to be
	}
	if !p.LiveQ {
		p.Gen = pool[:min(queues, len(pool))]
	}
	p.Others = without(pool, p.Gen)
	if len(peer) > 0 && len(p.Others) == 0 {
		p.Others = free
	}
	if len(p.Others) == 0 {
		p.Others = p.Gen[len(p.Gen)-1:]
		p.warn("all other threads share CPU %d with the generator: with one more CPU they would not", p.Others[0])
	}
}

func (p *CPUPlan) warn(format string, a ...any) {
	p.Warnings = append(p.Warnings, fmt.Sprintf(format, a...))
}

// check looks at what the user typed.
func (o PlanOptions) check(cpus []int) error {
	switch o.Placement {
	case "", Shared, Split, Sender:
	default:
		return &Refusal{ID: "placement", Usage: true, What: fmt.Sprintf("there is no placement %q", o.Placement),
			Cure: "use --placement shared, split or sender"}
	}
	if o.Placement == Sender && o.OneSided {
		return &Refusal{ID: "placement", Usage: true,
			What: "placement sender needs both sides on this host: only a veth runs the receiver's NAPI on the sending core",
			Cure: "use --placement shared or split"}
	}
	if o.Queues < 1 {
		return &Refusal{ID: "queues", Usage: true, What: fmt.Sprintf("a plan for %d queues", o.Queues), Cure: "use --queues 1 or more"}
	}
	for _, side := range []struct {
		name string
		cpus []int
	}{{"sut", o.SUT}, {"peer", o.Peer}} {
		seen := map[int]bool{}
		for _, c := range side.cpus {
			if !slices.Contains(cpus, c) {
				return &Refusal{ID: "cpus", Usage: true, What: fmt.Sprintf("--cpus %s: CPU %d is not there or not allowed to this process", side.name, c),
					Cure: fmt.Sprintf("choose from %v", cpus)}
			}
			if seen[c] {
				return &Refusal{ID: "cpus", Usage: true, What: fmt.Sprintf("--cpus %s names CPU %d twice", side.name, c), Cure: "name each CPU once"}
			}
			seen[c] = true
		}
	}
	for _, c := range o.SUT {
		if slices.Contains(o.Peer, c) {
			return &Refusal{ID: "cpus", Usage: true, What: fmt.Sprintf("--cpus gives CPU %d to both sides, so each would measure the other", c),
				Cure: "give each side its own"}
		}
	}
	return nil
}

// enough refuses a placement there are too few CPUs for.
func (o PlanOptions) enough(cpus []int, p Placement) error {
	need, have := sutNeeds(p), len(without(cpus, o.Peer))
	if len(o.SUT) > 0 {
		if len(o.SUT) < need {
			return &Refusal{ID: "cpus", Usage: true, What: fmt.Sprintf("placement %s takes %d CPUs on the SUT's side, --cpus sut names %d", p, need, len(o.SUT)),
				Cure: "name one more, or use --placement shared"}
		}
		have = len(o.SUT)
	}
	peer := 0
	if !o.OneSided && len(o.Peer) == 0 {
		peer = 1
		if len(o.SUT) > 0 && len(without(cpus, o.SUT)) == 0 {
			return &Refusal{ID: "cpus", Usage: true, What: "--cpus sut leaves no CPU for the peer", Cure: "give the peer one"}
		}
		if len(o.SUT) == 0 {
			have -= peer
		}
	}
	if have >= need {
		return nil
	}
	r := &Refusal{ID: "cpus", What: fmt.Sprintf("placement %s takes %d CPUs, this process may use %d", p, need+max(peer, min(1, len(o.Peer))), len(cpus))}
	switch {
	case p == Split && have >= 1:
		r.Usage, r.Cure = true, "use --placement shared"
	case len(cpus) < 2:
		r.Cure = "generator and receiver on one CPU would only measure each other: give the machine a second CPU (taskset or cpuset may hide one), or put the peer on another host (--nic IF --peer HOST:IF)"
	default:
		r.Usage, r.Cure = true, "leave the SUT's side a CPU in --cpus peer"
	}
	return r
}

// without returns the CPUs that are in none of the lists, in order.
func without(cpus []int, lists ...[]int) []int {
	return slices.DeleteFunc(slices.Clone(cpus), func(c int) bool {
		return slices.ContainsFunc(lists, func(l []int) bool { return slices.Contains(l, c) })
	})
}

func cpuCount(n int) string {
	if n == 1 {
		return "one CPU"
	}
	return fmt.Sprintf("%d CPUs", n)
}
