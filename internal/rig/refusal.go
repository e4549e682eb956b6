// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Refusal is an error that says what can not be done, and what to do about it.
type Refusal struct {
	ID    string // stable name of the cause, such as "default-route"
	What  string // the cause, with names and values
	Cure  string // the next thing to type or do
	Usage bool   // the request is wrong (exit code 2); otherwise this machine is (exit code 3)
	Err   error  // the kernel's own word, or nil
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

// privilege turns the kernel's errors for want of privilege or of a feature into a Refusal, and keeps all others.
func privilege(err error) error {
	switch {
	case errors.Is(err, os.ErrPermission):
		return &Refusal{ID: "privilege", What: "namespaces and devices need CAP_SYS_ADMIN and CAP_NET_ADMIN",
			Cure: "run it as root (sudo); twopath doctor lists what is missing", Err: err}
	case errors.Is(err, unix.EOPNOTSUPP):
		return &Refusal{ID: "no-veth", What: "this kernel makes no veth device",
			Cure: "load the module (modprobe veth) or use a kernel with CONFIG_VETH", Err: err}
	}
	return err
}
