// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"

	"twopath/internal/workload"
)

// worker is the receive half of one arm for one thread, and what an agent needs of it besides the loop.
type worker interface {
	workload.Receiver
	// Queued tells what is left in the worker's queue, unread. Call it once, when the loop has ended.
	Queued() (uint64, error)
	// Wake ends a wait in Receive; it may be called from any goroutine.
	Wake() error
	Close() error
}

// set is an opened arm: its workers and what they share.
type set struct {
	workers   []worker
	frames    bool           // workers lend Ethernet frames, not UDP payloads
	spins     bool           // Receive returns at once when nothing is there
	batch     int            // packets a turn
	effective map[string]any // for the record
	notes     []string
	// counters reads the engine's witnesses; it is called while the loops run too.
	counters func() (map[string]uint64, error)
	// own reads what belongs to the reading goroutines (system calls, wakeups): only when the loops have ended.
	own func() map[string]uint64
	// idle (optional) reads what belongs to the reading goroutines and is needed before they start and after they have ended.
	idle func() (map[string]uint64, error)
	// assemblers put the workers' datagrams together, one for each; nil where the kernel does, or there is nothing to put.
	assemblers []*assembler
	// device is set for an arm whose packets are counted by the device alone (nosocket).
	device bool
	// undo runs last to first after the workers are closed.
	undo []func() error
}

func (s *set) close() error {
	var errs []error
	for _, w := range s.workers {
		errs = append(errs, w.Close())
	}
	s.workers = nil
	for i := len(s.undo) - 1; i >= 0; i-- {
		errs = append(errs, s.undo[i]())
	}
	s.undo = nil
	return errors.Join(errs...)
}
