// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"bytes"
	"net"
	"net/netip"
	"testing"
)

func TestAnswer(t *testing.T) {
	for _, f := range []Flow{
		{Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1")},
		{Src: netip.MustParseAddr("2001:2::2"), Dst: netip.MustParseAddr("2001:2::1")},
	} {
		f.SrcMAC, f.DstMAC = net.HardwareAddr{2, 0, 0, 0, 0, 2}, net.HardwareAddr{2, 0, 0, 0, 0, 1}
		f.SrcPort, f.DstPort = 10007, 53
		request, err := f.Build(make([]byte, 200), 104, 0, Stamp{Run: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []int{1, 12, 37, 1000} {
			payload := bytes.Repeat([]byte{0xab, 0x01, 0xff}, n)[:n]
			b := bytes.Repeat([]byte{0xee}, f.HeaderLen()+n)
			copy(b[f.HeaderLen():], payload)
			Answer(b, request)
			got, verdict := Verifier{DstPort: 10007, Checksum: true}.Frame(b)
			if verdict != OK || !bytes.Equal(got, payload) {
				t.Fatalf("%d B: verdict %d, %x", n, verdict, b)
			}
			if !bytes.Equal(Ethernet(b).Destination(), f.SrcMAC) || !bytes.Equal(Ethernet(b).Source(), f.DstMAC) {
				t.Errorf("MAC addresses %x", b[:12])
			}
			var src, dst netip.Addr
			if f.Src.Is4() {
				h := IPv4(b[EthernetLen:])
				src, dst = h.Source(), h.Destination()
				if h.TTL() != 64 || h.TotalLen() != len(b)-EthernetLen {
					t.Errorf("IPv4 header %x", h[:IPv4Len])
				}
			} else {
				h := IPv6(b[EthernetLen:])
				src, dst = h.Source(), h.Destination()
				if h.HopLimit() != 64 {
					t.Errorf("IPv6 header %x", h[:IPv6Len])
				}
			}
			if src != f.Dst || dst != f.Src || UDP(b[f.HeaderLen()-UDPLen:]).SourcePort() != 53 {
				t.Errorf("from %s port %d to %s", src, UDP(b[f.HeaderLen()-UDPLen:]).SourcePort(), dst)
			}
			if n := testing.AllocsPerRun(10, func() { Answer(b, request) }); n != 0 {
				t.Errorf("%v allocations", n)
			}
		}
	}
}
