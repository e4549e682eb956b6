// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// Pass is an XDP program that passes every frame. Attaching it is done for the side effect: on veth, NAPI.
type Pass struct{ obj passObjects }

// NewPass loads the program. frags: accept frames of several buffers.
func NewPass(frags bool) (*Pass, error) {
	spec, err := loadPass()
	if err != nil {
		return nil, fmt.Errorf("pass: %w", err)
	}
	setFrags(spec.Programs[passProgPass], frags)
	p := &Pass{}
	if err := load("pass", spec, &p.obj); err != nil {
		return nil, err
	}
	return p, nil
}

// Program returns the program, for Attach. It belongs to p.
func (p *Pass) Program() *ebpf.Program { return p.obj.Pass }

// Close unloads the program, unless a link still holds it. It may be called twice.
func (p *Pass) Close() error { return p.obj.Close() }
