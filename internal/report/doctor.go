// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// CheckStatus is the outcome of one doctor check.
type CheckStatus string

// The outcomes. A check that could not be made is a SKIP with its reason,
// never a PASS.
const (
	Pass CheckStatus = "PASS"
	Warn CheckStatus = "WARN"
	Fail CheckStatus = "FAIL"
	Skip CheckStatus = "SKIP"
)

// Check is one line of the doctor's report.
type Check struct {
	ID     string      `json:"id"`             // stable name, e.g. "kernel.live_frames"
	Status CheckStatus `json:"status"`         // PASS, WARN, FAIL or SKIP
	What   string      `json:"what"`           // what was looked at and what was found
	Why    string      `json:"why,omitempty"`  // what it means for a measurement
	Cure   string      `json:"cure,omitempty"` // the next thing to type, empty when there is none
}

// DoctorSummary counts checks by outcome. A status that is none of the four
// counts as failed: nothing unknown passes.
type DoctorSummary struct {
	Pass int `json:"pass"`
	Warn int `json:"warn"`
	Fail int `json:"fail"`
	Skip int `json:"skip"`
}

// Able says whether the machine can measure: nothing failed.
func (s DoctorSummary) Able() bool { return s.Fail == 0 }

// SummarizeChecks counts the outcomes.
func SummarizeChecks(checks []Check) DoctorSummary {
	var s DoctorSummary
	for _, c := range checks {
		switch c.Status {
		case Pass:
			s.Pass++
		case Warn:
			s.Warn++
		case Skip:
			s.Skip++
		default:
			s.Fail++
		}
	}
	return s
}

// DoctorText writes the checks as a table with, under each one that did not
// pass, why it matters and what to do about it.
func DoctorText(w io.Writer, checks []Check, o TextOptions) error {
	o = o.withDefaults()
	p := &page{options: o}
	wide := 0
	for _, c := range checks {
		wide = max(wide, len([]rune(c.ID)))
	}
	wide = min(wide, 32)
	for _, c := range checks {
		status := oneLine(string(c.Status))
		lines := hang(pad(oneLine(c.ID), wide+2), c.What, o.Width-6, wide+2)
		for i, line := range lines {
			lead := strings.Repeat(" ", 6)
			if i == 0 {
				lead = p.paint(statusColour(c.Status), pad(status, 6))
			}
			p.line(strings.TrimRight(lead+line, " "))
		}
		if c.Status == Pass && !o.Wide {
			continue
		}
		margin := strings.Repeat(" ", 8)
		if c.Why != "" {
			p.lines(wrap(c.Why, o.Width, margin))
		}
		if c.Cure != "" {
			p.lines(hang(margin+"cure:", c.Cure, o.Width, len(margin)+6))
		}
	}
	s := SummarizeChecks(checks)
	word := "this machine can measure"
	switch {
	case !s.Able():
		word = "this machine cannot do all of it yet: see FAIL above"
	case s.Warn > 0:
		word = "this machine can measure, with the remarks above"
	}
	p.lines(wrap(fmt.Sprintf("%d passed, %s, %d failed, %d skipped: %s", s.Pass, plural(int64(s.Warn), "warning"), s.Fail, s.Skip, word), o.Width, ""))
	return p.writeTo(w)
}

func statusColour(s CheckStatus) colour {
	switch s {
	case Pass:
		return green
	case Warn:
		return yellow
	case Skip:
		return dim
	}
	return red
}

// DoctorJSON writes the checks and their summary as one JSON object.
func DoctorJSON(w io.Writer, checks []Check) error {
	if checks == nil {
		checks = []Check{}
	}
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	err := e.Encode(struct {
		Schema  string        `json:"schema"`
		Checks  []Check       `json:"checks"`
		Summary DoctorSummary `json:"summary"`
		Able    bool          `json:"able"`
	}{"twopath/doctor/v1", checks, SummarizeChecks(checks), SummarizeChecks(checks).Able()})
	if err != nil {
		return fmt.Errorf("write doctor report: %w", err)
	}
	return nil
}
