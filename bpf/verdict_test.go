// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"maps"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

type verdictCase struct {
	name   string
	frame  testFrame
	change func([]byte) []byte
	match  func(*FlowMatch)
	reason string // "" = the run's
}

func at(off int, v ...byte) func([]byte) []byte {
	return func(b []byte) []byte { copy(b[off:], v); return b }
}

func cut(n int) func([]byte) []byte { return func(b []byte) []byte { return b[:n] } }

func insert(off int, v ...byte) func([]byte) []byte {
	return func(b []byte) []byte { return append(append(append([]byte(nil), b[:off]...), v...), b[off:]...) }
}

// verdictCases hold for redirect, drop and sink alike.
func verdictCases() []verdictCase {
	f4, f6 := frame4(), frame6()
	with := func(f testFrame, change func(*testFrame)) testFrame { change(&f); return f }
	arp := make([]byte, 46)
	copy(arp, []byte{0, 1, 8, 0, 6, 4, 0, 1})
	return []verdictCase{
		{name: "v4 smallest", frame: f4},
		{name: "v6 smallest", frame: f6},
		{name: "v4 1518", frame: with(f4, func(f *testFrame) { f.payload = 1472 })},
		{name: "v6 1518", frame: with(f6, func(f *testFrame) { f.payload = 1452 })},
		{name: "last source port", frame: with(f4, func(f *testFrame) { f.sport = 10015 })},
		{name: "padded", frame: f4, change: insert(60, 0, 0, 0, 0)},
		{name: "other MAC, not looked at", frame: f4, change: at(5, 9), match: func(m *FlowMatch) { m.DstMAC = nil }},
		{name: "other source, not looked at", frame: f4, change: at(26, 10), match: func(m *FlowMatch) { m.Src = netip.Addr{} }},
		{name: "other v6 source, not looked at", frame: f6, change: at(37, 9), match: func(m *FlowMatch) { m.Src = netip.Addr{} }},
		{name: "any destination of the family", frame: f6, change: at(53, 9), match: func(m *FlowMatch) { m.Dst = netip.Addr{} }},
		{name: "any source port", frame: with(f4, func(f *testFrame) { f.sport = 1 }), match: func(m *FlowMatch) { m.SrcPorts = 0 }},
		{name: "TTL 1 is still ours", frame: with(f4, func(f *testFrame) { f.ttl = 1 })},

		{name: "only an Ethernet header", frame: f4, change: cut(14), reason: "too_short"},
		{name: "v4 header cut", frame: f4, change: cut(33), reason: "too_short"},
		{name: "v6 header cut", frame: f6, change: cut(53), reason: "too_short"},
		{name: "v4 UDP header cut", frame: f4, change: cut(41), reason: "too_short"},
		{name: "v6 UDP header cut", frame: f6, change: cut(61), reason: "too_short"},
		{name: "stamp cut", frame: f4, change: cut(59), reason: "too_short"},
		{name: "802.1Q", frame: f4, change: insert(12, 0x81, 0, 0, 1), reason: "vlan"},
		{name: "802.1ad", frame: f6, change: insert(12, 0x88, 0xa8, 0, 1), reason: "vlan"},
		{name: "ARP", frame: f4, change: func(b []byte) []byte { return append(append(b[:12:12], 8, 6), arp...) }, reason: "arp"},
		{name: "LLDP", frame: f4, change: at(12, 0x88, 0xcc), reason: "foreign_l2"},
		{name: "802.3 length", frame: f4, change: at(12, 0, 46), reason: "foreign_l2"},
		{name: "other MAC", frame: f4, change: at(5, 9), reason: "foreign_mac"},
		{name: "broadcast MAC", frame: f4, change: at(0, 255, 255, 255, 255, 255, 255), reason: "foreign_mac"},
		{name: "v6 in a v4 run", frame: f6, match: func(m *FlowMatch) { *m = frame4().match() }, reason: "foreign_ip"},
		{name: "v4 in a v6 run", frame: f4, match: func(m *FlowMatch) { *m = frame6().match() }, reason: "foreign_ip"},
		{name: "v4 ethertype, version 6", frame: f4, change: at(14, 0x65), reason: "foreign_ip"},
		{name: "v6 ethertype, version 4", frame: f6, change: at(14, 0x45), reason: "foreign_ip"},
		{name: "v4 header length 4", frame: f4, change: at(14, 0x44), reason: "foreign_ip"},
		{name: "v4 other source", frame: f4, change: at(29, 3), reason: "foreign_ip"},
		{name: "v4 other destination", frame: f4, change: at(33, 3), reason: "foreign_ip"},
		{name: "v6 other source", frame: f6, change: at(37, 3), reason: "foreign_ip"},
		{name: "v6 other destination, first word", frame: f6, change: at(38, 3), reason: "foreign_ip"},
		{name: "v4 options", frame: f4, change: func(b []byte) []byte { return at(14, 0x46)(insert(34, 1, 1, 1, 1)(b)) }, reason: "ip_options"},
		{name: "v6 hop-by-hop", frame: f6, change: at(20, 0), reason: "ip_options"},
		{name: "v6 routing", frame: f6, change: at(20, 43), reason: "ip_options"},
		{name: "v6 destination options", frame: f6, change: at(20, 60), reason: "ip_options"},
		{name: "v4 first fragment", frame: f4, change: at(20, 0x20, 0), reason: "fragment"},
		{name: "v4 last fragment", frame: f4, change: at(20, 0, 5), reason: "fragment"},
		{name: "v6 fragment", frame: f6, change: at(20, 44), reason: "fragment"},
		{name: "v4 TCP", frame: f4, change: at(23, 6), reason: "foreign_l4"},
		{name: "v4 ICMP", frame: f4, change: at(23, 1), reason: "foreign_l4"},
		{name: "v6 neighbour discovery", frame: f6, change: at(20, 58), reason: "foreign_l4"},
		{name: "other destination port", frame: with(f4, func(f *testFrame) { f.dport = 9001 }), reason: "foreign_port"},
		{name: "source port below", frame: with(f4, func(f *testFrame) { f.sport = 9999 }), reason: "foreign_port"},
		{name: "source port above", frame: with(f6, func(f *testFrame) { f.sport = 10016 }), reason: "foreign_port"},
		{name: "other run", frame: with(f4, func(f *testFrame) { f.run++ }), reason: "foreign_run"},
		{name: "v6 other run", frame: with(f6, func(f *testFrame) { f.run ^= 1 << 31 }), reason: "foreign_run"},
	}
}

func (c verdictCase) parts() (FlowMatch, []byte) {
	m, b := c.frame.match(), c.frame.build()
	if c.match != nil {
		c.match(&m)
	}
	if c.change != nil {
		b = c.change(b)
	}
	return m, b
}

// program is what redirect, drop and sink have in common.
type program interface {
	Program() *ebpf.Program
	Counters() (map[string]uint64, []uint64, error)
	Close() error
}

func runOnce(t *testing.T, p program, frame []byte) uint32 {
	t.Helper()
	got, err := p.Program().Run(&ebpf.RunOptions{Data: frame, Repeat: 1})
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	return got
}

// wantCounted checks that exactly the given counters moved.
func wantCounted(t *testing.T, p program, want map[string]uint64, onQueue0 uint64) {
	t.Helper()
	got, queues, err := p.Counters()
	if err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(got, func(_ string, n uint64) bool { return n == 0 })
	if !maps.Equal(got, want) {
		t.Errorf("counters %v, want %v", got, want)
	}
	if queues[0] != onQueue0 {
		t.Errorf("%d frames of the run on queue 0, want %d", queues[0], onQueue0)
	}
}

func TestVerdicts(t *testing.T) {
	nstest.Root(t)
	xsk := xskSocket(t)
	redirect := func(o RedirectOptions, socket bool) func(*testing.T, FlowMatch) program {
		return func(t *testing.T, m FlowMatch) program {
			o := o
			o.Match = m
			r, err := NewRedirect(o)
			if err != nil {
				t.Fatal(err)
			}
			if socket {
				if err := r.SetSocket(0, xsk); err != nil {
					t.Fatal(err)
				}
			}
			return r
		}
	}
	programs := []struct {
		name    string
		make    func(*testing.T, FlowMatch) program
		verdict uint32
		reason  string
	}{
		{"redirect", redirect(RedirectOptions{}, true), xdpRedirect, "redirected"},
		{"redirect frags", redirect(RedirectOptions{Frags: true}, true), xdpRedirect, "redirected"},
		{"redirect, no socket", redirect(RedirectOptions{}, false), xdpDrop, "no_socket"},
		{"redirect, no socket, pass", redirect(RedirectOptions{NoSocket: NoSocketPass}, false), xdpPass, "no_socket"},
		{"drop", func(t *testing.T, m FlowMatch) program {
			d, err := NewDrop(DropOptions{Match: m})
			if err != nil {
				t.Fatal(err)
			}
			return d
		}, xdpDrop, "dropped"},
		{"sink", func(t *testing.T, m FlowMatch) program {
			s, err := NewSink(SinkOptions{Match: m})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}, xdpDrop, "counted"},
	}
	for _, p := range programs {
		t.Run(p.name, func(t *testing.T) {
			for _, c := range verdictCases() {
				t.Run(c.name, func(t *testing.T) {
					m, frame := c.parts()
					prog := p.make(t, m)
					defer prog.Close()
					verdict, reason, queue := p.verdict, p.reason, uint64(1)
					if c.reason != "" {
						verdict, reason, queue = xdpPass, c.reason, 0
					}
					if got := runOnce(t, prog, frame); got != verdict {
						t.Errorf("verdict %d, want %d", got, verdict)
					}
					wantCounted(t, prog, map[string]uint64{reason: 1}, queue)
				})
			}
		})
	}
}

func TestAnyRunTakesShortDatagrams(t *testing.T) {
	nstest.Root(t)
	m := frame4().match()
	m.AnyRun = true
	d, err := NewDrop(DropOptions{Match: m})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f := frame4()
	f.run = 1
	if got := runOnce(t, d, f.build()[:42]); got != xdpDrop {
		t.Errorf("verdict %d for a datagram without stamp, want drop", got)
	}
	wantCounted(t, d, map[string]uint64{"dropped": 1}, 1)
}

// The verdict depends on the queue: a socket on one, none on the other, and queues beyond the map.
func TestRedirectByQueue(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 4})
	r, err := NewRedirect(RedirectOptions{Match: frame4().match(), Queues: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.SetSocket(1, xskSocket(t)); err != nil {
		t.Fatal(err)
	}
	if err := r.SetSocket(2, 0); err == nil {
		t.Error("a socket for queue 2 of 2 was accepted")
	}
	type xdpMD struct{ Data, DataEnd, DataMeta, IfIndex, Queue, Egress uint32 }
	frame := frame4().build()
	p.SUT.Do(t, func() {
		for queue, want := range []uint32{xdpDrop, xdpRedirect, xdpDrop, xdpDrop} {
			got, err := r.Program().Run(&ebpf.RunOptions{Data: frame, Repeat: 1,
				Context: xdpMD{DataEnd: uint32(len(frame)), IfIndex: uint32(p.SUT.Index), Queue: uint32(queue)}})
			if err != nil {
				t.Errorf("queue %d: %v", queue, err)
			} else if got != want {
				t.Errorf("queue %d: verdict %d, want %d", queue, got, want)
			}
		}
	})
	counters, queues, err := r.Counters()
	if err != nil {
		t.Fatal(err)
	}
	if counters["redirected"] != 1 || counters["no_socket"] != 3 {
		t.Errorf("counters %v, want 1 redirected and 3 no_socket", counters)
	}
	for q, n := range queues {
		if want := uint64(flag(q < 4)); n != want {
			t.Errorf("queue %d counted %d, want %d", q, n, want)
		}
	}
	if err := r.ClearSocket(1); err != nil {
		t.Error(err)
	}
	if err := r.ClearSocket(1); err != nil {
		t.Errorf("clearing an empty slot: %v", err)
	}
}

// A frame of several buffers is judged by its headers like any other, and only a program that asked for such frames can be attached for
// them.
func TestVerdictOnFrags(t *testing.T) {
	const jumbo = 9000
	p := nstest.NewPair(t, nstest.Options{MTU: jumbo})
	f := frame4()
	f.payload = 6000
	frame := f.build()
	sink := newTestSink(t, f, SinkOptions{Frags: true})
	if got := runOnce(t, sink, frame); got != xdpDrop {
		t.Errorf("sink: verdict %d", got)
	}
	if st := sinkStats(t, sink); st.Unique != 1 || st.LengthMax != uint64(len(frame)) {
		t.Errorf("sink: %+v", st)
	}
	for _, frags := range []bool{true, false} {
		r, err := NewRedirect(RedirectOptions{Match: f.match(), Frags: frags})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if err := r.SetSocket(0, xskSocket(t)); err != nil {
			t.Fatal(err)
		}
		if got := runOnce(t, r, frame); got != xdpRedirect {
			t.Errorf("redirect: verdict %d", got)
		}
		p.SUT.Do(t, func() {
			l, err := Attach(r.Program(), p.SUT.Index, Native)
			var mtu *MTUError
			switch {
			case frags && err != nil:
				t.Errorf("redirect with frags at MTU %d: %v", jumbo, err)
			case !frags && !errors.As(err, &mtu):
				t.Errorf("redirect without frags at MTU %d: %v, want an MTU error", jumbo, err)
			}
			if err == nil {
				l.Close()
			}
		})
	}
}

func TestPass(t *testing.T) {
	nstest.Root(t)
	for _, frags := range []bool{false, true} {
		p, err := NewPass(frags)
		if err != nil {
			t.Fatal(err)
		}
		got, err := p.Program().Run(&ebpf.RunOptions{Data: make([]byte, 60), Repeat: 1})
		if err != nil || got != xdpPass {
			t.Errorf("verdict %d, %v", got, err)
		}
		for range 2 {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// xskSocket returns an unbound AF_XDP socket, which is enough for a slot of the map.
func xskSocket(t *testing.T) int {
	t.Helper()
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatalf("AF_XDP socket: %v", err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

func TestMatchRefusals(t *testing.T) {
	ok := frame4().match()
	for name, change := range map[string]func(*FlowMatch){
		"no family":         func(m *FlowMatch) { m.Src, m.Dst = netip.Addr{}, netip.Addr{} },
		"mixed families":    func(m *FlowMatch) { m.Src = netip.MustParseAddr("::1") },
		"family 5":          func(m *FlowMatch) { m.Src, m.Dst, m.Family = netip.Addr{}, netip.Addr{}, 5 },
		"family disagrees":  func(m *FlowMatch) { m.Family = 6 },
		"no port":           func(m *FlowMatch) { m.DstPort = 0 },
		"source ports wrap": func(m *FlowMatch) { m.SrcPort, m.SrcPorts = 65535, 2 },
		"negative ports":    func(m *FlowMatch) { m.SrcPorts = -1 },
		"short MAC":         func(m *FlowMatch) { m.DstMAC = net.HardwareAddr{1} },
	} {
		m := ok
		change(&m)
		if _, err := m.flowMatch(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	f, err := ok.flowMatch()
	if err != nil {
		t.Fatal(err)
	}
	var b [4]byte
	binary.NativeEndian.PutUint32(b[:], f.Dst[0])
	if b != [4]byte{198, 18, 0, 1} || f.Family != 4 || f.AnyDst != 0 || f.AnyMac != 0 {
		t.Errorf("match %+v", f)
	}
}

// TestFragments: with Fragments, redirect takes the fragments between the run's addresses, and nothing else that it would not.
func TestFragments(t *testing.T) {
	nstest.Root(t)
	xsk := xskSocket(t)
	cases := append(verdictCases(),
		verdictCase{name: "v4 fragment of another source", frame: frame4(), change: func(b []byte) []byte { return at(20, 0x20, 0)(at(29, 3)(b)) }, reason: "foreign_ip"},
		verdictCase{name: "v6 fragment to another destination", frame: frame6(), change: func(b []byte) []byte { return at(20, 44)(at(53, 3)(b)) }, reason: "foreign_ip"},
		verdictCase{name: "v4 fragment with options", frame: frame4(), change: func(b []byte) []byte {
			return at(14, 0x46)(at(20, 0x20, 0)(insert(34, 1, 1, 1, 1)(b)))
		}, reason: "ip_options"},
		verdictCase{name: "v4 fragment to another MAC", frame: frame4(), change: func(b []byte) []byte { return at(20, 0x20, 0)(at(5, 9)(b)) }, reason: "foreign_mac"},
		verdictCase{name: "v4 fragment of TCP", frame: frame4(), change: func(b []byte) []byte { return at(20, 0x20, 0)(at(23, 6)(b)) }, reason: "fragment"},
		verdictCase{name: "v4 DF alone is no fragment", frame: frame4(), change: at(20, 0x40, 0)})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m, frame := c.parts()
			r, err := NewRedirect(RedirectOptions{Match: m, Fragments: true})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if err := r.SetSocket(0, xsk); err != nil {
				t.Fatal(err)
			}
			verdict, reason, queue := uint32(xdpRedirect), "redirected", uint64(1)
			if c.reason != "" && c.reason != "fragment" {
				verdict, reason, queue = xdpPass, c.reason, 0
			}
			if got := runOnce(t, r, frame); got != verdict {
				t.Errorf("verdict %d, want %d", got, verdict)
			}
			wantCounted(t, r, map[string]uint64{reason: 1}, queue)
		})
	}
}
