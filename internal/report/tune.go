// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
)

// TuneStep is what a tuning plan says of one knob.
type TuneStep struct {
	Knob   string `json:"knob"`
	Action string `json:"action"`         // change, keep or lacking
	Now    string `json:"now"`            // empty when it is not there
	Want   string `json:"want"`           // empty when there is no wish
	Why    string `json:"why"`            // what it does to a measurement
	Risk   string `json:"risk"`           // what it does to others on the machine
	Note   string `json:"note,omitempty"` // why it cannot be set
}

// TunePlan is a plan to show.
type TunePlan struct {
	Schema  string     `json:"schema"`
	Port    string     `json:"port"` // empty: the machine only
	Driver  string     `json:"driver"`
	Profile string     `json:"profile"`
	Steps   []TuneStep `json:"steps"`
}

// TunePlanText writes a plan as a table: what would change first, then what stays, then what is not there and why.
func TunePlanText(w io.Writer, plan TunePlan, o TextOptions) error {
	o = o.withDefaults()
	p := &page{options: o}
	where := "this machine"
	if plan.Port != "" {
		where += " and " + plan.Port
		if plan.Driver != "" {
			where += " (driver " + plan.Driver + ")"
		}
	}
	by := map[string][]TuneStep{}
	for _, s := range plan.Steps {
		by[s.Action] = append(by[s.Action], s)
	}
	change, keep, lacking := by["change"], by["keep"], by["lacking"]
	p.lines(wrap(fmt.Sprintf("plan for %s, profile %s: %d to change, %d stay, %d not to be had", where, plan.Profile, len(change), len(keep), len(lacking)), o.Width, ""))
	if len(change) > 0 {
		p.line("")
		g := &grid{page: p, columns: []align{left, left, left, left}, noteLast: true}
		g.row("  change", "now", "wanted", "why; risk").colour(0, bold).colour(1, bold).colour(2, bold).colour(3, bold)
		for _, s := range change {
			note := s.Why
			if s.Risk != "" {
				note += "; risk: " + s.Risk
			}
			g.row("  "+s.Knob, s.Now, s.Want, note)
		}
		p.lines(g.lines(0, o.Width))
	}
	if len(keep) > 0 {
		p.line("")
		g := &grid{page: p, columns: []align{left, left, left}, noteLast: true}
		g.row("  stays", "now", "what it does").colour(0, bold).colour(1, bold).colour(2, bold)
		for _, s := range keep {
			note := s.Why
			if s.Note != "" {
				note = s.Note + ": " + note
			}
			g.row("  "+s.Knob, s.Now, note)
		}
		p.lines(g.lines(0, o.Width))
	}
	if len(lacking) > 0 {
		p.line("")
		g := &grid{page: p, columns: []align{left, left, left, left}, noteLast: true}
		g.row("  not to be had", "now", "wanted", "because").colour(0, bold).colour(1, bold).colour(2, bold).colour(3, bold)
		for _, s := range lacking {
			g.row("  "+s.Knob, dash(s.Now), dash(s.Want), s.Note)
		}
		p.lines(g.lines(0, o.Width))
	}
	return p.writeTo(w)
}

func dash(s string) string {
	if s == "" {
		return missing
	}
	return s
}

// TunePlanJSON writes the plan as one JSON object.
func TunePlanJSON(w io.Writer, plan TunePlan) error {
	plan.Schema = "twopath/tune-plan/v1"
	if plan.Steps == nil {
		plan.Steps = []TuneStep{}
	}
	return encode(w, "tuning plan", plan)
}

// TuneResult is a setting that was made or undone.
type TuneResult struct {
	Knob   string `json:"knob"`
	Before string `json:"before"` // what it was
	Want   string `json:"want"`   // what was asked for; empty for one that another's change moved
	Now    string `json:"now"`    // as read back
	Note   string `json:"note,omitempty"`
}

// TuneOutcome is what apply or undo did.
type TuneOutcome struct {
	Schema   string       `json:"schema"`
	Did      string       `json:"did"` // apply or undo
	Port     string       `json:"port"`
	Journal  string       `json:"journal"`            // of apply; empty when nothing was set
	Rebooted bool         `json:"rebooted,omitempty"` // of undo: the settings went when the machine was started again
	Settings []TuneResult `json:"settings"`
}

// TuneOutcomeText writes what was done, a line for each setting.
func TuneOutcomeText(w io.Writer, out TuneOutcome, o TextOptions) error {
	o = o.withDefaults()
	p := &page{options: o}
	head := "set, and read back"
	if out.Did == "undo" {
		head = "undone, and read back"
	}
	g := &grid{page: p, columns: []align{left, left, left, left}, noteLast: true}
	g.row("  "+head, "before", "now", "").colour(0, bold).colour(1, bold).colour(2, bold)
	for _, s := range out.Settings {
		g.row("  "+s.Knob, s.Before, s.Now, s.Note)
	}
	p.lines(g.lines(0, o.Width))
	return p.writeTo(w)
}

// TuneOutcomeJSON writes the outcome as one JSON object.
func TuneOutcomeJSON(w io.Writer, out TuneOutcome) error {
	out.Schema = "twopath/tune/v1"
	if out.Settings == nil {
		out.Settings = []TuneResult{}
	}
	return encode(w, "tuning", out)
}

func encode(w io.Writer, what string, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	if err := e.Encode(v); err != nil {
		return fmt.Errorf("write %s: %w", what, err)
	}
	return nil
}
