// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"os"
)

// Refusal is an error that says what can not be done, and what to do about it.
type Refusal struct {
	ID    string // stable name of the cause, such as "default-route"
	What  string // the cause, with names and values
	Cure  string // the next thing to type or do
	Usage bool   // the request is wrong (exit code 2); otherwise this machine is (exit code 3)
	Err   error  // the kernel's own word, or nil
	XDP   uint32 // with ID "xdp-attached": the program's id
}

func (r *Refusal) Error() string {
	s := r.What
	if r.Err != nil {
		s = fmt.Sprintf("%s: %v", s, r.Err)
	}
	if r.Cure != "" {
		s += "; " + r.Cure
	}
	return s
}

// Unwrap returns the kernel's error.
func (r *Refusal) Unwrap() error { return r.Err }

// privilege turns the kernel's refusal for want of privilege into a Refusal, and keeps all other errors.
func privilege(err error) error {
	if !errors.Is(err, os.ErrPermission) {
		return err
	}
	return &Refusal{ID: "privilege", What: "namespaces and devices need CAP_SYS_ADMIN and CAP_NET_ADMIN",
		Cure: "run it as root (sudo); twopath doctor lists what is missing", Err: err}
}
