// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"

	"github.com/mdlayher/genetlink"
	"github.com/mdlayher/netlink"
)

// The netdev generic netlink family (Documentation/netlink/specs/netdev.yaml, include/uapi/linux/netdev.h).
const (
	netdevFamily   = "netdev"
	netdevQueueGet = 10 // NETDEV_CMD_QUEUE_GET, Linux 6.8
	netdevNAPIGet  = 11 // NETDEV_CMD_NAPI_GET, Linux 6.8

	napiIfindex = 1 // NETDEV_A_NAPI_*
	napiID      = 2
	napiPID     = 4
	napiThread  = 8 // NETDEV_A_NAPI_THREADED, Linux 6.17: 0 is off

	queueID      = 1 // NETDEV_A_QUEUE_*
	queueIfindex = 2
	queueType    = 3
	queueNAPIID  = 4

	queueTypeRX = 0 // NETDEV_QUEUE_TYPE_RX
)

// napiEntry is what the kernel tells about one NAPI instance.
type napiEntry struct {
	id  int
	pid int // of its thread; 0 when it has none
	// threaded says whether it runs in that thread. Before Linux 6.17 a thread is kept when threading is switched off,
	// and the kernel does not say: then it is nil.
	threaded *bool
}

// netdevNAPIs lists the NAPI instances of a device in the calling thread's namespace. The error is fs.ErrNotExist or
// EOPNOTSUPP on kernels without the family or the command.
func netdevNAPIs(ifindex int) ([]napiEntry, error) {
	var out []napiEntry
	err := netdevDump(netdevNAPIGet, napiIfindex, ifindex, func(ad *netlink.AttributeDecoder) {
		var e napiEntry
		for ad.Next() {
			switch ad.Type() {
			case napiID:
				e.id = int(ad.Uint32())
			case napiPID:
				e.pid = int(ad.Uint32())
			case napiThread:
				on := ad.Uint32() != 0
				e.threaded = &on
			}
		}
		out = append(out, e)
	})
	return out, err
}

// netdevQueueNAPIs maps NAPI id to receive queue, for drivers that say so (veth does not: the map is then empty).
func netdevQueueNAPIs(ifindex int) (map[int]int, error) {
	out := make(map[int]int)
	err := netdevDump(netdevQueueGet, queueIfindex, ifindex, func(ad *netlink.AttributeDecoder) {
		queue, kind, id := -1, -1, 0
		for ad.Next() {
			switch ad.Type() {
			case queueID:
				queue = int(ad.Uint32())
			case queueType:
				kind = int(ad.Uint32())
			case queueNAPIID:
				id = int(ad.Uint32())
			}
		}
		if kind == queueTypeRX && id != 0 {
			out[id] = queue
		}
	})
	return out, err
}

// netdevDump sends one dump request limited to a device and hands each answer to parse.
func netdevDump(command uint8, attr uint16, ifindex int, parse func(*netlink.AttributeDecoder)) error {
	c, err := genetlink.Dial(nil)
	if err != nil {
		return fmt.Errorf("open generic netlink: %w", err)
	}
	defer c.Close()
	f, err := c.GetFamily(netdevFamily)
	if err != nil {
		return fmt.Errorf("find netlink family netdev: %w", err)
	}
	ae := netlink.NewAttributeEncoder()
	ae.Uint32(attr, uint32(ifindex))
	data, err := ae.Encode()
	if err != nil {
		return fmt.Errorf("encode netdev request: %w", err)
	}
	msgs, err := c.Execute(genetlink.Message{Header: genetlink.Header{Command: command, Version: 1}, Data: data},
		f.ID, netlink.Request|netlink.Dump)
	if err != nil {
		return fmt.Errorf("netdev command %d for interface %d: %w", command, ifindex, err)
	}
	for _, m := range msgs {
		ad, err := netlink.NewAttributeDecoder(m.Data)
		if err != nil {
			return fmt.Errorf("decode netdev answer: %w", err)
		}
		parse(ad)
		if err := ad.Err(); err != nil {
			return fmt.Errorf("decode netdev answer: %w", err)
		}
	}
	return nil
}
