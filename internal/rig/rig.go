// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"slices"
)

// Kind says what joins the two sides.
type Kind string

const (
	Veth   Kind = "veth"   // two ends of one veth device in namespaces of their own
	Pair   Kind = "pair"   // two ports of this host, each moved into a namespace
	Remote Kind = "remote" // one port of this host, where it is; the other side is another host's
)

// Rig is a cable with its two sides. New, NewPair and NewRemote make one; whoever measures need not know which.
type Rig struct {
	Kind Kind
	SUT  *Side // nil on the generating host of a Remote rig
	Peer *Side // nil on the receiving host of a Remote rig

	undo []func() error // run last to first by Close
}

// Options shapes a veth rig. The zero value is one queue, an MTU of 1500, GRO on at both ends.
type Options struct {
	Queues    int  // receive and transmit queues of each end; 0 means 1
	MTU       int  // bytes, without Ethernet header and FCS; 0 means 1500, which carries frames up to 1518 B with FCS
	PeerNoGRO bool // leave GRO off at the peer's end: it then has no NAPI, and frames sent to it as XDP frames vanish
}

// maxVethMTU is the largest MTU a veth end with a native XDP program takes without fragments: a page less headroom,
// shared info, Ethernet header and a VLAN tag (drivers/net/veth.c, veth_xdp_set; measured: 3506 attaches, 3507 does not).
const maxVethMTU = 3506

func (o *Options) check() error {
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	if o.Queues < 1 || o.Queues > 64 {
		return &Refusal{ID: "queues", Usage: true, What: fmt.Sprintf("a veth rig with %d queues", o.Queues),
			Cure: "use --queues 1 to 64"}
	}
	if o.MTU < 1280 || o.MTU > 65535 {
		return &Refusal{ID: "mtu", Usage: true, What: fmt.Sprintf("a veth rig with an MTU of %d bytes", o.MTU),
			Cure: fmt.Sprintf("use 1280 (the least IPv6 allows) to 65535; native XDP needs at most %d", maxVethMTU)}
	}
	return nil
}

// New makes a veth rig in two anonymous network namespaces. It needs CAP_SYS_ADMIN and CAP_NET_ADMIN; a *Refusal says
// what is missing. Nothing of it outlives the process and the children started with [Side.Start].
func New(o Options) (_ *Rig, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &Rig{Kind: Veth}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	for _, role := range []string{roleSUT, rolePeer} {
		ns, err := newNamespace()
		if err != nil {
			return nil, privilege(err)
		}
		s := newSide(role, ns)
		if role == roleSUT {
			r.SUT = s
		} else {
			r.Peer = s
		}
		r.undo = append(r.undo, s.close)
	}
	// Deleting the device is synchronous; dropping the namespaces is not.
	r.undo = append(r.undo, r.SUT.deleteLink, r.SUT.stop, r.Peer.stop)
	if err := buildVeth(r.SUT, r.Peer, o); err != nil {
		return nil, privilege(err)
	}
	return r, nil
}

// Sides returns the sides this host has: both, or one on a Remote rig.
func (r *Rig) Sides() []*Side {
	return slices.DeleteFunc([]*Side{r.SUT, r.Peer}, func(s *Side) bool { return s == nil })
}

// Close undoes everything: children started with [Side.Start] are killed, devices go back to where they came from with
// their addresses and state, namespaces and journal go. It may be called again and then does nothing.
func (r *Rig) Close() error {
	if r == nil {
		return nil
	}
	var errs []error
	for _, undo := range slices.Backward(r.undo) {
		errs = append(errs, undo())
	}
	r.undo = nil
	return errors.Join(errs...)
}
