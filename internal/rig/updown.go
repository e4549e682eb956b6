// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"io/fs"
	"os"
)

// UpOptions shapes a rig to explore.
type UpOptions struct {
	Options
	StateDir string // of the journal; "" means StateDir
}

// Up makes a veth rig in named namespaces (twopath-sut, twopath-peer) that stays until [Down]: for looking around with
// ip netns exec. The rig it returns may be used, and need not be closed; Close then lets go without removing anything.
func Up(o UpOptions) (_ *Rig, err error) {
	if o.StateDir == "" {
		o.StateDir = StateDir
	}
	if err := o.check(); err != nil {
		return nil, err
	}
	unlock, err := lockRecovered(o.StateDir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	j := &journal{Kind: "up", Namespaces: []string{SUTNamespace, PeerNamespace}}
	if err := namesFree(j.Namespaces); err != nil {
		return nil, err
	}
	if j.Owner, err = thisProcess(); err != nil {
		return nil, err
	}
	if err := j.create(o.StateDir, "up"); err != nil {
		return nil, privilege(err)
	}
	r := &Rig{Kind: Veth, undo: []func() error{j.undo}}
	defer func() {
		if err != nil {
			err = privilege(errors.Join(err, r.Close()))
			return
		}
		r.undo = r.undo[1:] // from here on only Down undoes it
	}()
	for i, role := range []string{roleSUT, rolePeer} {
		ns, err := newNamed(j.Namespaces[i])
		if err != nil {
			return nil, err
		}
		s := newSide(role, ns)
		if role == roleSUT {
			r.SUT = s
		} else {
			r.Peer = s
		}
		r.undo = append(r.undo, s.close, s.stop)
	}
	if err := buildVeth(r.SUT, r.Peer, o.Options); err != nil {
		return nil, err
	}
	// Until here a kill left it to Recover; now it is meant to stay.
	j.Persistent = true
	return r, j.write()
}

// Down removes what [Up] made, and reports whether there was anything. dir "" means StateDir.
func Down(dir string) (removed bool, err error) {
	if dir == "" {
		dir = StateDir
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	unlock, err := lock(dir)
	if err != nil {
		return false, privilege(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	js, err := journals(dir)
	errs := []error{err}
	for _, j := range js {
		if j.Persistent {
			removed = true
			errs = append(errs, j.undo())
		}
	}
	return removed, privilege(errors.Join(errs...))
}

// Status describes the rig that [Up] made, or nil. dir "" means StateDir.
func Status(dir string) (*Leftover, error) {
	left, err := Leftovers(dir)
	for _, l := range left {
		if l.Persistent {
			return &l, err
		}
	}
	return nil, err
}
