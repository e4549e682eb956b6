// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
)

func testFlow(v6 bool) Flow {
	f := Flow{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1},
		Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1"), SrcPort: 10000, DstPort: 9000, Flows: 1}
	if v6 {
		f.Src, f.Dst = netip.MustParseAddr("2001:2::2"), netip.MustParseAddr("2001:2::1")
	}
	return f
}

// naive is RFC 1071 as written, two bytes at a time.
func naive(b []byte) uint16 {
	var s uint32
	for i := 0; i+1 < len(b); i += 2 {
		s += uint32(b[i])<<8 | uint32(b[i+1])
		s = s>>16 + s&0xffff
	}
	if len(b)&1 == 1 {
		s += uint32(b[len(b)-1]) << 8
		s = s>>16 + s&0xffff
	}
	return uint16(s)
}

func sameSum(a, b uint16) bool { // 0 and 0xffff are both zero in ones' complement
	return a == b || a%0xffff == 0 && b%0xffff == 0
}

func TestSumAgainstNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 2048)
	for n := range b {
		for i := range b[:n] {
			b[i] = byte(r.Uint32())
			if n%3 == 0 {
				b[i] |= 0xf0 // many carries
			}
		}
		if got, want := Fold(Sum(b[:n], 0)), naive(b[:n]); !sameSum(got, want) {
			t.Fatalf("length %d: got %04x, want %04x", n, got, want)
		}
		k := n / 2 &^ 1
		if got := Fold(Sum(b[k:n], Sum(b[:k], 0))); !sameSum(got, naive(b[:n])) {
			t.Fatalf("length %d in two parts: got %04x", n, got)
		}
	}
}

func TestStampRoundTrip(t *testing.T) {
	for _, s := range []Stamp{{}, {Run: 0xdeadbeef, Stream: 255, Number: 1<<NumberBits - 1, Time: 1<<63 - 1}, {Run: 1, Stream: 2, Number: 3, Time: 4}} {
		b := make([]byte, StampLen)
		s.Put(b)
		if got := ParseStamp(b); got != s {
			t.Errorf("got %+v, want %+v", got, s)
		}
	}
}

// TestBuildAsOthersReadIt decodes our frames with gopacket, which knows nothing of this package, and has it compute the
// checksums again.
func TestBuildAsOthersReadIt(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		f := testFlow(v6)
		for size := f.MinSize(); size <= 1518; size++ {
			frame, err := f.Build(make([]byte, 2048), size, 7, Stamp{Run: uint32(size), Number: uint64(size) * 977, Time: int64(size)})
			if err != nil {
				t.Fatal(err)
			}
			p := gopacket.NewPacket(frame, layers.LayerTypeEthernet, gopacket.Default)
			u, ok := p.Layer(layers.LayerTypeUDP).(*layers.UDP)
			if !ok || p.ErrorLayer() != nil || u.SrcPort != 10007 || u.DstPort != 9000 || int(u.Length) != size-FCSLen-f.HeaderLen()+UDPLen {
				t.Fatalf("v6=%v size %d: %v", v6, size, p)
			}
			if err := u.SetNetworkLayerForChecksum(p.NetworkLayer()); err != nil {
				t.Fatal(err)
			}
			if errs, mism := p.VerifyChecksums(); errs != nil || len(mism) != 0 {
				t.Fatalf("v6=%v size %d: %v %v", v6, size, errs, mism)
			}
			payload, verdict := Verifier{DstPort: 9000, Checksum: true}.Frame(frame)
			if verdict != OK || len(payload) != size-FCSLen-f.HeaderLen() || !PatternOK(payload) {
				t.Fatalf("v6=%v size %d: verdict %d, %d B", v6, size, verdict, len(payload))
			}
		}
	}
}

// TestChecksumZeroIsSentAsOnes finds a stamp whose checksum computes to 0 and sees 0xffff on the wire (RFC 768).
func TestChecksumZeroIsSentAsOnes(t *testing.T) {
	f := testFlow(false)
	b := make([]byte, 64)
	for n := range uint64(1 << 17) {
		frame, _ := f.Build(b, 64, 0, Stamp{Number: n})
		c := UDP(frame[34:]).Checksum()
		if c == 0 {
			t.Fatalf("number %d: checksum 0 on the wire", n)
		}
		if c == 0xffff {
			if _, v := (Verifier{DstPort: 9000, Checksum: true}).Frame(frame); v != OK {
				t.Fatalf("number %d: 0xffff not accepted: %d", n, v)
			}
			return
		}
	}
	t.Fatal("no number in 2^17 gave 0xffff: the search is wrong")
}

func TestVerdicts(t *testing.T) {
	good := func(v6 bool) []byte {
		f := testFlow(v6)
		b, err := f.Build(make([]byte, 256), 128, 0, Stamp{Run: 1})
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	v := Verifier{DstPort: 9000, Checksum: true}
	for _, c := range []struct {
		name   string
		v6     bool
		change func(b []byte) []byte
		want   Verdict
	}{
		{"good", false, func(b []byte) []byte { return b }, OK},
		{"good v6", true, func(b []byte) []byte { return b }, OK},
		{"padded", false, func(b []byte) []byte { return append(b, 1, 2, 3) }, OK},
		{"no checksum is allowed in IPv4", false, func(b []byte) []byte { b[40], b[41] = 0, 0; return b }, OK},
		{"no checksum is not allowed in IPv6", true, func(b []byte) []byte { b[60], b[61] = 0, 0; return b }, CorruptUDP},
		{"udp checksum", false, func(b []byte) []byte { b[40] ^= 1; return b }, CorruptUDP},
		{"payload bit", false, func(b []byte) []byte { b[90] ^= 4; return b }, CorruptUDP},
		{"payload bit v6", true, func(b []byte) []byte { b[90] ^= 4; return b }, CorruptUDP},
		{"ip checksum", false, func(b []byte) []byte { b[24] ^= 1; return b }, CorruptIP},
		{"ttl without checksum", false, func(b []byte) []byte { b[22]--; return b }, CorruptIP},
		{"other port", false, func(b []byte) []byte { b[37]++; return b }, Foreign},
		{"other port v6", true, func(b []byte) []byte { b[57]++; return b }, Foreign},
		{"tcp", false, func(b []byte) []byte { b[23] = 6; return b }, Foreign},
		{"fragment", false, func(b []byte) []byte { b[20] = 0x20; return b }, Foreign},
		{"options", false, func(b []byte) []byte { b[14] = 0x46; return b }, Foreign},
		{"arp", false, func(b []byte) []byte { binary.BigEndian.PutUint16(b[12:], EtherTypeARP); return b }, Foreign},
		{"vlan", false, func(b []byte) []byte { binary.BigEndian.PutUint16(b[12:], EtherTypeVLAN); return b }, Foreign},
		{"cut", false, func(b []byte) []byte { return b[:100] }, Short},
		{"cut v6", true, func(b []byte) []byte { return b[:100] }, Short},
		{"cut in the v6 header", true, func(b []byte) []byte { return b[:50] }, Short},
		{"udp length too long", false, func(b []byte) []byte { b[38] = 0xff; return b }, Short},
		{"udp length too short", false, func(b []byte) []byte { b[38], b[39] = 0, 7; return b }, Short},
		{"runt", false, func(b []byte) []byte { return b[:20] }, Foreign},
		{"empty", false, func(b []byte) []byte { return nil }, Foreign},
	} {
		if _, got := v.Frame(c.change(good(c.v6))); got != c.want {
			t.Errorf("%s: verdict %d, want %d", c.name, got, c.want)
		}
	}
}

func TestBuildRefusals(t *testing.T) {
	f := testFlow(false)
	if _, err := f.Build(make([]byte, 100), 63, 0, Stamp{}); err == nil {
		t.Error("63 B built")
	}
	if _, err := f.Build(make([]byte, 59), 64, 0, Stamp{}); err == nil {
		t.Error("built beyond the buffer")
	}
	if m := testFlow(true).MinSize(); m != 84 {
		t.Errorf("smallest IPv6 frame %d B, want 84", m)
	}
}

func TestNoAllocations(t *testing.T) {
	f := testFlow(false)
	b := make([]byte, 2048)
	v := Verifier{DstPort: 9000, Checksum: true}
	if n := testing.AllocsPerRun(100, func() {
		frame, _ := f.Build(b, 64, 0, Stamp{Run: 1})
		p, _ := v.Frame(frame)
		_ = ParseStamp(p)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzFrame(f *testing.F) {
	for _, v6 := range []bool{false, true} {
		fl := testFlow(v6)
		b, _ := fl.Build(make([]byte, 256), 128, 0, Stamp{Run: 1})
		f.Add(bytes.Clone(b))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, sum := range []bool{false, true} {
			p, v := Verifier{DstPort: 9000, Checksum: sum}.Frame(b)
			if (v == OK) != (p != nil) || v == 0 {
				t.Fatalf("verdict %d with %d B", v, len(p))
			}
			if len(p) > len(b) {
				t.Fatal("payload longer than the frame")
			}
		}
	})
}

func BenchmarkVerify64(b *testing.B) {
	f := testFlow(false)
	frame, _ := f.Build(make([]byte, 256), 64, 0, Stamp{Run: 1})
	v := Verifier{DstPort: 9000, Checksum: true}
	var bad int
	for b.Loop() {
		p, ok := v.Frame(frame)
		if ok != OK || ParseStamp(p).Run != 1 {
			bad++
		}
	}
	if bad != 0 {
		b.Fatal(bad)
	}
}

// TestSegment: a datagram without its IP headers is judged as the whole frame is.
func TestSegment(t *testing.T) {
	v := Verifier{DstPort: 9000, Checksum: true}
	for _, v6 := range []bool{false, true} {
		f := testFlow(v6)
		frame, err := f.Build(make([]byte, 9000), 4000, 0, Stamp{Run: 1})
		if err != nil {
			t.Fatal(err)
		}
		addresses, at := frame[26:34], 34
		if v6 {
			addresses, at = frame[22:54], 54
		}
		for name, c := range map[string]struct {
			change func(u []byte) []byte
			want   Verdict
		}{
			"good":        {func(u []byte) []byte { return u }, OK},
			"padded":      {func(u []byte) []byte { return append(u, 0, 0) }, OK},
			"header cut":  {func(u []byte) []byte { return u[:7] }, Short},
			"cut":         {func(u []byte) []byte { return u[:len(u)-1] }, Short},
			"other port":  {func(u []byte) []byte { u[3]++; return u }, Foreign},
			"damaged":     {func(u []byte) []byte { u[2000] ^= 4; return u }, CorruptUDP},
			"no checksum": {func(u []byte) []byte { u[6], u[7] = 0, 0; return u }, map[bool]Verdict{false: OK, true: CorruptUDP}[v6]},
			"bad length":  {func(u []byte) []byte { u[4], u[5] = 0, 7; return u }, Short},
		} {
			got, verdict := v.Segment(addresses, c.change(append([]byte(nil), frame[at:]...)))
			if verdict != c.want || verdict == OK && !PatternOK(got) {
				t.Errorf("v6=%v %s: verdict %d, want %d", v6, name, verdict, c.want)
			}
		}
	}
}
