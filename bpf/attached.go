// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"strings"
	"syscall"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"
)

// AttachedProgram is an XDP program found on an interface.
type AttachedProgram struct {
	ProgID uint32
	Mode   Mode
}

// Attached lists the XDP programs on an interface of the calling thread's network namespace; none is an empty list.
func Attached(ifIndex int) ([]AttachedProgram, error) {
	info, err := queryLink(ifIndex)
	if err != nil {
		return nil, fmt.Errorf("query XDP of interface %d: %w", ifIndex, err)
	}
	return info.xdp, nil
}

type linkFacts struct {
	kind string // rtnetlink's, "veth"; empty for hardware
	xdp  []AttachedProgram
}

func linkInfo(ifIndex int) linkFacts {
	info, _ := queryLink(ifIndex)
	return info
}

// queryLink reads IFLA_XDP and IFLA_INFO_KIND (include/uapi/linux/if_link.h) from a dump of all links.
func queryLink(ifIndex int) (linkFacts, error) {
	var info linkFacts
	raw, err := syscall.NetlinkRIB(unix.RTM_GETLINK, unix.AF_UNSPEC)
	if err != nil {
		return info, fmt.Errorf("dump links: %w", err)
	}
	msgs, err := syscall.ParseNetlinkMessage(raw)
	if err != nil {
		return info, fmt.Errorf("parse links: %w", err)
	}
	for i := range msgs {
		m := &msgs[i]
		if m.Header.Type != unix.RTM_NEWLINK || len(m.Data) < unix.SizeofIfInfomsg ||
			int(int32(binary.NativeEndian.Uint32(m.Data[4:]))) != ifIndex {
			continue
		}
		attrs, err := syscall.ParseNetlinkRouteAttr(m)
		if err != nil {
			return info, fmt.Errorf("parse link: %w", err)
		}
		for _, a := range attrs {
			switch a.Attr.Type &^ unix.NLA_F_NESTED {
			case unix.IFLA_XDP:
				info.xdp = parseXDP(a.Value)
			case unix.IFLA_LINKINFO:
				nested(a.Value, func(t uint16, v []byte) {
					if t == unix.IFLA_INFO_KIND {
						info.kind = strings.TrimRight(string(v), "\x00")
					}
				})
			}
		}
		return info, nil
	}
	return info, unix.ENODEV
}

func parseXDP(b []byte) (out []AttachedProgram) {
	nested(b, func(t uint16, v []byte) {
		var mode Mode
		switch t {
		case unix.IFLA_XDP_DRV_PROG_ID:
			mode = Native
		case unix.IFLA_XDP_SKB_PROG_ID:
			mode = Generic
		case unix.IFLA_XDP_HW_PROG_ID:
			mode = Offload
		default:
			return
		}
		if len(v) >= 4 {
			out = append(out, AttachedProgram{ProgID: binary.NativeEndian.Uint32(v), Mode: mode})
		}
	})
	return out
}

// nested walks netlink attributes; what is malformed ends the walk.
func nested(b []byte, fn func(typ uint16, value []byte)) {
	for len(b) >= unix.SizeofNlAttr {
		n := int(binary.NativeEndian.Uint16(b))
		if n < unix.SizeofNlAttr || n > len(b) {
			return
		}
		fn(binary.NativeEndian.Uint16(b[2:])&^unix.NLA_F_NESTED, b[unix.SizeofNlAttr:n])
		b = b[min((n+3)&^3, len(b)):]
	}
}

// programName returns name and tag of a loaded program, empty when it is gone or not readable.
func programName(id uint32) (name, tag string) {
	p, err := ebpf.NewProgramFromID(ebpf.ProgramID(id))
	if err != nil {
		return "", ""
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return "", ""
	}
	if _, err := hex.DecodeString(info.Tag); err != nil {
		return info.Name, ""
	}
	return info.Name, info.Tag
}
