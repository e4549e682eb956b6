// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"twopath/internal/packet"
)

// Rewrite is what is changed in every frame before it is sent.
type Rewrite struct {
	DstMAC net.HardwareAddr // nil keeps the capture's own
	Run    uint32           // marks the frames as this run's (packet.PutMark)
	// Hosts maps IP addresses, both as source and as destination. Checksums are repaired by the difference (RFC 1624): what
	// was wrong before stays wrong.
	Hosts map[netip.Addr]netip.Addr
}

// ParseHosts reads OLD=NEW,OLD=NEW.
func ParseHosts(s string) (map[netip.Addr]netip.Addr, error) {
	if s == "" {
		return nil, nil
	}
	hosts := map[netip.Addr]netip.Addr{}
	for _, pair := range strings.Split(s, ",") {
		before, after, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return nil, fmt.Errorf("%q is not OLD=NEW, two IP addresses", pair)
		}
		from, err := netip.ParseAddr(before)
		if err != nil {
			return nil, fmt.Errorf("%q is not an IP address", before)
		}
		to, err := netip.ParseAddr(after)
		if err != nil {
			return nil, fmt.Errorf("%q is not an IP address", after)
		}
		if from.Zone() != "" || to.Zone() != "" || from.Is4() != to.Is4() {
			return nil, fmt.Errorf("%s and %s are not two addresses of one IP version", before, after)
		}
		if _, twice := hosts[from]; twice {
			return nil, fmt.Errorf("%s is given twice", before)
		}
		hosts[from] = to
	}
	return hosts, nil
}

// Apply changes the frames in place and returns how many had an address of Hosts.
func (r Rewrite) Apply(frames [][]byte) (rewritten uint64) {
	for i, f := range frames {
		if r.DstMAC != nil {
			copy(f, r.DstMAC)
		}
		packet.PutMark(f, r.Run, i)
		if len(r.Hosts) > 0 && r.addresses(f) {
			rewritten++
		}
	}
	return rewritten
}

// addresses rewrites the IP header of a frame, if it has one.
func (r Rewrite) addresses(f []byte) bool {
	off, etherType := 14, binary.BigEndian.Uint16(f[12:])
	for range 2 { // 802.1Q, 802.1ad
		if (etherType == 0x8100 || etherType == 0x88a8) && len(f) >= off+4 {
			etherType = binary.BigEndian.Uint16(f[off+2:])
			off += 4
		}
	}
	ip := f[off:]
	switch {
	case etherType == 0x0800 && len(ip) >= packet.IPv4Len && ip[0]>>4 == 4:
		return r.ipv4(ip)
	case etherType == 0x86dd && len(ip) >= packet.IPv6Len && ip[0]>>4 == 6:
		return r.ipv6(ip)
	}
	return false
}

func (r Rewrite) ipv4(ip []byte) bool {
	before := slices.Clone(ip[12:20])
	one := r.swap(ip[12:16])
	two := r.swap(ip[16:20])
	if !one && !two {
		return false
	}
	repair(ip[10:], before, ip[12:20], false)
	header := packet.IPv4(ip).HeaderLen()
	if binary.BigEndian.Uint16(ip[6:])&0x1fff == 0 && header >= packet.IPv4Len && header <= len(ip) {
		transport(ip[header:], ip[9], before, ip[12:20])
	}
	return true
}

func (r Rewrite) ipv6(ip []byte) bool {
	before := slices.Clone(ip[8:40])
	one := r.swap(ip[8:24])
	two := r.swap(ip[24:40])
	if !one && !two {
		return false
	}
	if next, rest, ok := skipExtensions(ip[6], ip[40:]); ok {
		transport(rest, next, before, ip[8:40])
	}
	return true
}

// skipExtensions finds the transport header (RFC 8200, section 4); not ok says that it is not in this frame.
func skipExtensions(next byte, rest []byte) (byte, []byte, bool) {
	for range 8 {
		n := 8
		switch next {
		case 0, 43, 60: // hop-by-hop, routing, destination options
			if len(rest) >= 2 {
				n = 8 * (int(rest[1]) + 1)
			}
		case 44: // fragment
			if len(rest) >= 4 && binary.BigEndian.Uint16(rest[2:])&0xfff8 != 0 {
				return 0, nil, false
			}
		default:
			return next, rest, true
		}
		if len(rest) < n {
			return 0, nil, false
		}
		next, rest = rest[0], rest[n:]
	}
	return 0, nil, false
}

// swap replaces one address.
func (r Rewrite) swap(b []byte) bool {
	old, _ := netip.AddrFromSlice(b)
	to, ok := r.Hosts[old]
	if ok {
		copy(b, to.AsSlice())
	}
	return ok
}

// transport repairs the checksum whose pseudo header had the addresses.
func transport(b []byte, proto byte, before, after []byte) {
	switch {
	case proto == 6 && len(b) >= 18:
		repair(b[16:], before, after, false)
	case proto == packet.ProtoUDP && len(b) >= 8:
		repair(b[6:], before, after, true)
	case proto == 58 && len(b) >= 4:
		repair(b[2:], before, after, false)
	}
}

// repair updates a checksum field for a change of what it covers (RFC 1624, equation 3). A UDP checksum of 0 means none, and
// one that would become 0 is sent as 0xffff (RFC 768).
func repair(field, before, after []byte, udp bool) {
	old := binary.BigEndian.Uint16(field)
	if udp && old == 0 {
		return
	}
	sum := uint64(^old)
	for i := 0; i < len(before); i += 2 {
		sum += uint64(^binary.BigEndian.Uint16(before[i:])) + uint64(binary.BigEndian.Uint16(after[i:]))
	}
	n := ^packet.Fold(sum)
	if udp && n == 0 {
		n = 0xffff
	}
	binary.BigEndian.PutUint16(field, n)
}
