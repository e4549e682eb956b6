// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Goal is a search goal of RFC 9971 (MLRsearch): what a load must uphold to count as borne. Ratios are shares (0.005 is 0.5 %).
type Goal struct {
	// Name is that of a preset, or the goal as typed.
	Name string `json:"name"`
	// FinalSeconds is the Goal Final Trial Duration: shorter trials cannot make a load a lower bound.
	FinalSeconds float64 `json:"final_trial_seconds"`
	// SumSeconds is the Goal Duration Sum: full-length trials of that much time together decide a load for certain.
	SumSeconds float64 `json:"duration_sum_seconds"`
	// LossRatio is the most a trial may lose to count as low-loss.
	LossRatio float64 `json:"loss_ratio"`
	// ExceedRatio is the share of the time in which trials may lose more and the load is still a lower bound.
	ExceedRatio float64 `json:"exceed_ratio"`
	// Width is how far the bounds may be apart at the end, as a share of the upper one.
	Width float64 `json:"width"`
	// InitialSeconds is the length of the first trials; it grows to FinalSeconds, at most fourfold at a time.
	InitialSeconds float64 `json:"initial_trial_seconds"`
}

// Presets of goals.
const (
	// GoalQuick bears the noise of a virtual machine and takes a minute or two; it is the default.
	GoalQuick = "quick"
	// GoalRFC2544 makes the lower bound the throughput of RFC 2544, section 24 (RFC 9971 on compliance).
	GoalRFC2544 = "rfc2544"
	// GoalTST009 is ETSI GS NFV-TST 009's binary search with loss verification, two tries at a load.
	GoalTST009 = "tst009"
)

// GoalPresets are the goals that have a name. METHOD.md says why quick is what it is.
func GoalPresets() []Goal {
	return []Goal{
		{Name: GoalQuick, FinalSeconds: 1, SumSeconds: 9, LossRatio: 0.005, ExceedRatio: 0.5, Width: 0.03, InitialSeconds: 1},
		{Name: GoalRFC2544, FinalSeconds: 60, SumSeconds: 60, LossRatio: 0, ExceedRatio: 0, Width: 0.01, InitialSeconds: 1},
		{Name: GoalTST009, FinalSeconds: 60, SumSeconds: 120, LossRatio: 0, ExceedRatio: 0.5, Width: 0.01, InitialSeconds: 1},
	}
}

func goalPreset(name string) (Goal, bool) {
	for _, g := range GoalPresets() {
		if g.Name == name {
			return g, true
		}
	}
	return Goal{}, false
}

// goalKey is an attribute of a goal as typed.
type goalKey struct {
	name  string
	share bool // in percent; else a time
	field func(*Goal) *float64
}

func goalKeys() []goalKey {
	return []goalKey{
		{"loss", true, func(g *Goal) *float64 { return &g.LossRatio }},
		{"exceed", true, func(g *Goal) *float64 { return &g.ExceedRatio }},
		{"width", true, func(g *Goal) *float64 { return &g.Width }},
		{"final", false, func(g *Goal) *float64 { return &g.FinalSeconds }},
		{"sum", false, func(g *Goal) *float64 { return &g.SumSeconds }},
		{"initial", false, func(g *Goal) *float64 { return &g.InitialSeconds }},
	}
}

const goalHint = "as in quick, rfc2544, or loss=0.1%,width=1%,final=1s,sum=5s,exceed=50%,initial=1s"

// ParseGoal reads a goal: a preset, attributes that replace those of quick, or a preset and attributes:
// rfc2544 | loss=0.1%,width=1% | rfc2544,width=2%. A final duration alone takes the initial one with it where that would be
// longer, and the sum where that would be shorter.
func ParseGoal(s string) (Goal, error) {
	refuse := func(token, problem string) (Goal, error) {
		return Goal{}, &UsageError{What: "goal", Token: token, Problem: problem, Hint: goalHint}
	}
	g, _ := goalPreset(GoalQuick)
	given := map[string]bool{}
	for i, part := range strings.Split(s, ",") {
		part = strings.TrimSpace(part)
		key, value, pair := strings.Cut(part, "=")
		if !pair {
			preset, ok := goalPreset(strings.ToLower(part))
			switch {
			case !ok:
				return Goal{}, unknown("goal", part, "no such goal", goalWords())
			case i > 0:
				return refuse(part, "a preset comes first, and alone")
			}
			g = preset
			continue
		}
		k := slices.IndexFunc(goalKeys(), func(k goalKey) bool { return k.name == key })
		if k < 0 {
			return Goal{}, unknown("goal", key, "no such attribute", goalWords()[len(GoalPresets()):])
		}
		if given[key] {
			return refuse(key, "given twice")
		}
		given[key] = true
		v, err := goalKeys()[k].parse(value)
		if err != nil {
			return Goal{}, err
		}
		*goalKeys()[k].field(&g) = v
	}
	if given["final"] && !given["initial"] {
		g.InitialSeconds = min(g.InitialSeconds, g.FinalSeconds)
	}
	if given["final"] && !given["sum"] {
		g.SumSeconds = max(g.SumSeconds, g.FinalSeconds)
	}
	g.Name = g.String()
	return g, g.check()
}

func goalWords() []string {
	var words []string
	for _, g := range GoalPresets() {
		words = append(words, g.Name)
	}
	for _, k := range goalKeys() {
		words = append(words, k.name)
	}
	return words
}

func (k goalKey) parse(value string) (float64, error) {
	if k.share {
		return parseShare("goal "+k.name, value)
	}
	d, err := ParseDuration(value)
	if err != nil {
		return 0, fmt.Errorf("goal %s: %w", k.name, err)
	}
	return d.Seconds(), nil
}

// check refuses what RFC 9971 says must not be.
func (g Goal) check() error {
	bad := func(key string, v float64, problem, hint string) error {
		return &UsageError{What: "goal", Token: fmt.Sprintf("%s=%v", key, v), Problem: problem, Hint: hint}
	}
	switch {
	case !(g.LossRatio >= 0 && g.LossRatio < 1):
		return bad("loss", g.LossRatio, "must be 0 or more and below 100 %", "as in loss=0.1%")
	case !(g.ExceedRatio >= 0 && g.ExceedRatio < 1):
		return bad("exceed", g.ExceedRatio, "must be 0 or more and below 100 %", "as in exceed=50%")
	case !(g.Width >= 0.0001 && g.Width <= 0.5):
		return bad("width", g.Width, "must be 0.01 % to 50 %", "as in width=1%")
	case !(g.FinalSeconds >= 0.01 && finite(g.FinalSeconds)):
		return bad("final", g.FinalSeconds, "must be 10 ms or more", "as in final=1s")
	case !(g.SumSeconds > 0 && finite(g.SumSeconds)):
		return bad("sum", g.SumSeconds, "must be above 0", "as in sum=5s")
	case g.SumSeconds > 1000*g.FinalSeconds:
		return bad("sum", g.SumSeconds, "more than 1000 trials at one load", "give a smaller sum or a longer final")
	case !(g.InitialSeconds >= 0.01 && g.InitialSeconds <= g.FinalSeconds):
		return bad("initial", g.InitialSeconds, "must be 10 ms or more, and not longer than final", "as in initial=1s")
	}
	return nil
}

// String is the goal as it can be typed: a preset's name, or every attribute.
func (g Goal) String() string {
	for _, preset := range GoalPresets() {
		same := preset
		same.Name = g.Name
		if same == g {
			return preset.Name
		}
	}
	return g.Attributes(",")
}

// Attributes lists every attribute as typed, with sep between them.
func (g Goal) Attributes(sep string) string {
	var parts []string
	for _, k := range goalKeys() {
		v := *k.field(&g)
		text := strconv.FormatFloat(v, 'g', -1, 64) + "s"
		if k.share {
			text = percentText(v)
		} else if d := time.Duration(v * float64(time.Second)); d.Seconds() == v {
			text = d.String()
		}
		parts = append(parts, k.name+"="+text)
	}
	return strings.Join(parts, sep)
}

// GoalRemarks are what RFC 9971 advises against, and these goals do.
func GoalRemarks(goals []Goal) []string {
	var out []string
	for i, g := range goals {
		if g.Width < g.LossRatio {
			out = append(out, fmt.Sprintf("goal %s: its width is below its loss ratio, so a conditional throughput may lie above the upper bound of a stricter goal", g))
		}
		if g.SumSeconds < g.FinalSeconds {
			out = append(out, fmt.Sprintf("goal %s: its duration sum is shorter than one trial, which repeats worse", g))
		}
		if i > 0 && g.FinalSeconds != goals[0].FinalSeconds {
			out = append(out, fmt.Sprintf("goals %s and %s have final trials of different lengths, and trials of one count for the other", goals[0], g))
		}
	}
	return out
}
