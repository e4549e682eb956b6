// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
)

// FlowMatch says which frames are the run's: untagged, unfragmented UDP over IPv4 without options or IPv6 without
// extension headers, as below. All others are passed to the kernel.
type FlowMatch struct {
	Family  int        // 4 or 6; 0 takes it from Src or Dst
	Src     netip.Addr // zero: any
	Dst     netip.Addr // zero: any
	DstPort uint16

	SrcPort  uint16 // first source port
	SrcPorts int    // how many from there; 0: any source port

	RunID  uint32 // must be in the stamp
	AnyRun bool   // do not look at the stamp

	DstMAC net.HardwareAddr // nil: not looked at
}

// flowMatch is struct flow_match of c/flow.h; bpf2go makes one copy of it per program.
func (m FlowMatch) flowMatch() (redirectFlowMatch, error) {
	var f redirectFlowMatch
	family := m.Family
	for _, a := range []netip.Addr{m.Src, m.Dst} {
		if !a.IsValid() {
			continue
		}
		v := 6
		if a.Unmap().Is4() {
			v = 4
		}
		if family != 0 && family != v {
			return f, fmt.Errorf("match: address %s is not IPv%d", a, family)
		}
		family = v
	}
	if family != 4 && family != 6 {
		return f, errors.New("match: Family must be 4 or 6, or an address given")
	}
	if m.DstPort == 0 {
		return f, errors.New("match: DstPort is missing")
	}
	if m.SrcPorts < 0 || int(m.SrcPort)+m.SrcPorts > 1<<16 {
		return f, fmt.Errorf("match: %d source ports from %d do not fit", m.SrcPorts, m.SrcPort)
	}
	f.Family = uint8(family)
	f.DstPort, f.SrcPortFirst, f.SrcPorts = m.DstPort, m.SrcPort, uint32(m.SrcPorts)
	f.Run, f.AnyRun = m.RunID, flag(m.AnyRun)
	f.AnySrc, f.AnyDst = flag(!m.Src.IsValid()), flag(!m.Dst.IsValid())
	f.Src, f.Dst = addrWords(m.Src), addrWords(m.Dst)
	f.AnyMac = flag(m.DstMAC == nil)
	if m.DstMAC != nil && copy(f.DstMac[:], m.DstMAC) != 6 {
		return f, fmt.Errorf("match: DstMAC %s is not an Ethernet address", m.DstMAC)
	}
	return f, nil
}

// addrWords returns the address as it stands in a frame, IPv4 in the first word.
func addrWords(a netip.Addr) (w [4]uint32) {
	if !a.IsValid() {
		return w
	}
	for i, b := 0, a.Unmap().AsSlice(); len(b) > 0; i, b = i+1, b[4:] {
		w[i] = binary.NativeEndian.Uint32(b)
	}
	return w
}

func flag(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
