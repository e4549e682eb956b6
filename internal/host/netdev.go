// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// The netdev generic netlink family (Documentation/netlink/specs/netdev.yaml, include/uapi/linux/netdev.h).
const (
	netdevDevGet  = 1 // NETDEV_CMD_DEV_GET, Linux 6.3
	devIfindex    = 1 // NETDEV_A_DEV_*
	devXDP        = 3
	devZCMaxSegs  = 4
	devRXMetadata = 5
	devXSK        = 6
)

// XDPFeatures is what a driver says about XDP. It is a claim: validate tries it.
type XDPFeatures struct {
	XDP        []string // basic redirect ndo-xmit xsk-zerocopy hw-offload rx-sg ndo-xmit-sg
	ZCMaxSegs  uint32   // buffers per zero-copy packet; 0 when there is no zero-copy
	RXMetadata []string // timestamp hash vlan-tag
	XSK        []string // tx-timestamp tx-checksum tx-launch-time
}

// Has says whether the driver claims an XDP feature.
func (f XDPFeatures) Has(name string) bool {
	return strings.Contains(" "+strings.Join(f.XDP, " ")+" ", " "+name+" ")
}

// xdpFeatures asks for one device of the calling thread's namespace. Before Linux 6.3 nobody can tell.
func xdpFeatures(ifindex int) (XDPFeatures, error) {
	f, err := netlink.GenlFamilyGet("netdev")
	if err != nil {
		return XDPFeatures{}, fmt.Errorf("find netlink family netdev: %w", err)
	}
	req := nl.NewNetlinkRequest(int(f.ID), unix.NLM_F_ACK)
	req.AddData(genlHeader{netdevDevGet, 1})
	req.AddData(nl.NewRtAttr(devIfindex, nl.Uint32Attr(uint32(ifindex))))
	msgs, err := req.Execute(unix.NETLINK_GENERIC, 0)
	if err != nil {
		return XDPFeatures{}, fmt.Errorf("ask for XDP features: %w", err)
	}
	if len(msgs) == 0 {
		return XDPFeatures{}, fmt.Errorf("ask for XDP features: no answer")
	}
	return parseXDPFeatures(msgs[0])
}

// genlHeader is command, version and two reserved bytes, which the family wants to be zero (the library's own header
// type leaves them to chance).
type genlHeader [4]byte

func (h genlHeader) Len() int { return len(h) }

func (h genlHeader) Serialize() []byte { return h[:] }

// parseXDPFeatures reads the answer: a generic netlink header of 4 bytes and attributes.
func parseXDPFeatures(b []byte) (XDPFeatures, error) {
	var f XDPFeatures
	if len(b) < nl.SizeofGenlmsg {
		return f, fmt.Errorf("parse XDP features: %d bytes", len(b))
	}
	attrs, err := nl.ParseRouteAttr(b[nl.SizeofGenlmsg:])
	if err != nil {
		return f, fmt.Errorf("parse XDP features: %w", err)
	}
	for _, a := range attrs {
		var v uint64
		switch len(a.Value) {
		case 4:
			v = uint64(binary.NativeEndian.Uint32(a.Value))
		case 8:
			v = binary.NativeEndian.Uint64(a.Value)
		default:
			continue
		}
		switch a.Attr.Type {
		case devXDP:
			f.XDP = names(v, "basic", "redirect", "ndo-xmit", "xsk-zerocopy", "hw-offload", "rx-sg", "ndo-xmit-sg")
		case devZCMaxSegs:
			f.ZCMaxSegs = uint32(v)
		case devRXMetadata:
			f.RXMetadata = names(v, "timestamp", "hash", "vlan-tag")
		case devXSK:
			f.XSK = names(v, "tx-timestamp", "tx-checksum", "tx-launch-time")
		}
	}
	return f, nil
}

// names lists the names of the bits that are set, from bit 0; a bit without a name is listed by number.
func names(bits uint64, name ...string) []string {
	var out []string
	for i := range 64 {
		if bits>>i&1 == 0 {
			continue
		}
		if i < len(name) {
			out = append(out, name[i])
		} else {
			out = append(out, fmt.Sprintf("bit-%d", i))
		}
	}
	return out
}
