// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// undo does what a journal says: devices go home and get their state back, our namespaces go, then the journal.
// What has been undone already is left alone, so it can be repeated. On error the journal stays.
func (j *journal) undo() error {
	var errs []error
	for _, d := range slices.Backward(j.Devices) {
		if err := d.bringHome(); err != nil {
			errs = append(errs, fmt.Errorf("restore %s: %w", d.Name, err))
		}
	}
	if len(errs) > 0 {
		// A namespace with a device in it must stay: a virtual device would be destroyed with it.
		return errors.Join(append(errs, fmt.Errorf("put that right and run twopath doctor, or give up on it: rm %s", j.path))...)
	}
	for _, n := range j.Namespaces {
		errs = append(errs, emptyNamespace(n), removeNamed(n))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return j.remove()
}

// bringHome moves a device back to the namespace it came from and restores its state there. A device that was unplugged or
// deleted meanwhile took its state along, and there is nothing to restore.
func (d device) bringHome() error {
	home, err := findNamespace(d.Home)
	if err != nil {
		return fmt.Errorf("namespace it came from: %w", err)
	}
	defer home.Close()
	if d.Namespace != "" {
		if err := d.moveTo(home); err != nil {
			return err
		}
	}
	err = onThreadIn(home, d.apply)
	if errors.As(err, new(netlink.LinkNotFoundError)) && d.gone(home) {
		return nil
	}
	return err
}

// gone says that the device is neither at home nor where we put it, under whatever name. When that can not be told, as
// when its namespace has no name any more but may live on, it is not gone.
func (d device) gone(home *os.File) bool {
	places := []*os.File{home}
	if d.Namespace != "" {
		away, err := openNamed(d.Namespace)
		if err != nil {
			return false
		}
		defer away.Close()
		places = append(places, away)
	}
	for _, ns := range places {
		found := false
		err := onThreadIn(ns, func() error {
			links, err := netlink.LinkList()
			found = slices.ContainsFunc(links, func(l netlink.Link) bool { return l.Attrs().HardwareAddr.String() == d.MAC })
			return err
		})
		if err != nil || found {
			return false
		}
	}
	return true
}

// moveTo moves the device out of our namespace. One that is not there has been moved already, or never was.
func (d device) moveTo(home *os.File) error {
	away, err := openNamed(d.Namespace)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer away.Close()
	return onThreadIn(away, func() error {
		l, err := netlink.LinkByName(d.Name)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("find it in namespace %s: %w", d.Namespace, err)
		}
		if err := netlink.LinkSetNsFd(l, int(home.Fd())); err != nil {
			return fmt.Errorf("move it back from namespace %s: %w", d.Namespace, err)
		}
		return nil
	})
}

// apply makes the device what it was, inside its own namespace.
func (d device) apply() error {
	l, err := netlink.LinkByName(d.Name)
	if err != nil {
		return fmt.Errorf("find it: %w", err)
	}
	if mac := l.Attrs().HardwareAddr.String(); mac != d.MAC {
		return fmt.Errorf("the device of that name has address %s, want %s: it is another one", mac, d.MAC)
	}
	errs := []error{d.applySettings(l), d.removeOurs(l)}
	if d.Up {
		errs = append(errs, wrap("set up", netlink.LinkSetUp(l)))
	} else {
		errs = append(errs, wrap("set down", netlink.LinkSetDown(l)))
	}
	errs = append(errs, d.applyNAPI())
	for _, a := range d.Addresses {
		na, err := a.netlink()
		if err == nil {
			err = wrap("add address "+a.IPNet, netlink.AddrReplace(l, na))
		}
		errs = append(errs, err)
	}
	if d.Up { // the kernel keeps no routes through a device that is down
		errs = append(errs, d.addRoutes(l))
	}
	for _, n := range d.Neighbours {
		mac, err := net.ParseMAC(n.MAC)
		if err == nil {
			err = netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: n.IP, HardwareAddr: mac})
		}
		errs = append(errs, wrap("add neighbour "+n.IP.String(), err))
	}
	return errors.Join(errs...)
}

func (d device) applySettings(l netlink.Link) error {
	var errs []error
	if l.Attrs().MTU != d.MTU {
		errs = append(errs, wrap("set MTU", netlink.LinkSetMTU(l, d.MTU)))
	}
	promisc := l.Attrs().RawFlags&unix.IFF_PROMISC != 0
	if promisc && !d.Promisc {
		errs = append(errs, wrap("set promiscuous off", netlink.SetPromiscOff(l)))
	}
	if !promisc && d.Promisc {
		errs = append(errs, wrap("set promiscuous on", netlink.SetPromiscOn(l)))
	}
	for key, want := range d.Sysctls {
		path := filepath.Join("/proc/sys/net", key)
		now, err := os.ReadFile(path)
		if err == nil && strings.TrimSpace(string(now)) != want {
			errs = append(errs, wrap("set sysctl", os.WriteFile(path, []byte(want), 0)))
		}
	}
	return errors.Join(errs...)
}

// applyNAPI gives receive processing back its place. Threads come first, and when the device is up: the kernel takes the
// setting only while the device has NAPI, which on veth is what GRO makes.
func (d device) applyNAPI() error {
	var errs []error
	if now, err := readNetSysfs(d.Name, "threaded"); err == nil && d.Threaded != "" && now != d.Threaded {
		errs = append(errs, writeNetSysfs(d.Name, "threaded", d.Threaded))
	}
	if now := readGRO(d.Name); now != nil && d.GRO != nil && *now != *d.GRO {
		errs = append(errs, setGRO(d.Name, *d.GRO))
	}
	return errors.Join(append(errs, restoreRPS(d.Name, d.RPS))...)
}

// removeOurs takes away the test addresses and neighbours that were not there before (a device used in place).
func (d device) removeOurs(l netlink.Link) error {
	var errs []error
	for _, role := range []string{roleSUT, rolePeer} {
		s := newSide(role, nil)
		for _, ip := range s.addresses() {
			if !d.has(ip.String()) {
				err := netlink.AddrDel(l, &netlink.Addr{IPNet: ipNet(ip)})
				if err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
					errs = append(errs, fmt.Errorf("remove address %s: %w", ip, err))
				}
			}
			kept := slices.ContainsFunc(d.Neighbours, func(n neighbour) bool { return n.IP.Equal(ip.Addr().AsSlice()) })
			if !kept {
				err := netlink.NeighDel(&netlink.Neigh{LinkIndex: l.Attrs().Index, IP: ip.Addr().AsSlice()})
				if err != nil && !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENETDOWN) {
					errs = append(errs, fmt.Errorf("remove neighbour %s: %w", ip.Addr(), err))
				}
			}
		}
	}
	return errors.Join(errs...)
}

func (d device) addRoutes(l netlink.Link) error {
	var errs []error
	for _, r := range d.Routes {
		dst, err := netlink.ParseIPNet(r.Dst)
		if err == nil {
			err = netlink.RouteReplace(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: dst, Gw: r.Gw, Src: r.Src, Table: r.Table,
				Priority: r.Priority, Scope: netlink.Scope(r.Scope), Protocol: netlink.RouteProtocol(r.Protocol), Type: r.Type,
				Flags: r.Flags, MTU: r.MTU})
		}
		errs = append(errs, wrap("add route "+r.Dst, err))
	}
	return errors.Join(errs...)
}

// emptyNamespace deletes the veth rig up made, so its end does not depend on who still looks at the namespace.
// A device that is not ours keeps the namespace alive.
func emptyNamespace(name string) error {
	ns, err := openNamed(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer ns.Close()
	return onThreadIn(ns, func() error {
		links, err := netlink.LinkList()
		if err != nil {
			return fmt.Errorf("list devices of namespace %s: %w", name, err)
		}
		for _, l := range links {
			a := l.Attrs()
			switch {
			case l.Type() == "veth" && (a.Name == roleSUT+"0" || a.Name == rolePeer+"0"):
				if err := netlink.LinkDel(l); err != nil {
					return fmt.Errorf("delete %s: %w", a.Name, err)
				}
			case l.Type() == "device" && a.Flags&net.FlagLoopback == 0:
				return fmt.Errorf("namespace %s holds %s, which no journal knows: move it out (ip -n %s link set %s netns 1)",
					name, a.Name, name, a.Name)
			}
		}
		return nil
	})
}

func wrap(what string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
