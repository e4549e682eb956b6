// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
)

// SteerOptions says which TCP segments are a test's.
type SteerOptions struct {
	Addresses   []netip.Addr // of this side, of one IP version
	LocalPort   uint16       // first port of this side
	LocalPorts  int          // how many; 0 is 1
	RemotePort  uint16       // first port of the other side
	RemotePorts int          // how many; 0 is 1
	VLAN        uint16       // 802.1Q tag the frames have; 0 is none
	Queues      int          // slots for sockets, 1..MaxQueues; 0 means MaxQueues
}

// Steer is an XDP program that hands the TCP segments of a test to the AF_XDP socket of their queue and passes all other
// traffic. The test's segments on a queue without a socket are dropped and counted: the kernel would answer them with RST.
type Steer struct {
	obj    steerObjects
	queues int
}

// NewSteer loads the program; attaching it is the caller's.
func NewSteer(o SteerOptions) (*Steer, error) {
	if len(o.Addresses) == 0 {
		return nil, fmt.Errorf("steer: no address")
	}
	family := uint8(4)
	if o.Addresses[0].Is6() && !o.Addresses[0].Is4In6() {
		family = 6
	}
	if o.Queues == 0 {
		o.Queues = MaxQueues
	}
	if o.Queues < 1 || o.Queues > MaxQueues {
		return nil, fmt.Errorf("steer: Queues is %d, want 1..%d", o.Queues, MaxQueues)
	}
	spec, err := loadSteer()
	if err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	m := steerSteerMatch{LocalPort: o.LocalPort, RemotePort: o.RemotePort, LocalPorts: uint32(max(o.LocalPorts, 1)),
		RemotePorts: uint32(max(o.RemotePorts, 1)), Vlan: o.VLAN, Family: family}
	if err := setVariables(spec, map[string]any{steerVarSteerMatch: m}); err != nil {
		return nil, fmt.Errorf("steer: %w", err)
	}
	spec.Maps[steerMapSteerSockets].MaxEntries = uint32(o.Queues)
	s := &Steer{queues: o.Queues}
	if err := load("steer", spec, &s.obj); err != nil {
		return nil, err
	}
	for _, a := range o.Addresses {
		if a.Unmap().Is4() != (family == 4) {
			return nil, fmt.Errorf("steer: address %s is not IPv%d (%w)", a, family, s.obj.Close())
		}
		if err := s.obj.SteerAddresses.Put(steerSteerAddress{Word: addrWords(a)}, uint8(1)); err != nil {
			return nil, fmt.Errorf("steer: add address %s: %w (%w)", a, err, s.obj.Close())
		}
	}
	return s, nil
}

// Program returns the program, for Attach. It belongs to s.
func (s *Steer) Program() *ebpf.Program { return s.obj.Steer }

// SetSocket makes fd, a bound AF_XDP socket, the one that gets the segments of a queue.
func (s *Steer) SetSocket(queue, fd int) error {
	if queue < 0 || queue >= s.queues {
		return fmt.Errorf("set socket of queue %d: the program serves queues 0..%d", queue, s.queues-1)
	}
	if err := s.obj.SteerSockets.Put(uint32(queue), uint32(fd)); err != nil {
		return fmt.Errorf("set socket of queue %d: %w", queue, err)
	}
	return nil
}

// Counters returns the frames seen by what was done with them: redirected, no_socket, passed.
func (s *Steer) Counters() (map[string]uint64, error) {
	out := map[string]uint64{}
	for r, name := range map[steerSteerReason]string{steerSteerReasonSTEER_REDIRECTED: "redirected", steerSteerReasonSTEER_NO_SOCKET: "no_socket",
		steerSteerReasonSTEER_PASSED: "passed"} {
		n, err := sumPerCPU(s.obj.SteerReasons, uint32(r))
		if err != nil {
			return nil, fmt.Errorf("read counter %s: %w", name, err)
		}
		out[name] = n
	}
	return out, nil
}

// Close unloads the program, unless a link still holds it. It may be called twice.
func (s *Steer) Close() error { return s.obj.Close() }
