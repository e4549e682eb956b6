// SPDX-License-Identifier: Apache-2.0

package fragments

import (
	"net"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"

	"twopath/internal/netstack"
	"twopath/internal/packet"
)

func flow(v6 bool) packet.Flow {
	f := packet.Flow{SrcMAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 1},
		Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1"), SrcPort: 10000, DstPort: 9000, Flows: 3}
	if v6 {
		f.Src, f.Dst = netip.MustParseAddr("2001:2::2"), netip.MustParseAddr("2001:2::1")
	}
	return f
}

// TestPatternsAsReassemblySeesThem hands every pattern's frames to a reassembler, and counts what it says.
func TestPatternsAsReassemblySeesThem(t *testing.T) {
	const n = 60
	for _, v6 := range []bool{false, true} {
		for _, payload := range []int{1500, 2888, 2952, 4000, 9000, 65487} {
			for _, p := range Patterns() {
				l, err := New(Options{Flow: flow(v6), Run: 77, Pattern: p, Payload: payload, MTU: 1500, Count: n, PPS: 1000, Seed: 1})
				if err != nil {
					t.Fatal(err)
				}
				if len(l.Due) != len(l.Frames) || !slices.IsSorted(l.Due) || l.Due[len(l.Due)-1] != (n-1)*time.Millisecond {
					t.Fatalf("%s: schedule", p)
				}
				r, err := netstack.New(netstack.Options{Timeout: time.Second, Bytes: 16 << 20, Distance: 64})
				if err != nil {
					t.Fatal(err)
				}
				into := make([]byte, netstack.MaxPayload)
				v := packet.Verifier{DstPort: 9000, Checksum: true}
				seen := map[uint64]bool{}
				for _, f := range l.Frames {
					if len(f) < 60 || len(f) > 1514 {
						t.Fatalf("%s: a frame of %d B", p, len(f))
					}
					d, what := r.Add(0, f[packet.EthernetLen:], into)
					if what != netstack.Whole {
						continue
					}
					b, verdict := v.Segment(d.Addresses, d.Payload)
					if verdict != packet.OK || len(b) != payload || !packet.PatternOK(b) {
						t.Fatalf("%s: verdict %d, %d B", p, verdict, len(b))
					}
					seen[packet.ParseStamp(b).Number] = true
				}
				r.Expire(int64(time.Second))
				c, sent := r.Counters(), l.Sent(uint64(len(l.Frames)))
				N := uint64(l.Fragments)
				each := map[Pattern]uint64{InOrder: N, Shuffled: N, Duplicated: 2*N - 1, Overlapping: N, Missing: N - 1}
				frames := uint64(0)
				for i := range uint64(n) {
					frames += each[p.of(i)]
				}
				want := Sent{Frames: frames, Datagrams: n}
				switch p {
				case Missing:
					want.Missing = n
				case Overlapping:
					want.Overlapping = n
				case Mix:
					want.Missing, want.Overlapping = n/5, n/5
				}
				if sent != want || uint64(len(seen)) != n-sent.Undeliverable() || c.Datagrams != uint64(len(seen)) || c.Timeout != sent.Missing ||
					c.Overlap != sent.Overlapping || c.GivenUp() != sent.Undeliverable() || c.Fragments != frames || c.BadHeader != 0 {
					t.Errorf("v6=%v %d B %s: sent %+v, want %+v, %d delivered; %+v", v6, payload, p, sent, want, len(seen), c)
				}
			}
		}
	}
}

// TestFramesAsOthersReadThem has gopacket, which shares nothing with this package, put datagrams together.
func TestFramesAsOthersReadThem(t *testing.T) {
	l, err := New(Options{Flow: flow(false), Run: 7, Pattern: InOrder, Payload: 3000, MTU: 576, Count: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var whole []byte
	for i, f := range l.Frames {
		p := gopacket.NewPacket(f, layers.LayerTypeEthernet, gopacket.Default)
		ip, ok := p.Layer(layers.LayerTypeIPv4).(*layers.IPv4)
		if !ok || int(ip.FragOffset)*8 != len(whole) || (ip.Flags&layers.IPv4MoreFragments != 0) != (i < len(l.Frames)-1) || ip.Id != 7 || ip.Length > 576 {
			t.Fatalf("frame %d: %v", i, p)
		}
		whole = append(whole, ip.Payload...)
	}
	u := layers.UDP{}
	if err := u.DecodeFromBytes(whole, gopacket.NilDecodeFeedback); err != nil || u.DstPort != 9000 || len(u.Payload) != 3000 {
		t.Errorf("%v: %v, %d B", err, u, len(u.Payload))
	}
}

func TestPartOfAList(t *testing.T) {
	l, err := New(Options{Flow: flow(false), Pattern: Mix, Payload: 4000, MTU: 1500, Count: 10, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if l.Due != nil {
		t.Error("a flood has a schedule")
	}
	// in order 3, shuffled 3, duplicated 5, overlapping 3, missing 2
	for frames, want := range map[uint64]Sent{0: {}, 1: {1, 1, 0, 0}, 4: {4, 2, 0, 0}, 12: {12, 4, 0, 1}, 15: {15, 5, 1, 1}, 1000: {32, 10, 2, 2}} {
		if got := l.Sent(frames); got != want {
			t.Errorf("%d frames: %+v, want %+v", frames, got, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	good := Options{Flow: flow(false), Pattern: Mix, Payload: 4000, MTU: 1500, Count: 10}
	for name, change := range map[string]func(*Options){
		"pattern":        func(o *Options) { o.Pattern = "reversed" },
		"none":           func(o *Options) { o.Count = 0 },
		"one packet":     func(o *Options) { o.Payload = 1472 },
		"too long":       func(o *Options) { o.Payload = 65508 },
		"too long v6":    func(o *Options) { o.Flow = flow(true); o.Payload = 65528 },
		"no stamp":       func(o *Options) { o.Payload = 17 },
		"MTU":            func(o *Options) { o.MTU = 30 },
		"ids":            func(o *Options) { o.Count = MaxIDs + 1 },
		"memory":         func(o *Options) { o.Count = 20000; o.Payload = 8000 },
		"negative speed": func(o *Options) { o.PPS = -1 },
	} {
		o := good
		change(&o)
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := New(good); err != nil {
		t.Error(err)
	}
}
