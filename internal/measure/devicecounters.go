// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"encoding/binary"
	"errors"
	"fmt"
	"syscall"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// linkCounters are the fields of struct rtnl_link_stats64 in order (include/uapi/linux/if_link.h). It has grown at
// the end, twice: an older kernel sends fewer. The netlink package knows only the first 23.
func linkCounters() []string {
	return []string{
		"rx_packets", "tx_packets", "rx_bytes", "tx_bytes", "rx_errors", "tx_errors", "rx_dropped", "tx_dropped",
		"multicast", "collisions", "rx_length_errors", "rx_over_errors", "rx_crc_errors", "rx_frame_errors",
		"rx_fifo_errors", "rx_missed_errors", "tx_aborted_errors", "tx_carrier_errors", "tx_fifo_errors",
		"tx_heartbeat_errors", "tx_window_errors", "rx_compressed", "tx_compressed", "rx_nohandler",
		"rx_otherhost_dropped",
	}
}

// link reads rtnl stats64 as link.*.
func (r *Reader) link() (map[string]uint64, error) {
	req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: r.route}
	msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
	msg.Index = int32(r.index)
	req.AddData(msg)
	replies, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
	if err != nil {
		return nil, fmt.Errorf("read link statistics of %s: %w", r.o.Device, err)
	}
	for _, reply := range replies {
		if len(reply) < unix.SizeofIfInfomsg {
			continue
		}
		attrs, err := nl.ParseRouteAttr(reply[unix.SizeofIfInfomsg:])
		if err != nil {
			return nil, fmt.Errorf("parse link of %s: %w", r.o.Device, err)
		}
		m := parseLink(attrs)
		if len(m) > 0 {
			return m, nil
		}
	}
	return nil, fmt.Errorf("read link statistics of %s: no IFLA_STATS64 in the answer", r.o.Device)
}

// parseLink takes the statistics and the number of times the carrier came or went; nothing without statistics.
func parseLink(attrs []syscall.NetlinkRouteAttr) map[string]uint64 {
	var m map[string]uint64
	changes, known := uint64(0), false
	for _, a := range attrs {
		switch a.Attr.Type {
		case unix.IFLA_STATS64:
			m = parseLinkStats(a.Value)
		case unix.IFLA_CARRIER_CHANGES:
			if len(a.Value) >= 4 {
				changes, known = uint64(binary.NativeEndian.Uint32(a.Value)), true
			}
		}
	}
	if m != nil && known {
		m["link.carrier_changes"] = changes
	}
	return m
}

func parseLinkStats(b []byte) map[string]uint64 {
	m := make(map[string]uint64)
	for i, name := range linkCounters() {
		if len(b) < 8*i+8 {
			break
		}
		m["link."+name] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return m
}

// ethtoolStats reads the driver's own counters (ethtool -S) as ethtool.*. A driver may have none.
func (r *Reader) ethtoolStats() (map[string]uint64, error) {
	stats, err := r.et.Stats(r.o.Device)
	if errors.Is(err, unix.EOPNOTSUPP) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read ethtool statistics of %s: %w", r.o.Device, err)
	}
	m := make(map[string]uint64, len(stats))
	for name, v := range stats {
		m["ethtool."+name] = v
	}
	return m, nil
}

// qdisc reads the drops of the device's queueing disciplines as qdisc.drops. Only the root counts: a classful one, mq
// too, already holds its children's drops.
func (r *Reader) qdisc() (map[string]uint64, error) {
	l, err := r.nl.LinkByIndex(r.index)
	if err != nil {
		return nil, fmt.Errorf("find device %s: %w", r.o.Device, err)
	}
	all, err := r.nl.QdiscList(l)
	if err != nil {
		return nil, fmt.Errorf("list qdiscs of %s: %w", r.o.Device, err)
	}
	m := map[string]uint64{}
	for _, q := range all {
		a := q.Attrs()
		if a.Parent != netlink.HANDLE_ROOT || a.Statistics == nil || a.Statistics.Queue == nil {
			continue
		}
		m["qdisc.drops"] += uint64(a.Statistics.Queue.Drops)
		m["qdisc.overlimits"] += uint64(a.Statistics.Queue.Overlimits)
	}
	return m, nil
}
