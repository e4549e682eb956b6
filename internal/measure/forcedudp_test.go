// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"net"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/measure"
	"twopath/internal/nstest"
	"twopath/internal/packet"
	"twopath/xsk"
)

// An skb made of a live frame owns its whole page: 8 MiB of buffer hold 1,978 datagrams of 18 B, so these take more.
func TestForcedNone(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<20, false)
	got := r.run(r.prepare(r.options(2000)), func() { r.readUDP(fd, true) })
	r.want(got, compare.Exact)
	if r.in.Unique != 2000 || len(got.Blind) != 0 {
		t.Errorf("unique %d, blind %v", r.in.Unique, got.Blind)
	}
}

func TestForcedNoPort(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	r.want(r.run(r.prepare(r.options(1500)), func() {}), compare.Exact, "udp.no_port", 1500)
}

func TestForcedRcvbuf(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<10, false)
	got := r.run(r.prepare(r.options(3000)), func() { r.readUDP(fd, true) })
	if r.in.Unique == 0 || r.in.Unique == 3000 {
		t.Errorf("unique %d: the buffer was meant to hold a part", r.in.Unique)
	}
	r.want(got, compare.Exact, "udp.rcvbuf_full", int(3000-r.in.Unique))
}

func TestForcedQueuedUnread(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<20, false)
	got := r.run(r.prepare(r.options(700)), func() { r.readUDP(fd, false) })
	// The kernel counts InDatagrams when the test looks what is queued, which a reader that stopped would not do.
	delete(r.in.To, "udp.InDatagrams")
	r.want(got, compare.Exact, "udp.queued_unread", 700)
}

// Small frames are checked at protocol entry, long ones when read: the witness differs, the row must not.
func TestForcedBadChecksum(t *testing.T) {
	for _, size := range []int{64, 200} {
		r := newTrial(t, nstest.Options{}, measure.ArmUDP)
		fd := r.udp(64<<20, false)
		o := r.options(1000)
		o.Sizes, o.Faults = []int{size}, bpf.Faults{BadUDPChecksum: 4}
		r.want(r.run(r.prepare(o), func() { r.readUDP(fd, true) }), compare.Exact, "udp.csum_bad", 250)
		if drops := r.to["sock.drops"]; (size == 64) != (drops == 0) {
			t.Errorf("size %d: socket drops %d", size, drops)
		}
	}
}

func TestForcedBadChecksumAndRcvbuf(t *testing.T) {
	for _, size := range []int{64, 200} {
		r := newTrial(t, nstest.Options{}, measure.ArmUDP)
		fd := r.udp(128<<10, false)
		o := r.options(1000)
		o.Sizes, o.Faults = []int{size}, bpf.Faults{BadUDPChecksum: 4}
		got := r.run(r.prepare(o), func() { r.readUDP(fd, true) })
		csum := int(r.in.To["udp.InCsumErrors"])
		if csum == 0 || csum == 250 && size == 200 {
			t.Errorf("size %d: %d of 250 bad checksums seen: long ones that find no room must hide as RcvbufErrors", size, csum)
		}
		r.want(got, compare.Exact, "udp.csum_bad", csum, "udp.rcvbuf_full", int(1000-r.in.Unique)-csum)
	}
}

func TestForcedDuplicatesAndSwaps(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<20, false)
	o := r.options(2100)
	o.Faults = bpf.Faults{Duplicate: 20, Swap: 10}
	got := r.run(r.prepare(o), func() { r.readUDP(fd, true) })
	r.want(got, compare.Exact)
	tally := r.streams.Tally()
	if r.in.Injected == 0 || tally.Duplicate != r.in.Injected || tally.Unique != r.in.Sent || tally.Reordered == 0 {
		t.Errorf("injected %d, tally %+v, sent %d", r.in.Injected, tally, r.in.Sent)
	}
}

func TestForcedWrongMAC(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<20, false)
	o := r.options(900)
	o.Faults = bpf.Faults{WrongMAC: 3}
	r.want(r.run(r.prepare(o), func() { r.readUDP(fd, true) }), compare.Exact, "link.other_host", 300)
}

func TestForcedWrongAddress(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	o := r.options(400)
	o.Dst = netip.MustParseAddr("198.18.0.77")
	r.want(r.run(r.prepare(o), func() {}), compare.Exact, "ip.addr_error", 400)
}

func TestForcedNetfilter(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<20, false)
	var counter func() uint64
	r.p.SUT.Do(t, func() { counter = dropRule(t, r.p.SUT) })
	got := r.run(r.prepare(r.options(600)), func() {
		r.readUDP(fd, true)
		r.to["nft.input"] = counter()
	})
	r.want(got, compare.Exact, "nf.drop", 600)
}

// dropRule drops UDP to the test's port on the input hook and returns how to read the rule's counter.
func dropRule(t *testing.T, e *nstest.End) func() uint64 {
	c, err := nftables.New(nftables.AsLasting(), nftables.WithNetNSFd(int(e.NS)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.CloseLasting() })
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "twopath"})
	chain := c.AddChain(&nftables.Chain{Name: "in", Table: table, Type: nftables.ChainTypeFilter,
		Hooknum: nftables.ChainHookInput, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{
		&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{unix.IPPROTO_UDP}},
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: []byte{testPort >> 8, testPort & 255}},
		&expr.Counter{}, &expr.Verdict{Kind: expr.VerdictDrop}}})
	if err := c.Flush(); err != nil {
		t.Fatal(err)
	}
	return func() uint64 {
		rules, err := c.GetRules(table, chain)
		if err != nil || len(rules) != 1 {
			t.Fatalf("read rules: %d, %v", len(rules), err)
		}
		for _, x := range rules[0].Exprs {
			if k, ok := x.(*expr.Counter); ok {
				return k.Packets
			}
		}
		t.Fatal("the rule has no counter")
		return 0
	}
}

// A device without NAPI swallows live frames before any counter moves.
func TestForcedNoNAPI(t *testing.T) {
	r := newTrial(t, nstest.Options{NoGRO: true}, measure.ArmUDP)
	r.mayFail = "generator's frames"
	fd := r.udp(64<<20, false)
	r.want(r.run(r.prepare(r.options(500)), func() { r.readUDP(fd, true) }), compare.Exact, "gen.not_sent", 500)
}

// A flood: whatever is lost where, received + witnesses = sent to the packet.
func TestForcedFlood(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(256<<10, false)
	o := r.options(200_000)
	o.Rate = 0
	got := r.run(r.prepare(o), func() { r.readUDP(fd, true) })
	ring := int(r.in.From["ethtool.tx_queue_0_xdp_xmit_errors"])
	r.want(got, compare.Exact, "veth.ring_full", ring, "udp.rcvbuf_full", int(r.to["sock.drops"]))
}

// With UDP_GRO a drop stands for up to 64 packets.
func TestForcedGRO(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDPGRO)
	fd := r.udp(64<<10, true)
	o := r.options(20_000)
	o.Rate = 0
	got := r.run(r.prepare(o), func() { r.readUDP(fd, true) })
	ring := r.in.From["ethtool.tx_queue_0_xdp_xmit_errors"]
	if drops := r.to["sock.drops"]; drops == 0 || drops >= got.Lost-ring {
		t.Errorf("%d socket drops for %d lost packets: nothing was merged", drops, got.Lost-ring)
	}
	if got.Unexplained != 0 || got.OwnExcess != 0 || len(got.Rows) == 0 {
		t.Errorf("%+v", got)
	}
	if last := got.Rows[len(got.Rows)-1]; last.At != "udp.rcvbuf_full" || last.Grade != compare.Bounded || last.Packets != got.Lost-ring {
		t.Errorf("last row %+v, lost %d, ring %d", last, got.Lost, ring)
	}
}

// Strangers in the namespace move shared counters and must not take the socket's loss.
func TestForcedForeignTraffic(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmUDP)
	fd := r.udp(64<<10, false)
	generate := r.prepare(r.options(3000))
	got := r.run(func() (uint64, uint64) {
		r.p.Peer.Do(t, func() {
			c, err := net.ListenUDP("udp4", nil)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range 5000 {
				if _, err := c.WriteToUDPAddrPort([]byte("stranger"), netip.AddrPortFrom(r.p.SUT.IP4, 9999)); err != nil {
					t.Fatal(err)
				}
			}
		})
		return generate()
	}, func() { r.readUDP(fd, true) })
	if len(got.Rows) != 1 || got.Rows[0].At != "udp.rcvbuf_full" || got.Rows[0].Packets != got.Lost || got.Rows[0].Grade != compare.Exact ||
		got.Lost != 3000-r.in.Unique || got.OwnExcess != 0 || got.SharedExcess < 5000 {
		t.Errorf("%+v", got)
	}
}

// The sender of these is an AF_PACKET socket, which can send what a generator will not.
func TestForcedBadHeaders(t *testing.T) {
	for _, c := range []struct {
		row   string
		spoil func(frame []byte) []byte
	}{
		{"ip.header_error", func(b []byte) []byte { b[24] ^= 0x55; return b }}, // header checksum
		{"ip.truncated", func(b []byte) []byte { return b[:len(b)-40] }},       // shorter than its length says
	} {
		r := newTrial(t, nstest.Options{}, measure.ArmUDP)
		r.in.Sender = measure.SendPacket
		fd := r.udp(64<<20, false)
		got := r.run(func() (uint64, uint64) {
			r.sendRaw(300, func(i int, frame []byte) []byte {
				if i%3 != 0 {
					return frame
				}
				return c.spoil(frame)
			})
			return 300, 0
		}, func() { r.readUDP(fd, true) })
		r.want(got, compare.Exact, c.row, 100)
	}
}

// sendRaw sends n stamped frames of 200 B, each after change.
func (r *trial) sendRaw(n int, change func(i int, frame []byte) []byte) {
	r.p.Peer.Do(r.t, func() {
		pinThread(r.t, 0, runtime.NumCPU()-1)
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			r.t.Fatal(err)
		}
		defer unix.Close(fd)
		flow := packet.Flow{SrcMAC: r.p.Peer.MAC, DstMAC: r.p.SUT.MAC, Src: r.p.Peer.IP4, Dst: r.p.SUT.IP4, SrcPort: 10000, DstPort: testPort}
		frames := make([][]byte, n)
		for i := range frames {
			frame, err := flow.Build(make([]byte, 256), 200, 0, packet.Stamp{Run: testRun, Number: uint64(i)})
			if err != nil {
				r.t.Fatal(err)
			}
			frames[i] = change(i, frame)
		}
		for _, frame := range frames {
			if err := unix.Sendto(fd, frame, 0, &unix.SockaddrLinklayer{Ifindex: r.p.Peer.Index}); err != nil {
				r.t.Fatal(err)
			}
		}
	})
}

// sendXSK sends n stamped frames of the sizes given, one by one.
func (r *trial) sendXSK(s *xsk.Socket, n int, size func(i int) int) {
	flow := packet.Flow{SrcMAC: r.p.Peer.MAC, DstMAC: r.p.SUT.MAC, Src: r.p.Peer.IP4, Dst: r.p.SUT.IP4, SrcPort: 10000, DstPort: testPort}
	descs := make([]xsk.Desc, 1)
	for i := range n {
		for s.Reserve(descs) == 0 {
			s.Complete()
		}
		frame, err := flow.Build(s.Buffer(descs[0]), size(i), 0, packet.Stamp{Run: testRun, Number: uint64(i)})
		if err != nil {
			r.t.Fatal(err)
		}
		descs[0].Len = uint32(len(frame))
		s.Submit(descs)
		if err := s.Flush(time.Second); err != nil {
			r.t.Fatal(err)
		}
	}
}

func TestForcedIPv6(t *testing.T) {
	for _, c := range []struct {
		dst netip.Addr
		row string
	}{
		{netip.Addr{}, "udp.no_port"},
		{netip.MustParseAddr("2001:2::77"), "ip.addr_error"},
	} {
		r := newTrial(t, nstest.Options{}, measure.ArmUDP)
		o := r.options(400)
		o.Src, o.Dst = r.p.Peer.IP6, r.p.SUT.IP6
		if c.dst.IsValid() {
			o.Dst = c.dst
		}
		r.want(r.run(r.prepare(o), func() {}), compare.Exact, c.row, 400)
	}
}
