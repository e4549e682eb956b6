// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
)

// Device is what is known about a network device. Zero means unknown, unless said otherwise.
type Device struct {
	Name     string
	Index    int
	MAC      string
	Type     string // kind of virtual device, "device" for hardware
	MTU      int    // bytes
	Up       bool
	Carrier  bool
	Driver   string
	Version  string // of the driver
	Firmware string
	Bus      string // such as a PCI address
	NUMA     string // node; "-1" means none
	Speed    int    // Mb/s
	RxQueues int    // current, combined ones included
	TxQueues int
	MaxQueue int // most receive queues it can have
	RxRing   int // descriptors
	TxRing   int
	RxMax    int
	TxMax    int
	Offloads []string // those that are on, kernel names
	XDP      *XDPFeatures
	Attached string // XDP program attached, such as "native, id 7"; "" when none
	Qdiscs   []string
	Threaded string // threaded NAPI, as sysfs has it
	IRQs     int    // message-signalled interrupts
}

// Describe reads a device of the caller's network namespace, by name or alternative name. The error is a
// netlink.LinkNotFoundError when there is none; what can not be read is left at zero.
func Describe(name string) (Device, error) {
	l, err := netlink.LinkByName(name)
	if err != nil {
		return Device{}, fmt.Errorf("find device %s: %w", name, err)
	}
	a := l.Attrs()
	d := Device{Name: a.Name, Index: a.Index, MAC: a.HardwareAddr.String(), Type: l.Type(), MTU: a.MTU, Up: a.Flags&net.FlagUp != 0,
		Carrier: a.RawFlags&0x10000 != 0 /* IFF_LOWER_UP */, RxQueues: a.NumRxQueues, TxQueues: a.NumTxQueues}
	if a.Xdp != nil && a.Xdp.Attached {
		d.Attached = fmt.Sprintf("%s, id %d", attachMode(a.Xdp.AttachMode), a.Xdp.ProgId)
	}
	if f, err := xdpFeatures(a.Index); err == nil {
		d.XDP = &f
	}
	if qdiscs, err := netlink.QdiscList(l); err == nil {
		for _, q := range qdiscs {
			d.Qdiscs = append(d.Qdiscs, q.Type())
		}
		slices.Sort(d.Qdiscs)
		d.Qdiscs = slices.Compact(d.Qdiscs)
	}
	sys := filepath.Join("/sys/class/net", a.Name)
	if i, err := strconv.Atoi(read(sys + "/ifindex")); err == nil && i == a.Index { // /sys is of this namespace
		d.NUMA, d.Threaded = read(sys+"/device/numa_node"), read(sys+"/threaded")
		d.Speed, _ = strconv.Atoi(read(sys + "/speed"))
		d.Speed = max(d.Speed, 0) // -1 means unknown
		irqs, _ := filepath.Glob(sys + "/device/msi_irqs/*")
		d.IRQs = len(irqs)
	}
	d.ethtool()
	return d, nil
}

// ethtool adds what only ethtool's ioctls tell; drivers answer as much of it as they like.
func (d *Device) ethtool() {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return
	}
	defer e.Close()
	if i, err := e.DriverInfo(d.Name); err == nil {
		d.Driver, d.Version, d.Firmware, d.Bus = i.Driver, i.Version, i.FwVersion, i.BusInfo
	}
	if c, err := e.GetChannels(d.Name); err == nil {
		if n := int(c.CombinedCount + c.RxCount); n > 0 {
			d.RxQueues = n
		}
		if n := int(c.CombinedCount + c.TxCount); n > 0 {
			d.TxQueues = n
		}
		d.MaxQueue = int(c.MaxCombined + c.MaxRx)
	}
	if r, err := e.GetRing(d.Name); err == nil {
		d.RxRing, d.TxRing, d.RxMax, d.TxMax = int(r.RxPending), int(r.TxPending), int(r.RxMaxPending), int(r.TxMaxPending)
	}
	if f, err := e.Features(d.Name); err == nil {
		for name, on := range f {
			if on {
				d.Offloads = append(d.Offloads, name)
			}
		}
		slices.Sort(d.Offloads)
	}
}

// attachMode names XDP_ATTACHED_* of include/uapi/linux/if_link.h.
func attachMode(m uint32) string {
	switch m {
	case 1:
		return "native"
	case 2:
		return "generic"
	case 3:
		return "offloaded"
	}
	return "several modes"
}

// Facts lists the device for the record, under the given prefix ("nic." or "peer.nic.").
func (d Device) Facts(prefix string) map[string]string {
	out := map[string]string{
		"name": d.Name, "driver": d.Driver, "driver_version": d.Version, "firmware": d.Firmware, "bus": d.Bus, "numa_node": d.NUMA,
		"mtu": strconv.Itoa(d.MTU), "speed_mbps": strconv.Itoa(d.Speed), "offloads": strings.Join(d.Offloads, " "),
		"rx_queues": strconv.Itoa(d.RxQueues), "tx_queues": strconv.Itoa(d.TxQueues), "max_queues": strconv.Itoa(d.MaxQueue),
		"rx_ring": strconv.Itoa(d.RxRing), "tx_ring": strconv.Itoa(d.TxRing), "rx_ring_max": strconv.Itoa(d.RxMax), "tx_ring_max": strconv.Itoa(d.TxMax),
		"qdisc": strings.Join(d.Qdiscs, " "), "napi_threaded": d.Threaded, "irqs": strconv.Itoa(d.IRQs),
	}
	if d.XDP != nil {
		out["xdp_features"] = strings.Join(d.XDP.XDP, " ")
		out["xsk_features"] = strings.Join(d.XDP.XSK, " ")
		out["xdp_rx_metadata"] = strings.Join(d.XDP.RXMetadata, " ")
		out["xdp_zc_max_segs"] = strconv.Itoa(int(d.XDP.ZCMaxSegs))
	}
	maps.DeleteFunc(out, func(_, v string) bool { return v == "" || v == "0" })
	prefixed := make(map[string]string, len(out))
	for k, v := range out {
		prefixed[prefix+k] = v
	}
	return prefixed
}

// trivialQdiscs are those that neither shape nor drop on purpose.
func trivialQdisc(kind string) bool {
	switch kind {
	case "noqueue", "mq", "pfifo_fast", "fq_codel", "fq", "noop":
		return true
	}
	return false
}
