// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// usable finds a device by name or alternative name in the calling thread's namespace and refuses those that can not or
// must not be measured with. protect lists addresses the host has to stay in touch with (the ssh client's); moved says
// that it is to go into another namespace, and lose what that loses.
func usable(name string, protect []netip.Addr, moved bool) (netlink.Link, error) {
	l, err := netlink.LinkByName(name)
	if errors.As(err, new(netlink.LinkNotFoundError)) {
		return nil, missing(name)
	}
	if err != nil {
		return nil, fmt.Errorf("find device %s: %w", name, err)
	}
	for _, check := range []func(netlink.Link) error{wrongKind, noWireless, isUp, noForeignXDP, noDefaultRoute} {
		if err := check(l); err != nil {
			return nil, err
		}
	}
	if moved {
		if err := onlyDefaultQdisc(l); err != nil {
			return nil, err
		}
	}
	return l, noManagement(l, protect)
}

// Usable says whether a port of this host could be measured with; the error is a *Refusal that says why not. It changes
// nothing, and needs no privileges to refuse.
func Usable(name string, protect []netip.Addr) error {
	return onThread(func() error {
		_, err := usable(name, protect, false)
		return err
	})
}

// Carries says whether the host would be cut off without a port: the default route or an ssh session goes through it. The
// error is a *Refusal.
func Carries(name string, protect []netip.Addr) error {
	return onThread(func() error {
		l, err := netlink.LinkByName(name)
		if err != nil {
			return fmt.Errorf("find device %s: %w", name, err)
		}
		if err := noDefaultRoute(l); err != nil {
			return err
		}
		return noManagement(l, protect)
	})
}

// missing explains a name that is no device here: it is in another namespace, mistyped, or not there.
func missing(name string) error {
	for _, n := range namedNamespaces() {
		ns, err := openNamed(n)
		if err != nil {
			continue
		}
		err = onThreadIn(ns, func() error { _, err := netlink.LinkByName(name); return err })
		ns.Close()
		if err != nil {
			continue
		}
		r := &Refusal{ID: "other-namespace", What: fmt.Sprintf("device %s is in network namespace %s", name, n),
			Cure: fmt.Sprintf("run it there (ip netns exec %s ...) or move it here (ip -n %s link set %s netns $$)", n, n, name)}
		if n == SUTNamespace || n == PeerNamespace {
			r.Cure = "another run uses it: wait for that, or, if it was killed, twopath doctor gives the device back"
		}
		return r
	}
	links, err := netlink.LinkList()
	if err != nil {
		return fmt.Errorf("list devices: %w", err)
	}
	var names []string
	for _, l := range links {
		if l.Attrs().Flags&net.FlagLoopback == 0 {
			names = append(names, l.Attrs().Name)
		}
	}
	cure := "this host has no device to measure with: leave --nic out for the veth rig"
	if near := nearest(name, names); near != "" {
		cure = fmt.Sprintf("did you mean %s? (devices here: %s)", near, strings.Join(names, ", "))
	} else if len(names) > 0 {
		cure = "devices here: " + strings.Join(names, ", ")
	}
	return &Refusal{ID: "no-device", Usage: true, What: fmt.Sprintf("there is no device %q", name), Cure: cure}
}

// wrongKind refuses devices that are no port to a cable, or not alone on it.
func wrongKind(l netlink.Link) error {
	a := l.Attrs()
	if a.Flags&net.FlagLoopback != 0 {
		return &Refusal{ID: "loopback", Usage: true, What: a.Name + " is the loopback device, which has no native XDP and no other end",
			Cure: "leave --nic out for the veth rig"}
	}
	switch l.Type() {
	case "bridge", "bond", "team", "vlan", "macvlan", "ipvlan", "vrf", "ifb", "dummy", "wireguard", "vxlan":
		return &Refusal{ID: "virtual-device", Usage: true, What: fmt.Sprintf("%s is a %s device, not a port", a.Name, l.Type()),
			Cure: "name the port below it, or leave --nic out for the veth rig"}
	}
	if a.MasterIndex != 0 {
		master := fmt.Sprintf("interface %d", a.MasterIndex)
		if m, err := netlink.LinkByIndex(a.MasterIndex); err == nil {
			master = m.Type() + " " + m.Attrs().Name
		}
		return &Refusal{ID: "enslaved", What: fmt.Sprintf("%s belongs to %s, which takes its frames", a.Name, master),
			Cure: fmt.Sprintf("take it out (ip link set %s nomaster) or use another port", a.Name)}
	}
	return nil
}

func noWireless(l netlink.Link) error {
	f, err := netSysfs(l.Attrs().Name, "phy80211", unix.O_PATH)
	if err != nil {
		return nil // not there, or not to be seen without privileges: those are asked for later
	}
	f.Close()
	return &Refusal{ID: "wireless", Usage: true, What: l.Attrs().Name + " is a wireless device: its frames are not Ethernet on the air, and its loss is the air's",
		Cure: "use a wired port, or leave --nic out for the veth rig"}
}

func isUp(l netlink.Link) error {
	if l.Attrs().Flags&net.FlagUp != 0 {
		return nil
	}
	return &Refusal{ID: "down", What: l.Attrs().Name + " is down", Cure: fmt.Sprintf("bring it up (ip link set %s up)", l.Attrs().Name)}
}

func noForeignXDP(l netlink.Link) error {
	x := l.Attrs().Xdp
	if x == nil || !x.Attached {
		return nil
	}
	// XDP_ATTACHED_* of include/uapi/linux/if_link.h.
	mode := map[uint32]string{1: "native", 2: "generic", 3: "offloaded", 4: "several modes"}[x.AttachMode]
	return &Refusal{ID: "xdp-attached", XDP: x.ProgId, What: fmt.Sprintf("%s has an XDP program already (id %d, %s)", l.Attrs().Name, x.ProgId, mode),
		Cure: fmt.Sprintf("see whose it is (bpftool prog show id %d); if nobody needs it: ip link set %s xdp off", x.ProgId, l.Attrs().Name)}
}

// onlyDefaultQdisc refuses to move a port with traffic control set by hand, which moving throws away. (Where it stays it
// acts on the kernel engine only, which is worth a warning: the doctor's nic.qdisc.)
func onlyDefaultQdisc(l netlink.Link) error {
	qdiscs, err := netlink.QdiscList(l)
	if err != nil {
		return fmt.Errorf("list qdiscs of %s: %w", l.Attrs().Name, err)
	}
	for _, q := range qdiscs {
		switch q.Type() {
		case "noqueue", "mq", "pfifo_fast", "fq_codel", "fq", "noop":
		default:
			return &Refusal{ID: "qdisc", What: fmt.Sprintf("%s has a %s qdisc, which would be lost when the port is moved", l.Attrs().Name, q.Type()),
				Cure: fmt.Sprintf("remove it (tc qdisc del dev %s %s)", l.Attrs().Name, qdiscPlace(q))}
		}
	}
	return nil
}

func qdiscPlace(q netlink.Qdisc) string {
	switch q.Attrs().Parent {
	case netlink.HANDLE_CLSACT: // also HANDLE_INGRESS
		return q.Type()
	}
	return "root"
}

func noDefaultRoute(l netlink.Link) error {
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			return fmt.Errorf("list routes: %w", err)
		}
		for _, r := range routes {
			ours := r.LinkIndex == l.Attrs().Index || slices.ContainsFunc(r.MultiPath,
				func(h *netlink.NexthopInfo) bool { return h.LinkIndex == l.Attrs().Index })
			if ours && r.Type == unix.RTN_UNICAST && defaultDst(r.Dst) {
				return &Refusal{ID: "default-route", What: fmt.Sprintf("%s carries the default route (%s): this host would be cut off", l.Attrs().Name, r.Gw),
					Cure: "use another port, or leave --nic out for the veth rig"}
			}
		}
	}
	return nil
}

func defaultDst(n *net.IPNet) bool {
	if n == nil {
		return true
	}
	ones, _ := n.Mask.Size()
	return ones == 0
}

// noManagement refuses the port that ssh sessions, or the given addresses, are reached through.
func noManagement(l netlink.Link, protect []netip.Addr) error {
	for _, a := range slices.Concat(protect, sshClients()) {
		if a.IsLoopback() || a.IsLinkLocalUnicast() && a.Zone() != "" && a.Zone() != l.Attrs().Name {
			continue
		}
		routes, err := netlink.RouteGet(a.WithZone("").AsSlice())
		if err != nil {
			continue // not reached at all
		}
		if slices.ContainsFunc(routes, func(r netlink.Route) bool { return r.LinkIndex == l.Attrs().Index }) {
			return &Refusal{ID: "ssh-route", What: fmt.Sprintf("%s is the way to %s, who is logged in: the session would be cut off", l.Attrs().Name, a),
				Cure: "use another port, or leave --nic out for the veth rig"}
		}
	}
	return nil
}

// nearest returns the name at most two edits away, or "".
func nearest(name string, names []string) string {
	best, least := "", 3
	for _, n := range names {
		if d := distance(name, n); d < least {
			best, least = n, d
		}
	}
	return best
}

// distance is the Levenshtein distance.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// sshPort is where sshd listens by default; a server elsewhere is covered by the addresses the caller protects.
const sshPort = 22

// sshClients lists the other ends of established TCP connections to this host's ssh server.
func sshClients() []netip.Addr {
	var out []netip.Addr
	for _, f := range []string{"tcp", "tcp6"} {
		out = append(out, establishedPeers(filepath.Join("/proc/thread-self/net", f), sshPort)...)
	}
	return out
}
