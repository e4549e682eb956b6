// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"twopath/compare"
	"twopath/internal/knob"
)

// TuneOptions says what to tune, and for what.
type TuneOptions struct {
	Port    string            // a device of this network namespace; "" means the machine only
	Profile string            // Throughput or Latency; "" means Throughput
	Only    []string          // knobs to look at; none means all
	Set     map[string]string // values wanted whatever the profile says, canonical
	Dir     string            // of the journal; "" means knob.StateDir
	root    string            // prefix of paths, for tests
}

// Profiles.
const (
	Throughput = "throughput"
	Latency    = "latency"
)

// Profiles lists them.
func Profiles() []string { return []string{Throughput, Latency} }

// Action is what a plan does about a knob.
type Action string

const (
	Change  Action = "change"  // Want is not what is Now
	Keep    Action = "keep"    // it is as wanted, or the profile has no wish
	Lacking Action = "lacking" // driver or kernel do not have it, or do not let it be set; Note says so
)

// Step is what a plan says of one knob.
type Step struct {
	Knob   string `json:"knob"`
	Action Action `json:"action"`
	Now    string `json:"now"`  // "" when it is not there
	Want   string `json:"want"` // "" when there is no wish
	Why    string `json:"why"`  // what it does to a measurement
	Risk   string `json:"risk"` // what it does to others on this machine
	Note   string `json:"note,omitempty"`
}

// TunePlan lists every knob: what is to change, what stays, and what this driver or kernel lacks. It changes nothing, and
// needs few privileges. Knobs that are not known, or not as Parse takes them, are a *compare.UsageError.
func TunePlan(o TuneOptions) ([]Step, error) {
	if !slices.Contains(append(Profiles(), ""), o.Profile) {
		return nil, compare.Unknown("profile", o.Profile, "no such profile", Profiles())
	}
	for _, name := range slices.Concat(o.Only, slices.Sorted(maps.Keys(o.Set))) {
		if !slices.Contains(knob.Names(), name) {
			return nil, compare.Unknown("knob", name, "no such knob", knob.Names())
		}
		if o.Port == "" && knob.Scope(name) == compare.Port {
			return nil, &compare.UsageError{What: "knob", Token: name, Problem: "is a port's", Hint: "name the port: twopath tune plan IF"}
		}
	}
	var cpus []int
	var err error
	if cpus, err = AllowedCPUs(); err != nil {
		return nil, err
	}
	at := knob.At{Port: o.Port, Root: o.root}
	var out []Step
	for _, name := range knob.Names() {
		if o.Port == "" && knob.Scope(name) == compare.Port || len(o.Only) > 0 && !slices.Contains(o.Only, name) && o.Set[name] == "" {
			continue
		}
		out = append(out, o.step(name, at, cpus))
	}
	return out, nil
}

// step looks at one knob.
func (o TuneOptions) step(name string, at knob.At, cpus []int) Step {
	w := wishFor(name, cmp.Or(o.Profile, Throughput))
	s := Step{Knob: name, Action: Keep, Why: w.why, Risk: w.risk}
	r, err := knob.Read(name, at)
	s.Now = r.Value
	asked := o.Set[name]
	if err != nil {
		s.Action, s.Note = Lacking, err.Error()
		if u := new(knob.Unsupported); errors.As(err, &u) {
			s.Note = u.Why
		}
		s.Want = asked
		return s
	}
	s.Want = asked
	if asked == "" && w.want != nil {
		s.Want = w.want(r, cpus)
	}
	switch {
	case s.Want == "" || s.Want == s.Now:
		if r.Fixed != "" {
			s.Note = r.Fixed
		}
	case r.Fixed != "":
		s.Action, s.Note = Lacking, r.Fixed
	default:
		s.Action = Change
	}
	return s
}

// Changes counts the steps that change something. A value that was asked for, and cannot be set, is among them: applying it
// is refused.
func (o TuneOptions) Changes(plan []Step) int {
	n := 0
	for _, s := range plan {
		if s.Action == Change || s.Action == Lacking && o.Set[s.Knob] != "" {
			n++
		}
	}
	return n
}

// wants are the values of a plan, as the knob package takes them: also of what is as wanted, and is to stay so.
func (o TuneOptions) wants(plan []Step) []knob.Want {
	var out []knob.Want
	for _, s := range plan {
		if s.Want != "" && (s.Action != Lacking || o.Set[s.Knob] != "") {
			out = append(out, knob.Want{Knob: s.Knob, Value: s.Want})
		}
	}
	return out
}

// TuneApply carries a plan out; the journal is nil when there was nothing to do. The error is a *knob.Refused when a knob
// could not be set, and then everything is as it was; knob.ErrTuned is in it when the machine is tuned already.
func TuneApply(o TuneOptions, plan []Step) (*knob.Journal, error) {
	return knob.Apply(knob.Options{Kind: knob.Tune, Port: o.Port, Dir: o.Dir, Root: o.root}, o.wants(plan))
}

// tunedCheck says whether a tuning is in force.
func tunedCheck(dir string) Check {
	c := Check{ID: "tune.journal", Status: Pass, What: "twopath tune has set nothing", Why: "what is set stays set until it is undone; the record tells it"}
	j, err := knob.Load(dir, knob.Tune)
	switch {
	case err != nil:
		c.Status, c.What, c.Cure = Warn, err.Error(), "see what is in it; twopath tune undo cannot"
	case j == nil:
	case j.Rebooted():
		c.Status, c.What, c.Cure = Warn, "a tuning from before the machine was started again is gone, and its journal is left", "twopath tune undo removes the journal"
	case !j.Settled:
		c.Status, c.What, c.Cure = Warn, "a tuning was broken off: "+describe(j), "sudo twopath tune undo"
	default:
		c.What = "tuned " + j.Made.Format("2006-01-02 15:04") + ": " + describe(j) + "; put it back: sudo twopath tune undo"
	}
	return c
}

// describe lists what a journal has set.
func describe(j *knob.Journal) string {
	var parts []string
	for _, s := range j.Settings {
		if s.Want != "" {
			parts = append(parts, fmt.Sprintf("%s %s -> %s", s.Knob, quote(s.Before), quote(cmp.Or(s.After, s.Want))))
		}
	}
	if j.Port != "" {
		return j.Port + " and the machine: " + strings.Join(parts, ", ")
	}
	return strings.Join(parts, ", ")
}

// quote marks a value with spaces.
func quote(v string) string {
	if strings.Contains(v, " ") {
		return strconv.Quote(v)
	}
	return v
}
