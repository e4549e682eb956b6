// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// TestFragments is the name of the test whose packets are UDP datagrams in IP fragments.
const TestFragments = "fragments"

// FragmentPatterns are the ways to send a datagram's fragments that a plan may name, in the order of the mix, which is last.
func FragmentPatterns() []string {
	return []string{"in-order", "shuffled", "duplicated", "overlapping", "missing-one", "mix"}
}

// Defaults and limits of the test.
const (
	defaultDatagram     = 4000 // bytes of payload: three fragments
	defaultMTU          = 1500
	defaultFragCount    = 10_000
	defaultFragTime     = Duration(time.Second) // of reassembly; Linux' own default is 30 s, for IPv6 60 s
	defaultFragMemory   = 64 << 20              // bytes; Linux' own default is 4 MiB
	defaultFragDistance = 64                    // as Linux'

	// MaxFragmentBytes is what the prepared frames of a trial may take together, MaxIPv4IDs how many ids IPv4 has.
	MaxFragmentBytes = 64 << 20
	MaxIPv4IDs       = 1 << 16
)

// FragmentTraffic is the load of the test fragments.
type FragmentTraffic struct {
	Pattern   string `json:"pattern"`
	MTU       int    `json:"mtu"`       // bytes of an IP packet that carries a fragment, at most
	Fragments int    `json:"fragments"` // of a whole datagram
	Datagrams uint64 `json:"datagrams"` // a trial
	// What bounds reassembly, on either engine.
	TimeoutSeconds float64 `json:"timeout_seconds"`
	MemoryBytes    int     `json:"memory_bytes"`
	Distance       int     `json:"distance"` // IPv4: fragments of other datagrams between two of one
}

// TrialFragments counts fragments, where packets are datagrams.
type TrialFragments struct {
	Sent     uint64 `json:"sent"`
	Received uint64 `json:"received"` // that reassembly got
	Wasted   uint64 `json:"wasted"`   // of these, the ones that are in no datagram received: copies too
	// Undeliverable is how many datagrams were sent so that nobody can put them together, or may. They are in Lost.
	Undeliverable uint64 `json:"undeliverable"`
}

// plus is the sum of two; nil counts as nothing.
func (f *TrialFragments) plus(o *TrialFragments) *TrialFragments {
	if o == nil {
		return f
	}
	sum := *o
	if f != nil {
		sum.Sent, sum.Received = sum.Sent+f.Sent, sum.Received+f.Received
		sum.Wasted, sum.Undeliverable = sum.Wasted+f.Wasted, sum.Undeliverable+f.Undeliverable
	}
	return &sum
}

// avoidable is the share of sent that was lost beyond what nobody could have received.
func avoidable(sent, lost uint64, f *TrialFragments) float64 {
	if f != nil {
		lost -= min(lost, f.Undeliverable)
	}
	return float64(lost) / float64(sent)
}

// AvoidableLoss is the loss ratio without datagrams that were sent so that nobody could receive them; in other tests it is the
// loss ratio.
func (t *Trial) AvoidableLoss() float64 {
	if t.Sent == 0 {
		return math.NaN()
	}
	return avoidable(t.Sent, t.Lost, t.Fragments)
}

// AvoidableLoss is the same over an arm's valid trials; NaN when nothing was sent.
func (a *Arm) AvoidableLoss() float64 {
	if a.Fragments == nil {
		return Val(a.LossRatio)
	}
	if a.Sent == 0 {
		return math.NaN()
	}
	return avoidable(a.Sent, a.Lost, a.Fragments)
}

// completeFragments fills in what the test needs and no one gave.
func (p *Plan) completeFragments() {
	if p.Test != TestFragments {
		return
	}
	if p.Payload == 0 && len(p.Sizes) == 0 {
		p.Payload = defaultDatagram
	}
	if len(p.Patterns) == 0 {
		p.Patterns = []string{"mix"}
	}
	if p.MTU == 0 {
		p.MTU = defaultMTU
	}
	if p.FragTime == 0 {
		p.FragTime = defaultFragTime
	}
	if p.FragMemory == 0 {
		p.FragMemory = defaultFragMemory
	}
	if p.FragDistance == 0 {
		p.FragDistance = defaultFragDistance
	}
}

// datagramsOfASecond is what the highest rate sends in a second, or a number of them for a flood, as far as their frames can be
// prepared.
func (p *Plan) datagramsOfASecond() uint64 {
	n, z := p.datagram()
	if n == 0 {
		return defaultFragCount // Validate refuses the MTU
	}
	count := 0.0
	for _, r := range p.Rates {
		if pps, err := r.Resolve(z, 0, math.NaN()); err == nil && pps > 0 {
			count = max(count, pps)
		}
	}
	if count == 0 {
		count = defaultFragCount
	}
	for _, pattern := range p.Patterns {
		count = min(count, float64(p.maxDatagrams(pattern)))
	}
	return uint64(max(count, 1))
}

// fragmentCells are the test's cells: a pattern each.
func (p *Plan) fragmentCells() []Cell {
	_, z := p.datagram()
	var cells []Cell
	for _, q := range p.Queues {
		for _, pattern := range p.Patterns {
			for _, r := range p.Rates {
				cells = append(cells, Cell{Size: z, Rate: r, Queues: q, Pattern: pattern})
			}
		}
	}
	return cells
}

// FragmentTraffic describes the load of a cell; nil in other tests.
func (p *Plan) FragmentTraffic(c Cell) *FragmentTraffic {
	if p.Test != TestFragments {
		return nil
	}
	n, _ := p.datagram()
	count := p.Count
	if pps, err := c.Rate.Resolve(c.Size, 0, math.NaN()); count == 0 && err == nil {
		count = uint64(pps * time.Duration(p.Duration).Seconds())
	}
	return &FragmentTraffic{Pattern: c.Pattern, MTU: p.MTU, Fragments: n, Datagrams: count, TimeoutSeconds: time.Duration(p.FragTime).Seconds(), MemoryBytes: p.FragMemory, Distance: p.FragDistance}
}

// datagram is how many fragments a whole datagram has, and the size of a frame that would take as long on the wire as they
// do, each sent once.
func (p *Plan) datagram() (fragments int, z Size) {
	lengths := p.fragmentLengths()
	for _, n := range lengths {
		z.Bytes += n + 4 + WireOverhead
	}
	z.Bytes -= WireOverhead
	return len(lengths), z
}

// fragmentLengths are the frames of a datagram in bytes, without FCS: an Ethernet header of 14, padded to 60.
func (p *Plan) fragmentLengths() []int {
	header := 20
	if p.IP == 6 {
		header = 48
	}
	per := (p.MTU - header) &^ 7
	if per < 8 {
		return nil
	}
	var out []int
	for left := 8 + p.Payload; left > 0; left -= per {
		out = append(out, max(60, 14+header+min(left, per)))
	}
	return out
}

// maxDatagrams is how many datagrams of a pattern fit the memory of prepared frames, and the ids.
func (p *Plan) maxDatagrams(pattern string) int {
	lengths := p.fragmentLengths()
	sum := 8 // that an overlap adds
	for _, n := range lengths {
		sum += n
	}
	twice := 2*sum - lengths[len(lengths)-1]
	switch pattern {
	case "duplicated":
		sum = twice
	case "mix":
		sum = (4*sum + twice + 4) / 5
	}
	n := MaxFragmentBytes/sum - 1
	if p.IP == 4 {
		n = min(n, MaxIPv4IDs)
	}
	return max(n, 1)
}

// validateFragments checks what is the test's own, or refuses it in another test.
func (p *Plan) validateFragments() error {
	bad := func(key string, value any, problem, hint string) error {
		return &UsageError{What: key, Token: fmt.Sprint(value), Problem: problem, Hint: hint}
	}
	if p.Test != TestFragments {
		for _, k := range []struct {
			name  string
			value any
			given bool
		}{{"pattern", strings.Join(p.Patterns, ","), len(p.Patterns) > 0}, {"mtu", p.MTU, p.MTU != 0}, {"frag_time", time.Duration(p.FragTime), p.FragTime != 0},
			{"frag_memory", p.FragMemory, p.FragMemory != 0}, {"frag_distance", p.FragDistance, p.FragDistance != 0}} {
			if k.given {
				return bad(k.name, k.value, "only the test fragments has it, "+p.Test+" has not", "drop it, or use twopath compare fragments")
			}
		}
		return nil
	}
	least, most := 60, 65507
	if p.IP == 6 {
		least, most = 88, 65527
	}
	switch {
	case len(p.Sizes) > 0:
		return bad("size", p.Sizes[0], "a datagram in fragments is of several frames", "use --payload for the datagram's bytes, --mtu for a fragment's")
	case p.MTU < least || p.MTU > MaxFrame-18:
		return bad("mtu", p.MTU, fmt.Sprintf("must be %d..%d: bytes of the IP packet that carries a fragment", least, MaxFrame-18), "use --mtu 1500")
	case p.Payload < 18 || p.Payload > most:
		return bad("payload", p.Payload, fmt.Sprintf("must be 18..%d bytes of UDP payload", most), fmt.Sprintf("use --payload %d", defaultDatagram))
	case len(p.Queues) != 1 || p.Queues[0] != 1:
		return bad("queues", p.Queues, "fragments go by one queue: all but the first have no ports, so that hashing would part them from it", "use --queues 1")
	case p.FragTime < Duration(time.Second) || time.Duration(p.FragTime)%time.Second != 0 || p.FragTime > Duration(10*time.Minute):
		return bad("frag_time", time.Duration(p.FragTime), "must be whole seconds, 1s..10m, as the kernel counts them", "use --frag-time 1s")
	case p.FragMemory < 1<<12 || p.FragMemory > 1<<30:
		return bad("frag_memory", p.FragMemory, "must be 4k..1G bytes", "use --frag-memory 64M")
	case p.FragDistance < 1 || p.FragDistance > 1<<20:
		return bad("frag_distance", p.FragDistance, fmt.Sprintf("must be 1..%d fragments", 1<<20), "use --frag-distance 64")
	}
	n, z := p.datagram()
	if n < 2 {
		return bad("payload", p.Payload, fmt.Sprintf("fits one packet of %d bytes, without fragments", p.MTU), "use a larger --payload or a smaller --mtu")
	}
	for _, pattern := range p.Patterns {
		if !slices.Contains(FragmentPatterns(), pattern) {
			return unknown("pattern", pattern, "no such pattern", FragmentPatterns())
		}
		limit := p.maxDatagrams(pattern)
		for _, r := range p.Rates {
			count, what, value := float64(p.Count), "count", any(p.Count)
			if p.Count == 0 {
				if r.Unit == MaxRate {
					return bad("rate", r, "as fast as the sender can needs a number of datagrams: their frames are prepared", fmt.Sprintf("add --count %d", min(limit, defaultFragCount)))
				}
				pps, err := r.Resolve(z, 0, math.NaN())
				if err != nil {
					continue // a link's rate, known later
				}
				count, what, value = pps*time.Duration(p.Duration).Seconds(), "duration", time.Duration(p.Duration)
			}
			if count > float64(limit) {
				return bad(what, value, fmt.Sprintf("%.0f datagrams a trial: their frames are prepared, each with its own id and stamp, and at most %d of this size and pattern (%s) fit %d MiB and the ids there are",
					count, limit, pattern, MaxFragmentBytes>>20), fmt.Sprintf("use --count %d, or less", limit))
			}
		}
	}
	return nil
}

func setPatterns(p *Plan, v string) error {
	p.Patterns = nil
	for _, s := range strings.Split(v, ",") {
		s = strings.TrimSpace(s)
		if !slices.Contains(FragmentPatterns(), s) {
			return unknown("pattern", s, "no such pattern", FragmentPatterns())
		}
		if slices.Contains(p.Patterns, s) {
			return &UsageError{What: "pattern", Token: s, Problem: "given twice"}
		}
		p.Patterns = append(p.Patterns, s)
	}
	return nil
}

func setFragMemory(p *Plan, v string) error {
	n, err := parseBytes(v)
	if err != nil || n > math.MaxInt32 {
		return &UsageError{What: "frag_memory", Token: v, Problem: "not a size in bytes", Hint: "as in 4M or 65536"}
	}
	p.FragMemory = int(n)
	return nil
}

func setFragDistance(p *Plan, v string) error {
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		return &UsageError{What: "frag_distance", Token: v, Problem: "not a whole number above 0", Hint: "as in 64"}
	}
	p.FragDistance = n
	return nil
}
