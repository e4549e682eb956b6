// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// buildVeth makes the cable between two namespaces and configures both ends.
func buildVeth(sut, peer *Side, o Options) error {
	for _, s := range []*Side{sut, peer} {
		if err := s.Do(quietNamespace); err != nil {
			return fmt.Errorf("set up the %s namespace: %w", s.Role, err)
		}
	}
	err := sut.Do(func() error {
		la := netlink.NewLinkAttrs()
		la.Name, la.MTU, la.HardwareAddr = sut.Name, o.MTU, sut.MAC
		la.NumRxQueues, la.NumTxQueues = o.Queues, o.Queues
		v := netlink.NewVeth(la)
		v.PeerName, v.PeerHardwareAddr, v.PeerMTU = peer.Name, peer.MAC, uint32(o.MTU)
		v.PeerNumRxQueues, v.PeerNumTxQueues = uint32(o.Queues), uint32(o.Queues)
		v.PeerNamespace = netlink.NsFd(int(peer.ns.Fd()))
		err := netlink.LinkAdd(v)
		if errors.Is(err, unix.EOPNOTSUPP) {
			return &Refusal{ID: "no-veth", What: "this kernel makes no veth device",
				Cure: "load the module (modprobe veth) or use a kernel with CONFIG_VETH", Err: err}
		}
		if err != nil {
			return fmt.Errorf("add veth %s: %w", sut.Name, err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	// Both ends come up before either has an address: what the carrier sets off has then passed.
	for _, s := range []*Side{sut, peer} {
		gro := s == sut || !o.PeerNoGRO
		if err := s.Do(func() error { return s.bringUp(gro) }); err != nil {
			return fmt.Errorf("set up %s: %w", s.Name, err)
		}
	}
	for _, s := range []*Side{sut, peer} {
		other := peer
		if s == peer {
			other = sut
		}
		if err := s.Do(func() error { return s.address(other) }); err != nil {
			return fmt.Errorf("set up %s: %w", s.Name, err)
		}
	}
	return waitSilent(sut, peer)
}

// bringUp sets the side's device up. It runs inside the side's namespace, as address does.
func (s *Side) bringUp(gro bool) error {
	l, err := netlink.LinkByName(s.Name)
	if err != nil {
		return fmt.Errorf("find device: %w", err)
	}
	s.Index = l.Attrs().Index
	if err := quietDevice(l); err != nil {
		return err
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set lo up: %w", err)
	}
	if gro {
		if err := setGRO(s.Name, true); err != nil {
			return err
		}
	}
	if err := netlink.LinkSetUp(l); err != nil {
		return fmt.Errorf("set up: %w", err)
	}
	return nil
}

// address gives the device its addresses and the other side as a permanent neighbour.
func (s *Side) address(other *Side) error {
	l, err := netlink.LinkByIndex(s.Index)
	if err != nil {
		return fmt.Errorf("find device: %w", err)
	}
	if err := settleCarrier(s.Name); err != nil {
		return err
	}
	if err := s.addAddresses(l); err != nil {
		return err
	}
	return s.addNeighbours(l, other)
}

// settleCarrier has the kernel handle a carrier change now instead of up to a second later: asking ethtool for the link
// does (net/core/link_watch.c, linkwatch_sync_dev, Linux 6.7).
func settleCarrier(name string) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	up, err := e.LinkState(name)
	if err != nil {
		return fmt.Errorf("read link of %s: %w", name, err)
	}
	if up == 0 {
		return fmt.Errorf("%s has no carrier", name)
	}
	return nil
}

func (s *Side) addAddresses(l netlink.Link) error {
	for _, p := range s.addresses() {
		a := &netlink.Addr{IPNet: ipNet(p)}
		if p.Addr().Is6() {
			a.Flags = unix.IFA_F_NODAD
		}
		if err := netlink.AddrReplace(l, a); err != nil {
			return fmt.Errorf("add address %s: %w", p, err)
		}
	}
	if !hasIPv6() {
		return nil
	}
	return s.waitLocal()
}

// waitLocal returns when frames to the IPv6 address are taken as ours. Adding an address returns before: a worker of the
// kernel puts it into the local table (net/ipv6/addrconf.c, addrconf_dad_completed), and until then frames to it are
// dropped as Ip6InAddrErrors.
func (s *Side) waitLocal() error {
	for deadline := time.Now().Add(time.Second); ; time.Sleep(time.Millisecond) {
		routes, err := netlink.RouteGet(s.IPv6.Addr().AsSlice())
		if err == nil && len(routes) == 1 && routes[0].Type == unix.RTN_LOCAL {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.Join(fmt.Errorf("address %s is not local a second after it was added", s.IPv6), err)
		}
	}
}

// addNeighbours makes the other side known for good, so no ARP or neighbour solicitation is among the test's frames and
// no entry expires during a trial.
func (s *Side) addNeighbours(l netlink.Link, other *Side) error {
	for _, p := range other.addresses() {
		n := &netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT,
			IP: p.Addr().AsSlice(), HardwareAddr: other.MAC}
		if err := netlink.NeighSet(n); err != nil {
			return fmt.Errorf("add neighbour %s: %w", p.Addr(), err)
		}
	}
	return nil
}

// deleteLink removes the side's device; one that is gone already is no error.
func (s *Side) deleteLink() error {
	return s.Do(func() error {
		l, err := netlink.LinkByName(s.Name)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if err == nil {
			err = netlink.LinkDel(l)
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", s.Name, err)
		}
		return nil
	})
}

// SetGRO switches generic receive offload. On a veth end, on means that it receives through NAPI even without an XDP
// program (drivers/net/veth.c, veth_set_features), and switching it ends or makes the NAPI threads.
func (s *Side) SetGRO(on bool) error {
	return s.Do(func() error { return setGRO(s.Name, on) })
}

// SetFeatures switches offloads by their kernel names (ethtool -k shows others: "rx-gro" is its
// generic-receive-offload).
func (s *Side) SetFeatures(features map[string]bool) error {
	return s.Do(func() error { return setFeatures(s.Name, features) })
}

func setGRO(name string, on bool) error {
	return setFeatures(name, map[string]bool{"rx-gro": on})
}

func setFeatures(name string, features map[string]bool) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open ethtool: %w", err)
	}
	defer e.Close()
	if err := e.Change(name, features); err != nil {
		return fmt.Errorf("set features %v of %s: %w", features, name, err)
	}
	return nil
}

func ipNet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
