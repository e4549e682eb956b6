// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// device is the state of a NIC before it was used: all that moving it between namespaces loses (addresses, routes,
// neighbours, per-device sysctls, up) and all that a rig sets.
type device struct {
	Name       string            `json:"name"`
	Index      int               `json:"index"`
	MAC        string            `json:"mac"`
	Home       nsID              `json:"home"`      // namespace it belongs to
	Namespace  string            `json:"namespace"` // name of the one it is moved into; "" when used in place
	MTU        int               `json:"mtu"`
	Up         bool              `json:"up"`
	Promisc    bool              `json:"promisc"`
	GRO        *bool             `json:"gro"`      // nil when unknown
	Threaded   string            `json:"threaded"` // threaded NAPI, "" when unknown
	RPS        map[string]string `json:"rps"`      // CPU mask by receive queue
	Addresses  []address         `json:"addresses"`
	Routes     []route           `json:"routes"`
	Neighbours []neighbour       `json:"neighbours"`
	Sysctls    map[string]string `json:"sysctls"` // below /proc/sys/net, of this device
}

type address struct {
	IPNet     string `json:"address"`
	Peer      string `json:"peer,omitempty"`
	Broadcast net.IP `json:"broadcast,omitempty"`
	Label     string `json:"label,omitempty"`
	Scope     int    `json:"scope"`
	Flags     int    `json:"flags"`
	Valid     int    `json:"valid_s"` // seconds; 0 means for ever
	Preferred int    `json:"preferred_s"`
}

type route struct {
	Dst      string `json:"dst"`
	Gw       net.IP `json:"gw,omitempty"`
	Src      net.IP `json:"src,omitempty"`
	Table    int    `json:"table"`
	Priority int    `json:"priority"`
	Scope    int    `json:"scope"`
	Protocol int    `json:"protocol"`
	Type     int    `json:"type"`
	Flags    int    `json:"flags"`
	MTU      int    `json:"mtu,omitempty"`
}

type neighbour struct {
	IP  net.IP `json:"ip"`
	MAC string `json:"mac"`
}

// check guards what is made from a journal's text.
func (d device) check() error {
	if d.Name == "" || len(d.Name) >= unix.IFNAMSIZ || strings.ContainsAny(d.Name, "/\x00 ") || d.Name == "." || d.Name == ".." {
		return fmt.Errorf("device name %q", d.Name)
	}
	if d.Namespace != "" && !validNamespace(d.Namespace) {
		return fmt.Errorf("device %s: namespace %q", d.Name, d.Namespace)
	}
	for q := range d.RPS {
		if !validNamespace(q) {
			return fmt.Errorf("device %s: queue %q", d.Name, q)
		}
	}
	for k := range d.Sysctls {
		if !filepath.IsLocal(k) {
			return fmt.Errorf("device %s: sysctl %q", d.Name, k)
		}
	}
	return nil
}

// snapshot reads a device's state in the calling thread's namespace.
func snapshot(l netlink.Link) (device, error) {
	a := l.Attrs()
	d := device{Name: a.Name, Index: a.Index, MAC: a.HardwareAddr.String(), MTU: a.MTU,
		Up: a.Flags&net.FlagUp != 0, Promisc: a.Promisc > 0 && a.RawFlags&unix.IFF_PROMISC != 0, Sysctls: deviceSysctls(a.Name)}
	ns, err := currentNamespace()
	if err != nil {
		return d, err
	}
	defer ns.Close()
	if d.Home, err = identify(ns); err != nil {
		return d, err
	}
	d.GRO, d.RPS = readGRO(a.Name), rpsMasks(a.Name)
	if v, err := readNetSysfs(a.Name, "threaded"); err == nil {
		d.Threaded = v
	}
	addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
	if err != nil {
		return d, fmt.Errorf("list addresses of %s: %w", a.Name, err)
	}
	for _, ad := range addrs {
		d.Addresses = append(d.Addresses, toAddress(ad))
	}
	if d.Routes, err = deviceRoutes(l); err != nil {
		return d, err
	}
	neighs, err := netlink.NeighList(a.Index, netlink.FAMILY_ALL)
	if err != nil {
		return d, fmt.Errorf("list neighbours of %s: %w", a.Name, err)
	}
	for _, n := range neighs {
		if n.State&netlink.NUD_PERMANENT != 0 && !n.IP.IsMulticast() {
			d.Neighbours = append(d.Neighbours, neighbour{n.IP, n.HardwareAddr.String()})
		}
	}
	return d, nil
}

func toAddress(a netlink.Addr) address {
	out := address{IPNet: a.IPNet.String(), Broadcast: a.Broadcast, Label: a.Label, Scope: a.Scope,
		Flags: a.Flags &^ (unix.IFA_F_PERMANENT | unix.IFA_F_TENTATIVE | unix.IFA_F_SECONDARY | unix.IFA_F_DADFAILED)}
	if a.Peer != nil && a.Peer.String() != out.IPNet {
		out.Peer = a.Peer.String()
	}
	// The library reads "for ever" (0xffffffff) as that number.
	if a.ValidLft > 0 && uint32(a.ValidLft) != 0xffffffff {
		out.Valid, out.Preferred = a.ValidLft, a.PreferedLft
	}
	return out
}

func (a address) netlink() (*netlink.Addr, error) {
	ipnet, err := netlink.ParseIPNet(a.IPNet)
	if err != nil {
		return nil, fmt.Errorf("parse address %q: %w", a.IPNet, err)
	}
	out := &netlink.Addr{IPNet: ipnet, Broadcast: a.Broadcast, Label: a.Label, Scope: a.Scope, Flags: a.Flags,
		ValidLft: a.Valid, PreferedLft: a.Preferred}
	switch {
	case ipnet.IP.To4() == nil:
		out.Label, out.Broadcast = "", nil
		out.Flags |= unix.IFA_F_NODAD // it has been tested when it was first added
	case a.Broadcast == nil:
		out.Broadcast = net.IPv4zero // to the library, nil means compute one, and this means none
	default:
		out.Broadcast = a.Broadcast.To4()
	}
	if a.Peer != "" {
		if out.Peer, err = netlink.ParseIPNet(a.Peer); err != nil {
			return nil, fmt.Errorf("parse peer address %q: %w", a.Peer, err)
		}
	}
	return out, nil
}

// deviceRoutes lists the unicast routes through a device that the kernel does not make by itself from its addresses.
func deviceRoutes(l netlink.Link) ([]route, error) {
	var out []route
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{LinkIndex: l.Attrs().Index, Table: unix.RT_TABLE_UNSPEC},
			netlink.RT_FILTER_OIF|netlink.RT_FILTER_TABLE)
		if err != nil {
			return nil, fmt.Errorf("list routes of %s: %w", l.Attrs().Name, err)
		}
		for _, r := range routes {
			if r.Protocol == unix.RTPROT_KERNEL || r.Dst == nil || r.Type != unix.RTN_UNICAST {
				continue
			}
			out = append(out, route{r.Dst.String(), r.Gw, r.Src, r.Table, r.Priority, int(r.Scope), int(r.Protocol), r.Type,
				r.Flags & int(netlink.FLAG_ONLINK), r.MTU})
		}
	}
	return out, nil
}

// deviceSysctls reads every per-device setting; what can not be read (an unset stable_secret) is not kept.
func deviceSysctls(name string) map[string]string {
	out := make(map[string]string)
	for _, family := range []string{"ipv4", "ipv6"} {
		for _, kind := range []string{"conf", "neigh"} {
			dir := filepath.Join(family, kind, name)
			entries, err := os.ReadDir(filepath.Join("/proc/sys/net", dir))
			if err != nil {
				continue
			}
			for _, e := range entries {
				key := filepath.Join(dir, e.Name())
				if b, err := os.ReadFile(filepath.Join("/proc/sys/net", key)); err == nil {
					out[key] = strings.TrimSpace(string(b))
				}
			}
		}
	}
	return out
}

func readGRO(name string) *bool {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return nil
	}
	defer e.Close()
	f, err := e.Features(name)
	if err != nil {
		return nil
	}
	on, ok := f["rx-gro"]
	if !ok {
		return nil
	}
	return &on
}

// has says whether the state lists an address.
func (d device) has(ipnet string) bool {
	return slices.ContainsFunc(d.Addresses, func(a address) bool { return a.IPNet == ipnet })
}
