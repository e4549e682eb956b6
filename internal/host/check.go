// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"os"
)

// Status is the outcome of a check.
type Status string

const (
	Pass Status = "PASS"
	Warn Status = "WARN" // it can measure, but worse, or not everything
	Fail Status = "FAIL" // it can not measure until this is cured
	Skip Status = "SKIP" // not looked at, and What says why
)

// Check is one finding of the doctor.
type Check struct {
	ID     string `json:"id"` // stable, dotted: "cap.net_admin"
	Status Status `json:"status"`
	What   string `json:"what"` // what was found, with values and units
	Why    string `json:"why"`  // why it matters
	Cure   string `json:"cure"` // what to type or do; "" when there is nothing to do
}

// Probe is a feature that is found out by trying it. Try makes what it needs and removes it again.
type Probe struct {
	ID       string
	What     string // the feature, as a noun
	Why      string // what it is for
	Cure     string // what to do when it is missing
	Optional bool   // missing it is a warning
	Try      func() error
}

// check runs a probe. A refusal for want of privilege says nothing about the machine: to a process that is not root it
// is a skip.
func (p Probe) check(root bool) Check {
	c := Check{ID: p.ID, Status: Pass, What: p.What + ": works (tried)", Why: p.Why}
	err := p.Try()
	switch {
	case err == nil:
		return c
	case !root && errors.Is(err, os.ErrPermission):
		c.Status, c.What, c.Cure = Skip, fmt.Sprintf("%s: not tried without privileges (%v)", p.What, err), "run the doctor as root (sudo)"
		return c
	case p.Optional:
		c.Status = Warn
	default:
		c.Status = Fail
	}
	c.What, c.Cure = fmt.Sprintf("%s: %v", p.What, err), p.Cure
	return c
}
