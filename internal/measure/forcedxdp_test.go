// SPDX-License-Identifier: Apache-2.0

package measure_test

import (
	"testing"

	"golang.org/x/sys/unix"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/measure"
	"twopath/internal/nstest"
	"twopath/xsk"
)

func TestForcedXDPNone(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Native, bpf.Generic} {
		r := newTrial(t, nstest.Options{}, measure.ArmXDP)
		prog, s := r.xsk(&xsk.Options{RxRing: 4096, FillRing: 8192}, mode)
		got := r.run(r.prepare(r.options(2000)), func() { r.readXSK(prog, s, true) })
		r.want(got, compare.Exact)
		if r.in.Unique != 2000 || len(got.Blind) != 0 {
			t.Errorf("%v: unique %d, blind %v", mode, r.in.Unique, got.Blind)
		}
	}
}

// An empty fill ring shows in XSK rx_dropped, XSK rx_fill_ring_empty_descs, ethtool rx_queue_0_drops and rtnl rx_dropped:
// one row.
func TestForcedFillRingEmpty(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Native, bpf.Generic} {
		r := newTrial(t, nstest.Options{}, measure.ArmXDP)
		prog, s := r.xsk(&xsk.Options{RxRing: 2048, FillRing: 2048, RxFrames: 64}, mode)
		got := r.run(r.prepare(r.options(1000)), func() { r.readXSK(prog, s, true) })
		r.want(got, compare.Exact, "xsk.fill_ring_empty", 1000-64)
		if r.to["xsk.rx_fill_ring_empty_descs"] != 1000-64 {
			t.Errorf("%v: %d empty descriptors", mode, r.to["xsk.rx_fill_ring_empty_descs"])
		}
		if d := r.in.To["ethtool.rx_queue_0_drops"]; (mode == bpf.Native) != (d == 1000-64) {
			t.Errorf("%v: device drops %d", mode, d)
		}
	}
}

func TestForcedRxRingFull(t *testing.T) {
	for _, mode := range []bpf.Mode{bpf.Native, bpf.Generic} {
		r := newTrial(t, nstest.Options{}, measure.ArmXDP)
		prog, s := r.xsk(&xsk.Options{RxRing: 64, FillRing: 2048}, mode)
		got := r.run(r.prepare(r.options(1000)), func() { r.readXSK(prog, s, false) })
		r.want(got, compare.Exact, "xsk.rx_ring_full", 1000-64, "xsk.queued_unread", 64)
	}
}

func TestForcedFrameTooLong(t *testing.T) {
	r := newTrial(t, nstest.Options{MTU: 3000}, measure.ArmXDP)
	prog, s := r.xsk(&xsk.Options{ChunkSize: 2048}, bpf.Native)
	o := r.options(900)
	o.Sizes = []int{64, 1700, 2504}
	r.want(r.run(r.prepare(o), func() { r.readXSK(prog, s, true) }), compare.Exact, "xsk.frame_too_long", 300)
}

func TestForcedFrameTooLongAndFillRingEmpty(t *testing.T) {
	r := newTrial(t, nstest.Options{MTU: 3000}, measure.ArmXDP)
	prog, s := r.xsk(&xsk.Options{ChunkSize: 2048, RxFrames: 64}, bpf.Native)
	o := r.options(1000)
	o.Sizes = []int{64, 2504}
	r.want(r.run(r.prepare(o), func() { r.readXSK(prog, s, true) }), compare.Exact, "xsk.fill_ring_empty", 436, "xsk.frame_too_long", 500)
}

func TestForcedNoSocket(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmXDP)
	prog, _ := r.xsk(nil, bpf.Native)
	r.want(r.run(r.prepare(r.options(800)), func() { r.readXSK(prog, nil, true) }), compare.Exact, "xdp.no_socket", 800)
}

func TestForcedXDPWrongMAC(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmXDP)
	prog, s := r.xsk(&xsk.Options{}, bpf.Native)
	o := r.options(900)
	o.Faults = bpf.Faults{WrongMAC: 3}
	r.want(r.run(r.prepare(o), func() { r.readXSK(prog, s, true) }), compare.Exact, "link.other_host", 300)
}

func TestForcedXDPBadChecksum(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmXDP)
	prog, s := r.xsk(&xsk.Options{}, bpf.Native)
	o := r.options(1000)
	o.Faults = bpf.Faults{BadUDPChecksum: 4}
	r.want(r.run(r.prepare(o), func() { r.readXSK(prog, s, true) }), compare.Exact, "reader.corrupt", 250)
}

func TestForcedXDPFlood(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmXDP)
	prog, s := r.xsk(&xsk.Options{RxRing: 1024, FillRing: 4096}, bpf.Native)
	o := r.options(300_000)
	o.Rate = 0
	got := r.run(r.prepare(o), func() { r.readXSK(prog, s, true) })
	r.want(got, compare.Exact, "veth.ring_full", int(r.in.From["ethtool.tx_queue_0_xdp_xmit_errors"]),
		"xsk.rx_ring_full", int(r.to["xsk.rx_ring_full"]))
}

// A plain AF_PACKET socket counts as its ring does: tp_packets includes tp_drops. The stack's NoPorts are of copies.
func TestForcedPacket(t *testing.T) {
	r := newTrial(t, nstest.Options{}, measure.ArmPacket)
	fd := -1
	r.p.SUT.Do(t, func() {
		var err error
		// ETH_P_IP, so that neighbour and multicast listener frames are not counted.
		if fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, int(htons(unix.ETH_P_IP))); err != nil {
			t.Fatal(err)
		}
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 32<<10); err != nil {
			t.Fatal(err)
		}
		if err := unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: htons(unix.ETH_P_IP), Ifindex: r.p.SUT.Index}); err != nil {
			t.Fatal(err)
		}
	})
	defer unix.Close(fd)
	got := r.run(r.prepare(r.options(2000)), func() {
		r.to["packet.queued"] = 0
		buf := make([]byte, 2048)
		for {
			n, from, err := unix.Recvfrom(fd, buf, 0)
			if err == unix.EAGAIN {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			if l, ok := from.(*unix.SockaddrLinklayer); ok && l.Pkttype == unix.PACKET_OUTGOING {
				continue // the stack's "port unreachable"
			}
			r.take(buf[42:n])
		}
		st, err := unix.GetsockoptTpacketStats(fd, unix.SOL_PACKET, unix.PACKET_STATISTICS)
		if err != nil {
			t.Fatal(err)
		}
		r.to["packet.drops"] = uint64(st.Drops)
	})
	if r.in.Unique == 0 || r.in.Unique == 2000 {
		t.Errorf("unique %d: the buffer was meant to hold a part", r.in.Unique)
	}
	if r.in.To["udp.NoPorts"] != 2000 {
		t.Errorf("NoPorts %d: the stack was meant to see a copy of all", r.in.To["udp.NoPorts"])
	}
	r.want(got, compare.Exact, "packet.ring_full", int(2000-r.in.Unique))
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
