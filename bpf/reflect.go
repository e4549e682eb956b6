// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// ReflectOptions shapes a reflect program.
type ReflectOptions struct {
	Match FlowMatch // of the requests
}

// Reflect is an XDP program that sends the run's requests back from the driver (XDP_TX) and passes all other frames. What an
// echo takes with it is what the rest of the way takes. The device at the other end of a veth must have NAPI.
type Reflect struct{ obj reflectObjects }

// NewReflect loads the program; attaching it is the caller's.
func NewReflect(o ReflectOptions) (*Reflect, error) {
	match, err := o.Match.flowMatch()
	if err != nil {
		return nil, fmt.Errorf("reflect: %w", err)
	}
	spec, err := loadReflect()
	if err != nil {
		return nil, fmt.Errorf("reflect: %w", err)
	}
	if err := setVariables(spec, map[string]any{reflectVarMatch: reflectFlowMatch(match)}); err != nil {
		return nil, fmt.Errorf("reflect: %w", err)
	}
	r := &Reflect{}
	if err := load("reflect", spec, &r.obj); err != nil {
		return nil, err
	}
	return r, nil
}

// Program returns the program, for Attach. It belongs to r.
func (r *Reflect) Program() *ebpf.Program { return r.obj.Reflect }

// Counters is as Redirect.Counters; the requests sent back are under counted.
func (r *Reflect) Counters() (reasons map[string]uint64, perQueue []uint64, err error) {
	reasons, err = readReasons(r.obj.Reasons, redirectReasonREASON_COUNTED)
	if err != nil {
		return nil, nil, err
	}
	perQueue, err = readQueues(r.obj.Queues)
	return reasons, perQueue, err
}

// Close unloads the program, unless a link still holds it. It may be called twice.
func (r *Reflect) Close() error { return r.obj.Close() }
