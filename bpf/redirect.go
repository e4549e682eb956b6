// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
)

// NoSocket says what becomes of the run's frames on a queue without an AF_XDP socket. They are counted as no_socket.
type NoSocket int

const (
	NoSocketDrop NoSocket = iota // the run's frames never reach the kernel's stack
	NoSocketPass                 // the kernel's stack gets them
)

// RedirectOptions shapes a redirect program.
type RedirectOptions struct {
	Match    FlowMatch
	Queues   int      // slots for sockets, 1..MaxQueues; 0 means MaxQueues
	Frags    bool     // accept frames of several buffers (needed natively above about 3,500 bytes of MTU)
	NoSocket NoSocket // default NoSocketDrop
	// Fragments hands IP fragments between the Match's addresses to the socket as well. All but the first carry no port, so
	// the reader gets those of other flows between the two addresses too; they are counted as redirected.
	Fragments bool
}

// Redirect is an XDP program that hands the run's frames to the AF_XDP socket of their queue and passes all others to the
// kernel.
type Redirect struct {
	obj    redirectObjects
	queues int
}

// NewRedirect loads the program; attaching it is the caller's.
func NewRedirect(o RedirectOptions) (*Redirect, error) {
	match, err := o.Match.flowMatch()
	if err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	if o.Queues == 0 {
		o.Queues = MaxQueues
	}
	if o.Queues < 1 || o.Queues > MaxQueues {
		return nil, fmt.Errorf("redirect: Queues is %d, want 1..%d", o.Queues, MaxQueues)
	}
	verdict := uint32(xdpDrop)
	switch o.NoSocket {
	case NoSocketDrop:
	case NoSocketPass:
		verdict = xdpPass
	default:
		return nil, fmt.Errorf("redirect: unknown NoSocket %d", o.NoSocket)
	}
	spec, err := loadRedirect()
	if err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	if err := setVariables(spec, map[string]any{redirectVarMatch: match, redirectVarNoSocket: verdict, redirectVarFragments: uint32(flag(o.Fragments))}); err != nil {
		return nil, fmt.Errorf("redirect: %w", err)
	}
	spec.Maps[redirectMapSockets].MaxEntries = uint32(o.Queues)
	setFrags(spec.Programs[redirectProgRedirect], o.Frags)
	r := &Redirect{queues: o.Queues}
	if err := load("redirect", spec, &r.obj); err != nil {
		return nil, err
	}
	return r, nil
}

// Program returns the program, for Attach. It belongs to r.
func (r *Redirect) Program() *ebpf.Program { return r.obj.Redirect }

// SetSocket makes fd, a bound AF_XDP socket, the one that gets the run's frames of a queue. The kernel forgets it when
// the socket is closed.
func (r *Redirect) SetSocket(queue, fd int) error {
	if queue < 0 || queue >= r.queues {
		return fmt.Errorf("set socket of queue %d: the program serves queues 0..%d", queue, r.queues-1)
	}
	if err := r.obj.Sockets.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("set socket of queue %d: %w", queue, err)
	}
	return nil
}

// ClearSocket empties the slot of a queue; an empty slot is no error.
func (r *Redirect) ClearSocket(queue int) error {
	err := r.obj.Sockets.Delete(uint32(queue))
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("clear socket of queue %d: %w", queue, err)
	}
	return nil
}

// Counters returns the frames seen by why the program was done with them (redirected, no_socket, arp, foreign_port, ...),
// each frame in exactly one, and the run's frames by the queue they arrived on, read or not.
func (r *Redirect) Counters() (reasons map[string]uint64, perQueue []uint64, err error) {
	reasons, err = readReasons(r.obj.Reasons, redirectReasonREASON_NO_SOCKET)
	if err != nil {
		return nil, nil, err
	}
	perQueue, err = readQueues(r.obj.Queues)
	if err != nil {
		return nil, nil, err
	}
	// The program keeps one counter a frame; while frames arrive, the two readings may be some frames apart.
	var ours uint64
	for _, n := range perQueue {
		ours += n
	}
	no := reasons[reasonName(redirectReasonREASON_NO_SOCKET)]
	reasons[reasonName(redirectReasonREASON_REDIRECTED)] = ours - min(no, ours)
	return reasons, perQueue, nil
}

// Close unloads the program, unless a link still holds it. It may be called twice.
func (r *Redirect) Close() error { return r.obj.Close() }

// Verdicts of include/uapi/linux/bpf.h, enum xdp_action.
const (
	xdpAborted = iota
	xdpDrop
	xdpPass
	xdpTX
	xdpRedirect
)
