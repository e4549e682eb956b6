// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// establishedPeers lists the remote addresses of established connections to a local port, from a /proc/net/tcp table.
// A table that is not there lists nobody.
func establishedPeers(path string, port uint16) []netip.Addr {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var out []netip.Addr
	for line := range strings.Lines(string(b)) {
		f := strings.Fields(line)
		if len(f) < 4 || f[3] != "01" { // TCP_ESTABLISHED
			continue
		}
		local, ok1 := parseProcAddr(f[1])
		remote, ok2 := parseProcAddr(f[2])
		if ok1 && ok2 && local.Port() == port {
			out = append(out, remote.Addr().Unmap())
		}
	}
	return out
}

// parseProcAddr reads "0100007F:0016": the address as 32-bit words in the host's byte order (proc_net_tcp.rst; the
// hosts we build for are little endian), the port as a number.
func parseProcAddr(s string) (netip.AddrPort, bool) {
	h, p, ok := strings.Cut(s, ":")
	b, err := hex.DecodeString(h)
	if !ok || err != nil || (len(b) != 4 && len(b) != 16) {
		return netip.AddrPort{}, false
	}
	port, err := strconv.ParseUint(p, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		binary.BigEndian.PutUint32(b[i:], binary.LittleEndian.Uint32(b[i:]))
	}
	a, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(a, uint16(port)), true
}
