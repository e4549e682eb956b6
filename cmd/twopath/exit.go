// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/rig"
)

// Exit codes of the command line's contract.
const (
	exitDone         = 0
	exitRequirement  = 1   // a --require or a regression limit failed
	exitUsage        = 2   // what was typed is wrong
	exitMachine      = 3   // this machine cannot do it
	exitInconclusive = 4   // measured, but not conclusive or not valid
	exitInterrupted  = 130 // by SIGINT or SIGTERM
)

// failure is an error with the exit code it stands for.
type failure struct {
	code int
	err  error
}

func (f *failure) Error() string { return f.err.Error() }
func (f *failure) Unwrap() error { return f.err }

func fail(code int, format string, args ...any) error {
	return &failure{code, fmt.Errorf(format, args...)}
}

// exitCode tells what an error means to who called the program. What is not known to be the user's doing is the machine's.
func exitCode(err error) int {
	var f *failure
	var usage *compare.UsageError
	var refusal *rig.Refusal
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &f):
		return f.code
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &refusal) && refusal.Usage:
		return exitUsage
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	}
	return exitMachine
}

// cure ends a refusal with what only this package can look up.
func cure(err error) string {
	var refusal *rig.Refusal
	if errors.As(err, &refusal) && refusal.XDP != 0 {
		return bpf.Describe(refusal.XDP).String()
	}
	return ""
}
