// SPDX-License-Identifier: Apache-2.0

package bpf

import "fmt"

// MarkedOptions shapes a redirect program for replayed frames.
type MarkedOptions struct {
	Prefix [3]byte // the first bytes of the source MAC address of all frames of the run
	Queues int     // slots for sockets, 1..MaxQueues; 0 means MaxQueues
}

// NewMarked loads a program that hands every frame with the mark to the AF_XDP socket of its queue, whatever the frame
// carries, and passes all others, which are counted as foreign_run. Attaching it is the caller's.
func NewMarked(o MarkedOptions) (*Redirect, error) {
	if o.Queues == 0 {
		o.Queues = MaxQueues
	}
	if o.Queues < 1 || o.Queues > MaxQueues {
		return nil, fmt.Errorf("redirect marked frames: Queues is %d, want 1..%d", o.Queues, MaxQueues)
	}
	spec, err := loadMarked()
	if err != nil {
		return nil, fmt.Errorf("redirect marked frames: %w", err)
	}
	mark := uint32(o.Prefix[0]) | uint32(o.Prefix[1])<<8 | uint32(o.Prefix[2])<<16 // little endian, as all objects here
	if err := setVariables(spec, map[string]any{markedVarMark: mark}); err != nil {
		return nil, fmt.Errorf("redirect marked frames: %w", err)
	}
	spec.Maps[markedMapSockets].MaxEntries = uint32(o.Queues)
	var obj markedObjects
	if err := load("redirect of marked frames", spec, &obj); err != nil {
		return nil, err
	}
	r := &Redirect{queues: o.Queues}
	r.obj.Redirect, r.obj.Sockets, r.obj.Reasons, r.obj.Queues = obj.Redirect, obj.Sockets, obj.Reasons, obj.Queues
	return r, nil
}
