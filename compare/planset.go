// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"
	"strconv"
	"strings"
)

// planKey is one setting of a plan, the same in a file and as a flag.
type planKey struct {
	name  string
	alias string // another name for it, "" is none
	list  bool   // a YAML list is joined with commas, or with sep
	sep   string
	set   func(p *Plan, value string) error
}

// PlanKeys are the keys a plan file may have, in the order of [Plan].
func PlanKeys() []string {
	var names []string
	for _, k := range planKeys() {
		names = append(names, k.name)
	}
	return names
}

// Set gives one setting by its key, as typed. A flag's name is its key with
// "-" for "_". It judges the value alone; [Plan.Validate] judges the whole.
//
// A later setting overrides an earlier one: size and payload displace each
// other, and so do count and duration, so a flag overrides a file.
func (p *Plan) Set(key, value string) error {
	if k, ok := lookupKey(strings.ReplaceAll(key, "-", "_")); ok {
		return k.set(p, value)
	}
	return unknown("plan key", key, "unknown", PlanKeys())
}

// lookupKey finds a key by its name or its alias.
func lookupKey(name string) (planKey, bool) {
	for _, k := range planKeys() {
		if name != "" && (k.name == name || k.alias == name) {
			return k, true
		}
	}
	return planKey{}, false
}

func planKeys() []planKey {
	text := func(field func(*Plan) *string) func(*Plan, string) error {
		return func(p *Plan, v string) error { *field(p) = v; return nil }
	}
	number := func(what string, field func(*Plan) *int) func(*Plan, string) error {
		return func(p *Plan, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return &UsageError{What: what, Token: v, Problem: "not a whole number"}
			}
			*field(p) = n
			return nil
		}
	}
	yes := func(what string, field func(*Plan) *bool) func(*Plan, string) error {
		return func(p *Plan, v string) error {
			b, err := strconv.ParseBool(v)
			if err != nil {
				return &UsageError{What: what, Token: v, Problem: "not true or false"}
			}
			*field(p) = b
			return nil
		}
	}
	return []planKey{
		{name: "test", set: text(func(p *Plan) *string { return &p.Test })},
		{name: "arms", list: true, set: setArms},
		{name: "nic", set: text(func(p *Plan) *string { return &p.NIC })},
		{name: "peer", set: text(func(p *Plan) *string { return &p.Peer })},
		{name: "ip", set: number("ip", func(p *Plan) *int { return &p.IP })},
		{name: "size", list: true, set: func(p *Plan, v string) error {
			sizes, err := ParseSizes(v, 4) // an IPv6 plan's own, higher minimum is checked by Validate
			p.Sizes, p.Payload = sizes, 0
			return err
		}},
		{name: "payload", set: func(p *Plan, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return &UsageError{What: "payload", Token: v, Problem: "not a number of bytes"}
			}
			p.Sizes, p.Payload = nil, n
			if p.Test == "" || p.Test == TestFragments { // judged by Validate: datagrams in fragments are longer
				return nil
			}
			_, err = SizeOfPayload(n, p.IP)
			return err
		}},
		{name: "rate", list: true, set: setRates},
		{name: "count", set: func(p *Plan, v string) (err error) {
			p.Duration = 0
			p.Count, err = ParseCount(v)
			return err
		}},
		{name: "duration", set: func(p *Plan, v string) error {
			d, err := ParseDuration(v)
			p.Count, p.Duration = 0, Duration(d)
			return err
		}},
		{name: "flows", set: number("flows", func(p *Plan) *int { return &p.Flows })},
		{name: "queues", alias: "workers", list: true, set: func(p *Plan, v string) (err error) { p.Queues, err = ParseQueues(v); return err }},
		{name: "cc", set: number("cc", func(p *Plan) *int { return &p.CC })},
		{name: "requests", set: number("requests", func(p *Plan) *int { return &p.Requests })},
		{name: "body", set: func(p *Plan, v string) error {
			n, err := parseBytes(v)
			if err != nil || n > MaxBody {
				return &UsageError{What: "body", Token: v, Problem: "not a size in bytes", Hint: "as in 1000 or 1M"}
			}
			p.Body = int(n)
			return nil
		}},
		{name: "work", set: func(p *Plan, v string) (err error) { p.Work, err = ParseWork(v); return err }},
		{name: "mode", set: text(func(p *Plan) *string { return &p.Mode })},
		{name: "capture", set: text(func(p *Plan) *string { return &p.Capture })},
		{name: "speed", set: setSpeed},
		{name: "loops", set: number("loops", func(p *Plan) *int { return &p.Loops })},
		{name: "rewrite_mac", set: text(func(p *Plan) *string { return &p.RewriteMAC })},
		{name: "rewrite_ip", list: true, set: text(func(p *Plan) *string { return &p.RewriteIP })},
		{name: "zone", set: text(func(p *Plan) *string { return &p.Zone })},
		{name: "queries", set: text(func(p *Plan) *string { return &p.Queries })},
		{name: "driver", set: text(func(p *Plan) *string { return &p.Driver })},
		{name: "edns", set: yes("edns", func(p *Plan) *bool { return &p.EDNS })},
		{name: "pattern", list: true, set: setPatterns},
		{name: "mtu", set: number("mtu", func(p *Plan) *int { return &p.MTU })},
		{name: "frag_time", set: func(p *Plan, v string) error {
			d, err := ParseDuration(v)
			p.FragTime = Duration(d)
			return err
		}},
		{name: "frag_memory", set: setFragMemory},
		{name: "frag_distance", set: setFragDistance},
		{name: "goal", list: true, sep: GoalSeparator, set: setGoals},
		{name: "max_load", set: setLoad("max_load", func(p *Plan) *Rate { return &p.MaxLoad })},
		{name: "min_load", set: setLoad("min_load", func(p *Plan) *Rate { return &p.MinLoad })},
		{name: "max_trials", set: number("max_trials", func(p *Plan) *int { return &p.MaxTrials })},
		{name: "max_time", set: func(p *Plan, v string) error {
			d, err := ParseDuration(v)
			p.MaxTime = Duration(d)
			return err
		}},
		{name: "blocks", set: number("blocks", func(p *Plan) *int { return &p.Blocks })},
		{name: "warmup", set: number("warmup", func(p *Plan) *int { return &p.Warmup })},
		{name: "aa", set: yes("aa", func(p *Plan) *bool { return &p.AA })},
		{name: "seed", set: func(p *Plan, v string) (err error) {
			if p.Seed, err = strconv.ParseUint(v, 0, 64); err != nil {
				return &UsageError{What: "seed", Token: v, Problem: "not a whole number of 64 bits"}
			}
			return nil
		}},
		{name: "margin", set: func(p *Plan, v string) (err error) { p.Margin, err = parseShare("margin", v); return err }},
		{name: "placement", set: text(func(p *Plan) *string { return &p.Placement })},
		{name: "cpus", list: true, set: func(p *Plan, v string) (err error) { p.CPUs, err = ParseCPUs(v); return err }},
		{name: "softirq_sched", set: text(func(p *Plan) *string { return &p.SoftirqSched })},
		{name: "peer_napi", set: text(func(p *Plan) *string { return &p.PeerNAPI })},
		{name: "strict", set: yes("strict", func(p *Plan) *bool { return &p.Strict })},
		{name: "require", list: true, set: setRequire},
	}
}

func setArms(p *Plan, v string) error {
	p.Arms = nil
	for _, s := range strings.FieldsFunc(v, func(r rune) bool { return r == ',' || r == ' ' }) {
		a, err := ParseArm(s)
		if err != nil {
			return err
		}
		p.Arms = append(p.Arms, a.String())
	}
	return nil
}

func setRates(p *Plan, v string) error {
	p.Rates = nil
	for _, s := range strings.Split(v, ",") {
		r, err := ParseRate(strings.TrimSpace(s))
		if err != nil {
			return err
		}
		for _, other := range p.Rates {
			if other.String() == r.String() {
				return &UsageError{What: "rate", Token: s, Problem: "given twice"}
			}
		}
		p.Rates = append(p.Rates, r)
	}
	return nil
}

// GoalSeparator stands between goals, for a goal has commas of its own.
const GoalSeparator = ";"

func setGoals(p *Plan, v string) error {
	p.Goals = nil
	for _, s := range strings.Split(v, GoalSeparator) {
		g, err := ParseGoal(strings.TrimSpace(s))
		if err != nil {
			return err
		}
		if slices.Contains(p.Goals, g.String()) {
			return &UsageError{What: "goal", Token: s, Problem: "given twice"}
		}
		p.Goals = append(p.Goals, g.String())
	}
	return nil
}

func setLoad(what string, field func(*Plan) *Rate) func(*Plan, string) error {
	return func(p *Plan, v string) error {
		r, err := ParseRate(v)
		if err != nil {
			return err
		}
		if r.Unit == MaxRate {
			return &UsageError{What: what, Token: v, Problem: "a load is a number", Hint: "as in 2M, line:10g or 80%limit"}
		}
		*field(p) = r
		return nil
	}
}

func setRequire(p *Plan, v string) error {
	p.Require = nil
	for _, s := range strings.Split(v, ",") {
		r, err := ParseRequirement(strings.TrimSpace(s))
		if err != nil {
			return err
		}
		p.Require = append(p.Require, r.String())
	}
	return nil
}

// parseShare reads 0.02 or 2%.
func parseShare(what, s string) (float64, error) {
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, &UsageError{What: what, Token: s, Problem: "not a number", Hint: "as in 2% or 0.02"}
	}
	if percent {
		v /= 100
	}
	return v, nil
}
