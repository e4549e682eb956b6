// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"time"
)

// Placements of the SUT's NAPI.
const (
	PlaceShared = "shared" // on the reader's core
	PlaceSplit  = "split"  // on a core of its own
	PlaceSender = "sender" // on the sending core: a closed loop, veth only
)

// Plan is what to measure. It is built by [DefaultPlan], then [ReadPlan] for
// a file, then [Plan.Set] for each flag, and checked once by [Plan.Validate].
//
// Arms and requirements are kept as text, so that a record made by a newer
// version can still be read; [Plan.ArmSpecs] and [Plan.Requirements] parse them.
type Plan struct {
	Test string   `json:"test" yaml:"test"`
	Arms []string `json:"arms" yaml:"arms"`
	NIC  string   `json:"nic,omitempty" yaml:"nic,omitempty"`   // interface of the SUT; empty is the veth rig
	Peer string   `json:"peer,omitempty" yaml:"peer,omitempty"` // ":IF" or "[USER@]HOST:IF"
	IP   int      `json:"ip" yaml:"ip"`                         // 4 or 6

	Sizes    []Size   `json:"size" yaml:"size,omitempty"`                   // of frames with FCS; empty when Payload is given
	Payload  int      `json:"payload,omitempty" yaml:"payload,omitempty"`   // UDP payload bytes
	Rates    []Rate   `json:"rate" yaml:"rate"`                             // offered load
	Count    uint64   `json:"count,omitempty" yaml:"count,omitempty"`       // packets a trial, or
	Duration Duration `json:"duration,omitempty" yaml:"duration,omitempty"` // time a trial
	Flows    int      `json:"flows" yaml:"flows"`
	Queues   Queues   `json:"queues" yaml:"queues"`                         // receive queues, with a reader each
	CC       int      `json:"cc,omitempty" yaml:"cc,omitempty"`             // connections open at a time, of tests that connect
	Requests int      `json:"requests,omitempty" yaml:"requests,omitempty"` // on a connection
	Body     int      `json:"body,omitempty" yaml:"body,omitempty"`         // bytes of a response's body
	Work     Work     `json:"work,omitempty" yaml:"work,omitempty"`         // of the application, per packet
	Mode     string   `json:"mode,omitempty" yaml:"mode,omitempty"`         // how requests follow each other: open, pingpong; empty: by test

	// Of a replay: the file, its own timing times Speed (0: at the rate), how often it is sent in a trial (0: enough for the
	// duration), and what is rewritten.
	Capture    string  `json:"capture,omitempty" yaml:"capture,omitempty"`
	Speed      float64 `json:"speed,omitempty" yaml:"speed,omitempty"`
	Loops      int     `json:"loops,omitempty" yaml:"loops,omitempty"`
	RewriteMAC string  `json:"rewrite_mac,omitempty" yaml:"rewrite_mac,omitempty"` // destination: other, sut, keep
	RewriteIP  string  `json:"rewrite_ip,omitempty" yaml:"rewrite_ip,omitempty"`   // OLD=NEW,..

	// Of dns: files with the zone and the queries (empty: a zone of the program's own, queries derived from the zone), who asks
	// (xdp, dnsperf), and whether queries carry an OPT record.
	Zone    string `json:"zone,omitempty" yaml:"zone,omitempty"`
	Queries string `json:"queries,omitempty" yaml:"queries,omitempty"`
	Driver  string `json:"driver,omitempty" yaml:"driver,omitempty"`
	EDNS    bool   `json:"edns,omitempty" yaml:"edns,omitempty"`

	// Of the test fragments: how fragments are sent, how long their packets are, and what bounds reassembly.
	Patterns     []string `json:"pattern,omitempty" yaml:"pattern,omitempty"`
	MTU          int      `json:"mtu,omitempty" yaml:"mtu,omitempty"`                     // bytes of an IP packet
	FragTime     Duration `json:"frag_time,omitempty" yaml:"frag_time,omitempty"`         // whole seconds
	FragMemory   int      `json:"frag_memory,omitempty" yaml:"frag_memory,omitempty"`     // bytes
	FragDistance int      `json:"frag_distance,omitempty" yaml:"frag_distance,omitempty"` // fragments

	// Of a rate search: goals as typed, the highest and the lowest load, and what ends it early.
	Goals     []string `json:"goal,omitempty" yaml:"goal,omitempty"`
	MaxLoad   Rate     `json:"max_load,omitzero" yaml:"max_load,omitempty"` // zero: what the generator can offer
	MinLoad   Rate     `json:"min_load,omitzero" yaml:"min_load,omitempty"`
	MaxTrials int      `json:"max_trials,omitempty" yaml:"max_trials,omitempty"` // of each arm; 0 is no limit
	MaxTime   Duration `json:"max_time,omitempty" yaml:"max_time,omitempty"`     // of all; 0 is no limit

	Blocks int     `json:"blocks" yaml:"blocks"`
	Warmup int     `json:"warmup" yaml:"warmup"` // discarded trials of each arm
	AA     bool    `json:"aa" yaml:"aa"`         // add a twin of the first arm as control
	Seed   uint64  `json:"seed" yaml:"seed"`
	Margin float64 `json:"margin" yaml:"margin"` // practical margin of the verdict: 0.02 is 2 %

	Placement    string   `json:"placement,omitempty" yaml:"placement,omitempty"` // shared, split, sender; empty: by number of CPUs
	CPUs         CPUs     `json:"cpus,omitempty" yaml:"cpus,omitempty"`
	SoftirqSched string   `json:"softirq_sched" yaml:"softirq_sched"`             // other, fifo, best
	PeerNAPI     string   `json:"peer_napi,omitempty" yaml:"peer_napi,omitempty"` // threaded, inline; empty: by test
	Strict       bool     `json:"strict" yaml:"strict"`                           // a mode that is not granted is an error
	Require      []string `json:"require,omitempty" yaml:"require,omitempty"`
}

// Cell is one size at one rate over one number of queues: what a [Document] is about.
type Cell struct {
	Size   Size
	Rate   Rate
	Queues int
	// Pattern is set in the test fragments.
	Pattern string
}

// DefaultPlan is the plan of test when nothing else is said: default arms, 64-byte
// frames, six blocks of one-second trials. Rate and flows are left to
// [Plan.Complete], which knows whether there is a real link, and how many queues.
func DefaultPlan(test string) Plan {
	p := Plan{Test: test, IP: 4, Queues: Queues{1}, Blocks: MinBlocks, Warmup: 1, Seed: 1, Margin: DefaultMargin, SoftirqSched: "best"}
	p.Arms = DefaultArms(test)
	return p
}

// Complete fills in what no one gave and depends on the rest: the size
// (the smallest frame), the rate (line, of 1 Gb/s on the veth rig), the flows
// (one, or enough to reach every queue), the time a trial takes.
func (p *Plan) Complete() {
	if len(p.Arms) == 0 {
		p.Arms = DefaultArms(p.Test)
	}
	p.completeFragments()
	t, _ := LookupTest(p.Test)
	if t.Captures {
		p.completeCapture()
	}
	if len(p.Sizes) == 0 && p.Payload == 0 && !t.OwnSizes {
		_, least := frameLimits(p.IP)
		p.Sizes = []Size{{Bytes: least}}
	}
	if len(p.Rates) == 0 {
		r := Rate{Unit: Line, Value: 1}
		if p.NIC == "" {
			r.LinkBPS = 1e9
		}
		if t.Flood || p.Mode == ModePingPong {
			r = Rate{Unit: MaxRate}
		} else if own, err := ParseRate(t.Rate); t.Rate != "" && err == nil {
			r = own
		}
		p.Rates = []Rate{r}
	}
	if p.Flows == 0 {
		p.Flows = 1
		switch {
		case t.Flows > 0:
			p.Flows = t.Flows
		case p.Queues.Most() > 1:
			p.Flows = SpreadFlows
		}
	}
	if p.Driver == DriverDnsperf && p.PeerNAPI == "" {
		p.PeerNAPI = "threaded" // its replies climb through a whole stack, which is no part of the SUT
	}
	p.completeConnections(t)
	if p.Count == 0 && p.Duration == 0 && p.Test == TestFragments {
		p.Count = p.datagramsOfASecond()
	}
	if p.Count == 0 && p.Duration == 0 {
		p.Duration = Duration(time.Second)
	}
}

// ArmSpecs parses the arms, in order.
func (p *Plan) ArmSpecs() ([]ArmSpec, error) {
	specs := make([]ArmSpec, 0, len(p.Arms))
	for _, s := range p.Arms {
		a, err := ParseArm(s)
		if err != nil {
			return nil, err
		}
		specs = append(specs, a)
	}
	return specs, nil
}

// Requirements parses the requirements, in order.
func (p *Plan) Requirements() ([]Requirement, error) {
	var reqs []Requirement
	for _, s := range p.Require {
		r, err := ParseRequirement(s)
		if err != nil {
			return nil, err
		}
		reqs = append(reqs, r)
	}
	return reqs, nil
}

// SearchGoals parses the goals, in order; without any it is quick.
func (p *Plan) SearchGoals() ([]Goal, error) {
	texts := p.Goals
	if len(texts) == 0 {
		texts = []string{GoalQuick}
	}
	var goals []Goal
	for _, s := range texts {
		g, err := ParseGoal(s)
		if err != nil {
			return nil, err
		}
		goals = append(goals, g)
	}
	return goals, nil
}

// Cells are all sizes at all rates, sizes first, for each number of queues.
func (p *Plan) Cells() ([]Cell, error) {
	if p.Test == TestFragments {
		return p.fragmentCells(), nil
	}
	sizes := p.Sizes
	if t, _ := LookupTest(p.Test); t.OwnSizes {
		sizes = []Size{{}} // whoever runs the plan finds out
	}
	if p.Payload != 0 {
		z, err := SizeOfPayload(p.Payload, p.IP)
		if err != nil {
			return nil, err
		}
		sizes = []Size{z}
	}
	var cells []Cell
	for _, q := range p.Queues {
		for _, z := range sizes {
			for _, r := range p.Rates {
				cells = append(cells, Cell{Size: z, Rate: r, Queues: q})
			}
		}
	}
	return cells, nil
}

// Validate checks a completed plan as a whole. The error is the first
// [*UsageError] found, in the order of the fields.
func (p *Plan) Validate() error {
	bad := func(key string, value any, problem, hint string) error {
		return &UsageError{What: key, Token: fmt.Sprint(value), Problem: problem, Hint: hint}
	}
	test, ok := LookupTest(p.Test)
	if !ok {
		return unknown("test", p.Test, "no such test", testNames())
	}
	arms, err := p.ArmSpecs()
	if err != nil {
		return err
	}
	for _, a := range arms {
		if err := test.check(a); err != nil {
			return err
		}
	}
	switch {
	case len(p.Arms) == 0:
		return bad("arms", "", "none given", "as in kernel:recvmmsg xdp:auto")
	case p.IP != 4 && p.IP != 6:
		return bad("ip", p.IP, "must be 4 or 6", "use --ip 4")
	case p.NIC == "" && p.Peer != "":
		return bad("peer", p.Peer, "needs the interface on this side", "add --nic IF")
	case p.NIC != "" && p.Peer == "":
		return bad("nic", p.NIC, "needs the other side", "add --peer :IF for a port of this host, or --peer HOST:IF")
	case p.Payload != 0 && len(p.Sizes) > 0:
		return bad("payload", p.Payload, "given with a size; a frame has one size", "drop one of --payload and --size")
	case test.OwnSizes && (p.Payload != 0 || len(p.Sizes) > 0):
		return bad("size", "", fmt.Sprintf("frames of %s have the sizes that their contents give them", p.Test), "leave it out")
	case p.Payload == 0 && len(p.Sizes) == 0 && !test.OwnSizes:
		return bad("size", "", "none given", "as in --size 64")
	}
	if err := p.validateAnswers(test); err != nil {
		return err
	}
	if err := p.validateCapture(test); err != nil {
		return err
	}
	switch {
	case p.badConnections(test) != nil:
		return p.badConnections(test)
	case p.Mode != "" && len(test.Modes) == 0:
		return bad("mode", p.Mode, fmt.Sprintf("%s has no requests and answers", p.Test), "leave it out")
	case p.Mode != "" && !slices.Contains(test.Modes, p.Mode):
		return unknown("mode", p.Mode, "no such mode", test.Modes)
	}
	for _, z := range p.Sizes {
		if err := z.Validate(p.IP); err != nil {
			return err
		}
	}
	if err := p.validateFragments(); err != nil {
		return err
	}
	if _, err := p.Cells(); err != nil {
		return err
	}
	if err := p.Queues.validate(); err != nil {
		return err
	}
	for _, r := range p.Rates {
		if r.Unit == Line && r.LinkBPS == 0 && p.NIC == "" {
			return bad("rate", r, "the veth rig has no line rate", "name one, as in line:1g or line:10g")
		}
	}
	switch {
	case len(p.Rates) == 0:
		return bad("rate", "", "none given", "as in --rate line:1g")
	case p.Count != 0 && p.Duration != 0:
		return bad("count", p.Count, "given with a duration; a trial has one end", "drop one of --count and --duration")
	case p.Count == 0 && p.Duration <= 0:
		return bad("duration", "", "none given", "as in --duration 1s")
	case p.Flows < 1 || p.Flows > MaxFlows:
		return bad("flows", p.Flows, fmt.Sprintf("must be 1..%d: a flow is a source port from 10000 up", MaxFlows), "use --flows 1")
	case p.MaxTrials < 0:
		return bad("max_trials", p.MaxTrials, "must not be negative", "use --max-trials 200, or 0 for no limit")
	case p.MaxLoad.Unit == MaxRate || p.MinLoad.Unit == MaxRate:
		return bad("max_load", "max", "the highest load is a number", "leave it out for all that the generator can offer")
	case p.Blocks < 1 || p.Blocks > 1000:
		return bad("blocks", p.Blocks, fmt.Sprintf("must be 1..1000; fewer than %d give no verdict", MinBlocks), fmt.Sprintf("use --blocks %d", MinBlocks))
	case p.Warmup < 0 || p.Warmup > 10:
		return bad("warmup", p.Warmup, "must be 0..10", "use --warmup 1")
	case !(p.Margin > 0 && p.Margin <= 0.5):
		return bad("margin", p.Margin, "must be above 0 and at most 50 %", "use --margin 2%")
	case p.Placement != "" && !slices.Contains(placements(), p.Placement):
		return unknown("placement", p.Placement, "no such placement", placements())
	case p.Placement != "" && test.Sends:
		return bad("placement", p.Placement, test.Name+" has none: the SUT receives nothing", "use --peer-napi for the peer's")
	case p.Placement == PlaceSender && p.NIC != "":
		return bad("placement", p.Placement, "only the veth rig can run the receiver's NAPI on the sending core", "use --placement shared or split")
	case !slices.Contains(softirqScheds(), p.SoftirqSched):
		return unknown("softirq_sched", p.SoftirqSched, "no such policy", softirqScheds())
	case p.PeerNAPI != "" && !slices.Contains(peerNAPIs(), p.PeerNAPI):
		return unknown("peer_napi", p.PeerNAPI, "no such place", peerNAPIs())
	}
	if _, err := p.SearchGoals(); err != nil {
		return err
	}
	_, err = p.Requirements()
	return err
}

// SpreadFlows is how many flows a load over several queues has where the plan does not say: the hash that spreads flows over
// sockets and queues then gives each its share within about a tenth.
const SpreadFlows = 256

// MaxFlows is how many source ports there are from 10000 up.
const MaxFlows = 65535 - 10000 + 1

func placements() []string    { return []string{PlaceShared, PlaceSplit, PlaceSender} }
func softirqScheds() []string { return []string{"other", "fifo", "best"} }
func peerNAPIs() []string     { return []string{"threaded", "inline"} }

// Duration is a time.Duration written as text, "10s".
type Duration time.Duration

// MarshalText writes the duration as time.Duration does; empty for 0.
func (d Duration) MarshalText() ([]byte, error) {
	if d == 0 {
		return nil, nil
	}
	return []byte(time.Duration(d).String()), nil
}

// UnmarshalText reads what MarshalText wrote.
func (d *Duration) UnmarshalText(b []byte) error {
	*d = 0
	if len(b) == 0 {
		return nil
	}
	v, err := ParseDuration(string(b))
	*d = Duration(v)
	return err
}
