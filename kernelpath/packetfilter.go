// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// Fields of an Ethernet frame as classic BPF sees them (Documentation/networking/filter.rst).
const (
	offSource     = 6
	offEtherType  = 12
	offProtocol4  = 14 + 9  // IPv4 protocol
	offFragment4  = 14 + 6  // IPv4 flags and fragment offset
	offDst4       = 14 + 16 // IPv4 destination
	offNext6      = 14 + 6  // IPv6 next header
	offDst6       = 14 + 24 // IPv6 destination
	offUDPPort6   = 14 + 40 + 2
	udpPortInX    = 14 + 2     // UDP destination port after an IPv4 header of X bytes
	vlanPresent   = 0xfffff030 // SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT
	fragmentBits  = 0x1fff
	acceptedBytes = 1 << 18
)

// udpFilter accepts unfragmented, untagged UDP datagrams to one address and port and nothing else, as a UDP socket would.
// IPv6 extension headers are not followed. Rejecting costs no ring space.
func udpFilter(dst netip.AddrPort) []unix.SockFilter {
	var f filter
	f.load(unix.BPF_W|unix.BPF_ABS, vlanPresent)
	f.want(0)
	f.load(unix.BPF_H|unix.BPF_ABS, offEtherType)
	if dst.Addr().Is4() {
		f.want(unix.ETH_P_IP)
		f.load(unix.BPF_B|unix.BPF_ABS, offProtocol4)
		f.want(unix.IPPROTO_UDP)
		f.load(unix.BPF_H|unix.BPF_ABS, offFragment4)
		f.wantClear(fragmentBits)
		a := dst.Addr().As4()
		f.wantAddress(offDst4, a[:])
		f.add(unix.BPF_LDX|unix.BPF_B|unix.BPF_MSH, 14)
		f.load(unix.BPF_H|unix.BPF_IND, udpPortInX)
	} else {
		f.want(unix.ETH_P_IPV6)
		f.load(unix.BPF_B|unix.BPF_ABS, offNext6)
		f.want(unix.IPPROTO_UDP)
		a := dst.Addr().As16()
		f.wantAddress(offDst6, a[:])
		f.load(unix.BPF_H|unix.BPF_ABS, offUDPPort6)
	}
	f.want(uint32(dst.Port()))
	return f.end()
}

// sourceFilter accepts frames whose source MAC address begins with prefix.
func sourceFilter(prefix []byte) []unix.SockFilter {
	var f filter
	for i, b := range prefix {
		f.load(unix.BPF_B|unix.BPF_ABS, offSource+uint32(i))
		f.want(uint32(b))
	}
	return f.end()
}

// filter assembles a chain of conditions, each of which rejects the frame when it does not hold.
type filter struct {
	code   []unix.SockFilter
	reject []int // jumps to the end when not equal
	clear  []int // jumps to the end when bits are set
}

func (f *filter) add(code uint16, k uint32) {
	f.code = append(f.code, unix.SockFilter{Code: code, K: k})
}

func (f *filter) load(mode uint16, k uint32) { f.add(unix.BPF_LD|mode, k) }

func (f *filter) want(k uint32) {
	f.reject = append(f.reject, len(f.code))
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, k)
}

func (f *filter) wantClear(bits uint32) {
	f.clear = append(f.clear, len(f.code))
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits)
}

func (f *filter) wantAddress(off uint32, a []byte) {
	for i := 0; i < len(a); i += 4 {
		f.load(unix.BPF_W|unix.BPF_ABS, off+uint32(i))
		f.want(uint32(a[i])<<24 | uint32(a[i+1])<<16 | uint32(a[i+2])<<8 | uint32(a[i+3]))
	}
}

func (f *filter) end() []unix.SockFilter {
	f.add(unix.BPF_RET|unix.BPF_K, acceptedBytes)
	last := len(f.code)
	f.add(unix.BPF_RET|unix.BPF_K, 0)
	for _, i := range f.reject {
		f.code[i].Jf = uint8(last - i - 1)
	}
	for _, i := range f.clear {
		f.code[i].Jt = uint8(last - i - 1)
	}
	return f.code
}
