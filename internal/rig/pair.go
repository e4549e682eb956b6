// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"time"

	"github.com/vishvananda/netlink"
)

// PairOptions names two ports of this host that are cabled to each other.
type PairOptions struct {
	IF       string        // the SUT's port, by name or alternative name
	PeerIF   string        // the peer's port
	MTU      int           // bytes; 0 means as it is
	Protect  []netip.Addr  // addresses the host must stay in touch with, such as the ssh client's
	StateDir string        // of the journal; "" means StateDir
	Carrier  time.Duration // how long to wait for both links after they come up; 0 means 10 s
}

// NewPair moves two ports of this host into namespaces of their own (twopath-sut, twopath-peer), with the rig's test
// addresses on them. What they were is in a journal before anything is changed; Close, or [Recover] after a kill, gives
// them back. Devices that must not be taken are refused, with a *Refusal.
func NewPair(o PairOptions) (_ *Rig, err error) {
	if o.StateDir == "" {
		o.StateDir = StateDir
	}
	if o.Carrier == 0 {
		o.Carrier = 10 * time.Second
	}
	unlock, err := lockRecovered(o.StateDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	j := &journal{Kind: string(Pair), Namespaces: []string{SUTNamespace, PeerNamespace}}
	if err := o.inspect(j); err != nil {
		return nil, err
	}
	if err := namesFree(j.Namespaces); err != nil {
		return nil, err
	}
	if j.Owner, err = thisProcess(); err != nil {
		return nil, err
	}
	if err := j.create(o.StateDir, j.Devices[0].Name); err != nil {
		return nil, privilege(err)
	}
	r := &Rig{Kind: Pair, undo: []func() error{j.undo}}
	defer func() {
		if err != nil {
			err = privilege(errors.Join(err, r.Close()))
			return
		}
		// Close must not race with another process that sets up or recovers.
		r.undo[0] = func() error { return undoLocked(o.StateDir, j) }
	}()
	for i, role := range []string{roleSUT, rolePeer} {
		s, err := moveIn(role, j.Devices[i])
		if err != nil {
			return nil, err
		}
		if role == roleSUT {
			r.SUT = s
		} else {
			r.Peer = s
		}
		r.undo = append(r.undo, s.close, s.stop)
	}
	return r, r.configurePair(o)
}

// inspect checks both ports and notes what they are.
func (o PairOptions) inspect(j *journal) error {
	if o.IF == "" || o.PeerIF == "" {
		return &Refusal{ID: "no-device", Usage: true, What: "two ports are needed", Cure: "use --nic IF --peer :IF2"}
	}
	return onThread(func() error {
		for i, name := range []string{o.IF, o.PeerIF} {
			l, err := usable(name, o.Protect, true)
			if err != nil {
				return err
			}
			d, err := snapshot(l)
			if err != nil {
				return err
			}
			d.Namespace = j.Namespaces[i]
			j.Devices = append(j.Devices, d)
		}
		if j.Devices[0].Index == j.Devices[1].Index {
			return &Refusal{ID: "same-device", Usage: true, What: fmt.Sprintf("%s and %s are the same device", o.IF, o.PeerIF),
				Cure: "name the two ends of the cable: --nic IF --peer :IF2"}
		}
		return nil
	})
}

// namesFree refuses when the namespaces exist, whoever made them.
func namesFree(names []string) error {
	for _, n := range names {
		ns, err := openNamed(n)
		if errors.Is(err, fs.ErrNotExist) {
			if err := removeNamed(n); err != nil { // a file without a namespace
				return privilege(err)
			}
			continue
		}
		if err == nil {
			ns.Close()
		}
		return &Refusal{ID: "in-use", What: fmt.Sprintf("namespace %s exists", n),
			Cure: "another run or twopath rig up uses it: wait for that, or twopath rig down"}
	}
	return nil
}

// moveIn makes a namespace and moves a device into it.
func moveIn(role string, d device) (*Side, error) {
	ns, err := newNamed(d.Namespace)
	if err != nil {
		return nil, err
	}
	s := newSide(role, ns)
	s.Name = d.Name
	err = s.Do(quietNamespace)
	if err == nil {
		err = onThread(func() error {
			l, err := netlink.LinkByName(d.Name)
			if err != nil {
				return err
			}
			return netlink.LinkSetNsFd(l, int(ns.Fd()))
		})
	}
	if err == nil {
		err = s.Do(func() error {
			l, err := netlink.LinkByName(d.Name)
			if err != nil {
				return err
			}
			s.Index, s.MAC = l.Attrs().Index, l.Attrs().HardwareAddr
			return nil
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("move %s into namespace %s: %w", d.Name, d.Namespace, err), s.close())
	}
	return s, nil
}

// configurePair brings both ports up, waits for the link, and gives them addresses.
func (r *Rig) configurePair(o PairOptions) error {
	for _, s := range r.Sides() {
		err := s.Do(func() error {
			if o.MTU != 0 {
				l, err := netlink.LinkByIndex(s.Index)
				if err == nil {
					err = netlink.LinkSetMTU(l, o.MTU)
				}
				if err != nil {
					return fmt.Errorf("set MTU %d: %w", o.MTU, err)
				}
			}
			return s.bringUp(true)
		})
		if err != nil {
			return fmt.Errorf("set up %s: %w", s.Name, err)
		}
	}
	deadline := time.Now().Add(o.Carrier)
	for _, s := range r.Sides() {
		other := r.Peer
		if s == r.Peer {
			other = r.SUT
		}
		err := s.Do(func() error {
			if err := s.waitCarrier(deadline); err != nil {
				return err
			}
			return s.address(other)
		})
		if err != nil {
			return fmt.Errorf("set up %s: %w", s.Name, err)
		}
	}
	return nil
}

// waitCarrier waits for the link: a NIC negotiates for seconds after it comes up.
func (s *Side) waitCarrier(deadline time.Time) error {
	for {
		err := settleCarrier(s.Name)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return &Refusal{ID: "no-carrier", What: s.Name + " has no link", Cure: "plug the cable in at both ends, or look at the other port (ethtool " + s.Name + ")", Err: err}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func undoLocked(dir string, j *journal) error {
	unlock, err := lock(dir)
	if err != nil {
		return err
	}
	if _, err := os.Stat(j.path); errors.Is(err, fs.ErrNotExist) {
		return unlock() // undone by somebody's Recover
	}
	return errors.Join(j.undo(), unlock())
}
