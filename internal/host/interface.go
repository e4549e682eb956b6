// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// maxNativeMTU is the largest MTU native XDP takes without fragments on most drivers: a 4 KiB page less headroom and
// shared info (on veth 3506 attaches and 3507 does not).
const maxNativeMTU = 3506

// interfaceChecks looks at one device of this network namespace.
func interfaceChecks(name string) []Check {
	d, err := Describe(name)
	if err != nil {
		c := Check{ID: "nic.found", Status: Fail, What: err.Error(), Why: "it is what is to be measured", Cure: "ip link lists the devices there are"}
		if !errors.As(err, new(netlink.LinkNotFoundError)) {
			c.Status = Skip
		}
		return []Check{c}
	}
	return []Check{d.driverCheck(), d.linkCheck(), d.xdpCheck(), d.zeroCopyCheck(), d.attachedCheck(), d.mtuCheck(), d.queueCheck(), d.ringCheck(),
		d.qdiscCheck(), d.routeCheck(), d.offloadCheck(), d.placeCheck()}
}

func (d Device) driverCheck() Check {
	c := Check{ID: "nic.driver", Status: Pass, Why: "drivers differ in what XDP they have; the record names this one"}
	what := []string{d.Name + ": driver " + d.Driver}
	for _, f := range []struct{ name, value string }{{"version", d.Version}, {"firmware", d.Firmware}, {"bus", d.Bus}} {
		if f.value != "" && f.value != "N/A" {
			what = append(what, f.name+" "+f.value)
		}
	}
	if c.What = strings.Join(what, ", "); d.Driver == "" {
		c.Status, c.What = Skip, d.Name+": the driver does not say its name"
	}
	return c
}

func (d Device) linkCheck() Check {
	c := Check{ID: "nic.link", Status: Pass, Why: "no link, no frames"}
	switch {
	case !d.Up:
		c.Status, c.What, c.Cure = Fail, d.Name+" is down", "ip link set "+d.Name+" up"
	case !d.Carrier:
		c.Status, c.What, c.Cure = Fail, d.Name+" is up, but has no carrier", "plug the cable in, and bring the other end up"
	case d.Speed > 0:
		c.What = fmt.Sprintf("link is up, %d Mb/s", d.Speed)
	default:
		c.What = "link is up, at a speed the driver does not say"
	}
	return c
}

func (d Device) xdpCheck() Check {
	c := Check{ID: "nic.xdp", Status: Pass, Why: "native XDP runs in the driver; generic XDP, which every device has, costs an skb first"}
	switch {
	case d.XDP == nil:
		c.Status, c.What = Skip, "the kernel does not say what XDP features "+d.Name+" has (it does from Linux 6.3)"
	case !d.XDP.Has("basic") || !d.XDP.Has("redirect"):
		c.Status, c.What = Warn, "driver claims no native XDP redirect ("+strings.Join(d.XDP.XDP, " ")+")"
		c.Cure = "measure with xdp:generic, or use a NIC whose driver has it"
	default:
		c.What = "driver claims " + strings.Join(d.XDP.XDP, " ")
	}
	return c
}

func (d Device) zeroCopyCheck() Check {
	c := Check{ID: "nic.zerocopy", Status: Pass, Why: "with zero-copy the NIC writes into the program's memory; copy mode adds a copy and, for sending, an skb"}
	switch {
	case d.XDP == nil:
		c.Status, c.What = Skip, "the kernel does not say (it does from Linux 6.3)"
	case d.XDP.Has("xsk-zerocopy"):
		c.What = fmt.Sprintf("driver claims zero-copy, up to %d buffers a packet", max(d.XDP.ZCMaxSegs, 1))
	default:
		c.Status, c.What, c.Cure = Warn, "driver claims no zero-copy", "results are of copy mode; most 10 Gb/s and faster NICs have zero-copy"
	}
	return c
}

func (d Device) attachedCheck() Check {
	c := Check{ID: "nic.xdp_attached", Status: Pass, What: "no XDP program is attached", Why: "two programs can not be attached at once, and kernel arms run with none"}
	if d.Attached != "" {
		c.Status, c.What = Fail, "an XDP program is attached ("+d.Attached+")"
		c.Cure = "see whose it is (bpftool prog), and if nobody needs it: ip link set " + d.Name + " xdp off"
	}
	return c
}

func (d Device) mtuCheck() Check {
	c := Check{ID: "nic.mtu", Status: Pass, What: fmt.Sprintf("MTU is %d bytes", d.MTU), Why: fmt.Sprintf("above %d bytes native XDP needs a driver and a program with fragments", maxNativeMTU)}
	if d.MTU > maxNativeMTU && (d.XDP == nil || !d.XDP.Has("rx-sg")) {
		c.Status = Warn
		c.Cure = fmt.Sprintf("ip link set %s mtu 1500, or measure with xdp:generic", d.Name)
	}
	return c
}

func (d Device) queueCheck() Check {
	c := Check{ID: "nic.queues", Status: Pass, What: fmt.Sprintf("%d receive and %d transmit queues (of at most %d)", d.RxQueues, d.TxQueues, max(d.MaxQueue, d.RxQueues)),
		Why: "an AF_XDP socket sees one queue; what arrives on others is not lost but elsewhere"}
	cpus, err := AllowedCPUs()
	if err == nil && d.RxQueues > len(cpus) {
		c.Status = Warn
		c.Cure = fmt.Sprintf("set as many as are measured: ethtool -L %s combined 1", d.Name)
	}
	return c
}

func (d Device) ringCheck() Check {
	c := Check{ID: "nic.rings", Status: Pass, Why: "a larger ring bridges longer stalls, for both engines alike"}
	switch {
	case d.RxRing == 0:
		c.Status, c.What = Skip, "the driver does not say how large its rings are (veth's have 256 slots)"
	default:
		c.What = fmt.Sprintf("receive ring has %d of at most %d descriptors, transmit ring %d of %d", d.RxRing, d.RxMax, d.TxRing, d.TxMax)
		if d.RxRing < 512 && d.RxMax > d.RxRing {
			c.Status, c.Cure = Warn, fmt.Sprintf("ethtool -G %s rx %d", d.Name, d.RxMax)
		}
	}
	return c
}

func (d Device) qdiscCheck() Check {
	c := Check{ID: "nic.qdisc", Status: Pass, What: "qdisc " + strings.Join(d.Qdiscs, ", "), Why: "AF_XDP passes qdiscs, tc filters and netfilter by: what they do happens to the kernel engine only"}
	if i := slices.IndexFunc(d.Qdiscs, func(k string) bool { return !trivialQdisc(k) }); i >= 0 {
		c.Status = Warn
		c.Cure = fmt.Sprintf("remove it for the measurement (tc qdisc del dev %s root), or keep it and call it part of the kernel path", d.Name)
	}
	if len(d.Qdiscs) == 0 {
		c.What = "no qdisc"
	}
	return c
}

// routeCheck sees whether the host would be cut off.
func (d Device) routeCheck() Check {
	c := Check{ID: "nic.route", Status: Pass, What: "no default route leads through " + d.Name, Why: "a device that is measured is taken away from the host"}
	for _, family := range []int{unix.AF_INET, unix.AF_INET6} {
		routes, err := netlink.RouteListFiltered(family, &netlink.Route{Table: unix.RT_TABLE_UNSPEC}, netlink.RT_FILTER_TABLE)
		if err != nil {
			c.Status, c.What = Skip, fmt.Sprintf("list routes: %v", err)
			return c
		}
		for _, r := range routes {
			through := r.LinkIndex == d.Index || slices.ContainsFunc(r.MultiPath, func(h *netlink.NexthopInfo) bool { return h.LinkIndex == d.Index })
			if through && r.Type == unix.RTN_UNICAST && isDefault(r.Dst) {
				c.Status, c.What, c.Cure = Fail, d.Name+" carries the default route", "use another port, or leave --nic out for the veth rig"
				return c
			}
		}
	}
	return c
}

func isDefault(n *net.IPNet) bool {
	if n == nil {
		return true
	}
	ones, _ := n.Mask.Size()
	return ones == 0
}

func (d Device) offloadCheck() Check {
	c := Check{ID: "nic.offloads", Status: Pass, What: "no offload is on that frames differ by", Why: "an offload that changes frames before XDP, or keeps it from attaching, makes engines see different traffic"}
	var bad, cures []string
	for _, o := range []struct{ name, short string }{{"rx-lro", "lro"}, {"rx-gro-hw", "rx-gro-hw"}, {"rx-vlan-hw-parse", "rxvlan"}} {
		if slices.Contains(d.Offloads, o.name) && d.Type == "device" {
			bad, cures = append(bad, o.name), append(cures, o.short+" off")
		}
	}
	if len(bad) > 0 {
		c.Status, c.What = Warn, "on: "+strings.Join(bad, ", ")
		c.Cure = "ethtool -K " + d.Name + " " + strings.Join(cures, " ")
	}
	return c
}

// placeCheck tells where the device's work runs.
func (d Device) placeCheck() Check {
	c := Check{ID: "nic.place", Status: Pass, Why: "which CPU receive processing runs on decides what it costs whom"}
	what := []string{"NAPI " + map[string]string{"0": "in softirq", "1": "in threads", "2": "in threads that busy-poll"}[d.Threaded]}
	if d.Threaded == "" {
		what = []string{"where NAPI runs is not to be seen"}
	}
	if d.IRQs > 0 {
		what = append(what, fmt.Sprintf("%d interrupts", d.IRQs))
	}
	if d.NUMA != "" && d.NUMA != "-1" {
		what = append(what, "NUMA node "+d.NUMA)
	}
	c.What = strings.Join(what, ", ")
	if d.Threaded == "" {
		c.Status = Skip
	}
	return c
}

// attachedAnywhere looks for XDP programs on all devices of this network namespace.
func attachedAnywhere() Check {
	c := Check{ID: "xdp.attached", Status: Pass, What: "no device here has an XDP program", Why: "a program of somebody else keeps ours off that device"}
	links, err := netlink.LinkList()
	if err != nil {
		c.Status, c.What = Skip, fmt.Sprintf("list devices: %v", err)
		return c
	}
	var on []string
	for _, l := range links {
		if x := l.Attrs().Xdp; x != nil && x.Attached {
			on = append(on, fmt.Sprintf("%s (%s, id %d)", l.Attrs().Name, attachMode(x.AttachMode), x.ProgId))
		}
	}
	if len(on) > 0 {
		c.Status, c.What, c.Cure = Warn, "XDP is attached to "+strings.Join(on, ", "), "other devices, and the veth rig, are free"
	}
	return c
}
