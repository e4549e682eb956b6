// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// DropOptions shapes a drop program.
type DropOptions struct {
	Match FlowMatch
	Frags bool // accept frames of several buffers
}

// Drop is an XDP program that drops the run's frames as early as the driver allows and passes all others: what it
// receives is the most any receiver on the same host could.
type Drop struct{ obj dropObjects }

// NewDrop loads the program; attaching it is the caller's.
func NewDrop(o DropOptions) (*Drop, error) {
	match, err := o.Match.flowMatch()
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	spec, err := loadDrop()
	if err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	if err := setVariables(spec, map[string]any{dropVarMatch: dropFlowMatch(match)}); err != nil {
		return nil, fmt.Errorf("drop: %w", err)
	}
	setFrags(spec.Programs[dropProgDrop], o.Frags)
	d := &Drop{}
	if err := load("drop", spec, &d.obj); err != nil {
		return nil, err
	}
	return d, nil
}

// Program returns the program, for Attach. It belongs to d.
func (d *Drop) Program() *ebpf.Program { return d.obj.Drop }

// Counters is as Redirect.Counters; the run's frames are under dropped.
func (d *Drop) Counters() (reasons map[string]uint64, perQueue []uint64, err error) {
	reasons, err = readReasons(d.obj.Reasons, redirectReasonREASON_DROPPED)
	if err != nil {
		return nil, nil, err
	}
	perQueue, err = readQueues(d.obj.Queues)
	return reasons, perQueue, err
}

// Close unloads the program, unless a link still holds it. It may be called twice.
func (d *Drop) Close() error { return d.obj.Close() }
