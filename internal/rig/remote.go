// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
)

// RemoteOptions names the one port of this host whose cable leads to another host.
type RemoteOptions struct {
	IF       string
	Peer     bool         // this host generates; otherwise it is the SUT
	PeerMAC  string       // of the other host's port, once known; "" leaves its neighbour entries out
	Protect  []netip.Addr // addresses the host must stay in touch with, such as the ssh client's
	StateDir string       // of the journal; "" means StateDir
}

// NewRemote uses a port where it is: nothing is moved. The role's test addresses are added to it (they are of blocks
// reserved for benchmarks, RFC 2544 and RFC 5180), GRO is switched on, and Close or [Recover] undoes both. The rig has
// one side; the other host makes the other.
func NewRemote(o RemoteOptions) (_ *Rig, err error) {
	if o.StateDir == "" {
		o.StateDir = StateDir
	}
	if o.IF == "" {
		return nil, &Refusal{ID: "no-device", Usage: true, What: "a port is needed", Cure: "use --nic IF --peer HOST:IF"}
	}
	unlock, err := lockRecovered(o.StateDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	j := &journal{Kind: string(Remote)}
	if j.Owner, err = thisProcess(); err != nil {
		return nil, err
	}
	var ns *os.File
	err = onThread(func() error {
		l, err := usable(o.IF, o.Protect, false)
		if err != nil {
			return err
		}
		d, err := snapshot(l)
		if err != nil {
			return err
		}
		j.Devices = []device{d}
		ns, err = currentNamespace()
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := inUse(o.StateDir, j.Devices[0]); err != nil {
		return nil, errors.Join(err, ns.Close())
	}
	if err := j.create(o.StateDir, j.Devices[0].Name); err != nil {
		return nil, privilege(errors.Join(err, ns.Close()))
	}
	role := roleSUT
	if o.Peer {
		role = rolePeer
	}
	s := newSide(role, ns)
	s.Name, s.Index = j.Devices[0].Name, j.Devices[0].Index
	r := &Rig{Kind: Remote, undo: []func() error{j.undo, s.close, s.stop}}
	if o.Peer {
		r.Peer = s
	} else {
		r.SUT = s
	}
	defer func() {
		if err != nil {
			err = privilege(errors.Join(err, r.Close()))
			return
		}
		r.undo[0] = func() error { return undoLocked(o.StateDir, j) }
	}()
	err = s.Do(func() error {
		l, err := netlink.LinkByIndex(s.Index)
		if err != nil {
			return fmt.Errorf("find device: %w", err)
		}
		s.MAC = l.Attrs().HardwareAddr
		if err := setGRO(s.Name, true); err != nil {
			return err
		}
		return s.addAddresses(l)
	})
	if err != nil {
		return nil, fmt.Errorf("set up %s: %w", s.Name, err)
	}
	if o.PeerMAC != "" {
		if err := s.SetNeighbour(o.PeerMAC); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// SetNeighbour makes the other host's port known for good, on a Remote rig, under the other role's addresses.
func (s *Side) SetNeighbour(mac string) error {
	hw, err := net.ParseMAC(mac)
	if err != nil {
		return fmt.Errorf("parse peer's MAC: %w", err)
	}
	role := rolePeer
	if s.Role == rolePeer {
		role = roleSUT
	}
	other := newSide(role, nil)
	other.MAC = hw
	return s.Do(func() error {
		l, err := netlink.LinkByIndex(s.Index)
		if err != nil {
			return fmt.Errorf("find device: %w", err)
		}
		return s.addNeighbours(l, other)
	})
}

// inUse refuses a device that a live process has a journal for.
func inUse(dir string, d device) error {
	js, err := journals(dir)
	if err != nil {
		return err
	}
	for _, j := range js {
		for _, other := range j.Devices {
			if other.Name == d.Name && other.Home == d.Home {
				return &Refusal{ID: "in-use", What: fmt.Sprintf("%s is used by process %d", d.Name, j.Owner.PID), Cure: "wait for it to end"}
			}
		}
	}
	return nil
}
