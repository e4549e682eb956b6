// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"net"
	"net/netip"
	"path/filepath"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"twopath/internal/packet"
)

// sumsOK has gopacket compute the checksums of a frame anew and compares.
func sumsOK(t *testing.T, f []byte) bool {
	t.Helper()
	p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
	var stack []gopacket.SerializableLayer
	for _, l := range p.Layers() {
		s, ok := l.(gopacket.SerializableLayer)
		if !ok {
			t.Fatalf("layer %v cannot be built", l.LayerType())
		}
		switch v := l.(type) {
		case *layers.TCP:
			_ = v.SetNetworkLayerForChecksum(p.NetworkLayer())
		case *layers.UDP:
			_ = v.SetNetworkLayerForChecksum(p.NetworkLayer())
		case *layers.ICMPv6:
			_ = v.SetNetworkLayerForChecksum(p.NetworkLayer())
		case *layers.DNS:
			s = gopacket.Payload(v.Contents)
		}
		stack = append(stack, s)
	}
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{ComputeChecksums: true}, stack...); err != nil {
		t.Fatal(err)
	}
	return bytes.Equal(b.Bytes()[:len(f)], f)
}

// What real programs sent has right checksums, and still has with other addresses.
func TestRewriteRecordings(t *testing.T) {
	hosts, err := ParseHosts("192.0.2.1=198.18.0.77, 192.0.2.2=10.255.255.254")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"http.pcapng", "dns.pcap", "cooked2.pcapng"} {
		c, err := Read(filepath.Join("testdata", name), Options{})
		if err != nil {
			t.Fatal(err)
		}
		for i, f := range c.Frames {
			if name != "cooked2.pcapng" && !sumsOK(t, f) {
				t.Fatalf("%s: frame %d was recorded with a wrong checksum", name, i)
			}
		}
		dst := net.HardwareAddr{2, 9, 9, 9, 9, 9}
		if n := (Rewrite{DstMAC: dst, Run: 7, Hosts: hosts}).Apply(c.Frames); n != uint64(len(c.Frames)) {
			t.Errorf("%s: %d of %d rewritten", name, n, len(c.Frames))
		}
		for i, f := range c.Frames {
			ip := packet.IPv4(f[14:])
			a, b := netip.MustParseAddr("198.18.0.77"), netip.MustParseAddr("10.255.255.254")
			if !(ip.Source() == a && ip.Destination() == b || ip.Source() == b && ip.Destination() == a) {
				t.Fatalf("%s: frame %d is from %v to %v", name, i, ip.Source(), ip.Destination())
			}
			if n, ok := packet.Mark(f, 7); !ok || n != 0 || !bytes.Equal(f[:6], dst) {
				t.Fatalf("%s: frame %d is marked %d, %v", name, i, n, ok)
			}
			if name != "cooked2.pcapng" && !sumsOK(t, f) {
				t.Fatalf("%s: frame %d has a wrong checksum:\n% x", name, i, f)
			}
		}
	}
}

// build makes a frame with gopacket.
func build(t *testing.T, ls ...gopacket.SerializableLayer) []byte {
	t.Helper()
	b := gopacket.NewSerializeBuffer()
	if err := gopacket.SerializeLayers(b, gopacket.SerializeOptions{ComputeChecksums: true, FixLengths: true}, ls...); err != nil {
		t.Fatal(err)
	}
	return bytes.Clone(b.Bytes())
}

func TestRewriteKinds(t *testing.T) {
	hosts, err := ParseHosts("10.0.0.1=172.16.5.4,2001:db8::1=2001:db8:ffff::9")
	if err != nil {
		t.Fatal(err)
	}
	r := Rewrite{Hosts: hosts}
	eth := &layers.Ethernet{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, EthernetType: layers.EthernetTypeIPv4}
	ip4 := &layers.IPv4{Version: 4, TTL: 64, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 1}, DstIP: net.IP{10, 0, 0, 2}}
	eth6 := *eth
	eth6.EthernetType = layers.EthernetTypeIPv6
	ip6 := &layers.IPv6{Version: 6, HopLimit: 64, NextHeader: layers.IPProtocolUDP, SrcIP: net.ParseIP("2001:db8::2"), DstIP: net.ParseIP("2001:db8::1")}
	udp := &layers.UDP{SrcPort: 1, DstPort: 2}
	_ = udp.SetNetworkLayerForChecksum(ip4)
	udp6 := &layers.UDP{SrcPort: 1, DstPort: 2}
	_ = udp6.SetNetworkLayerForChecksum(ip6)
	payload := gopacket.Payload("twopath")
	tag := *eth
	tag.EthernetType = layers.EthernetTypeDot1Q
	vlan := &layers.Dot1Q{VLANIdentifier: 5, Type: layers.EthernetTypeIPv4}
	for name, f := range map[string][]byte{
		"UDP over IPv4": build(t, eth, ip4, udp, payload), "UDP over IPv6": build(t, &eth6, ip6, udp6, payload), "tagged": build(t, &tag, vlan, ip4, udp, payload),
	} {
		before := bytes.Clone(f)
		if n := r.Apply([][]byte{f}); n != 1 || !sumsOK(t, f) || bytes.Equal(f[14:], before[14:]) {
			t.Errorf("%s: %d rewritten\n% x", name, n, f)
		}
	}

	none := build(t, eth, ip4, udp, payload)
	none[40], none[41] = 0, 0
	r.Apply([][]byte{none})
	if none[40] != 0 || none[41] != 0 {
		t.Error("a datagram without a checksum got one")
	}
	bad := build(t, eth, ip4, udp, payload)
	bad[40] ^= 0x11
	if r.Apply([][]byte{bad}); sumsOK(t, bad) {
		t.Error("a wrong checksum was made right")
	}
	later := build(t, eth, ip4, udp, payload)
	later[21] = 1 // a fragment that begins in the middle of the payload
	tail := bytes.Clone(later[34:])
	if r.Apply([][]byte{later}); !bytes.Equal(later[34:], tail) {
		t.Error("the payload of a later fragment was changed")
	}
	foreign := build(t, eth, &layers.IPv4{Version: 4, Protocol: layers.IPProtocolUDP, SrcIP: net.IP{10, 0, 0, 8}, DstIP: net.IP{10, 0, 0, 9}}, payload)
	want := bytes.Clone(foreign[12:])
	if n := r.Apply([][]byte{foreign}); n != 0 || !bytes.Equal(foreign[12:], want) {
		t.Error("a frame of other hosts was rewritten")
	}
}

func TestParseHosts(t *testing.T) {
	for _, s := range []string{"10.0.0.1", "10.0.0.1=", "=10.0.0.1", "10.0.0.1=::1", "10.0.0.1=1.1.1.1,10.0.0.1=2.2.2.2", "fe80::1%eth0=::1", "a=b"} {
		if _, err := ParseHosts(s); err == nil {
			t.Errorf("%q: accepted", s)
		}
	}
	if h, err := ParseHosts(""); err != nil || h != nil {
		t.Errorf("nothing: %v, %v", h, err)
	}
}

// No frame makes rewriting run out of bounds, and doing it back gives what was there.
func FuzzRewrite(f *testing.F) {
	there, _ := ParseHosts("0.0.0.0=1.2.3.4,::=2001:db8::1")
	f.Add(frameOf(60, 0x45))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) < 14 {
			return
		}
		Rewrite{Run: 1, Hosts: there}.Apply([][]byte{b})
	})
}
