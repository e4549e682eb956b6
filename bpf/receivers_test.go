// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"testing"

	"github.com/vishvananda/netlink"

	"twopath/internal/nstest"
)

// A UDP_GRO reader has the kernel rewrite the headers in the generator's pages (GRO merges them); still every datagram
// arrives, once and whole.
func TestGeneratorIntoGRO(t *testing.T) {
	for _, f := range []testFrame{frame4(), frame6()} {
		for _, sizes := range [][]int{{128}, {1518}, Imix()} {
			if f.src.Is6() {
				sizes = slices.Clone(sizes)
				for i := range sizes {
					sizes[i] = max(sizes[i], MinFrameSize6)
				}
			}
			t.Run(fmt.Sprintf("%s %d", f.src, sizes[0]), func(t *testing.T) {
				const count = 20_000
				p := nstest.NewPair(t, nstest.Options{})
				r := newUDPReader(t, p.SUT, f.src.Is6(), count, true)
				o := pairOptions(p, f)
				o.Count, o.Rate, o.Sizes, o.Flows = count, 50_000, sizes, 2
				res := generate(t, p, o)
				got := r.wait()
				frames, errs := xmit(t, p)
				if res.Sent != count || frames+errs != count {
					t.Errorf("result %+v, device sent %d and overflowed %d", res, frames, errs)
				}
				seen := make([]bool, count)
				for i, b := range got {
					n, err := checkPayload(b)
					if err != nil || n >= count || seen[n] {
						t.Fatalf("datagram %d, number %d: %v", i, n, err)
					}
					seen[n] = true
				}
				u := udpCounters(t, p.SUT, f.src.Is6())
				if uint64(len(got)) != frames || u["InCsumErrors"] != "0" {
					t.Errorf("read %d datagrams of %d frames; UDP counters %v", len(got), frames, u)
				}
			})
		}
	}
}

// Through a router, which rewrites headers in place, every frame arrives as built but for MACs and TTL.
func TestGeneratorThroughRouter(t *testing.T) {
	const count = 20_000
	in := nstest.NewPair(t, nstest.Options{})  // peer0 generates, sut0 is the router's entrance
	out := nstest.NewPair(t, nstest.Options{}) // its sut0 becomes the router's exit, peer0 receives
	receiver := netip.MustParseAddr("198.18.1.2")
	out.SUT.Do(t, func() {
		l, err := netlink.LinkByName("sut0")
		for _, err := range []error{err, netlink.LinkSetDown(l), netlink.LinkSetName(l, "exit0"), netlink.LinkSetNsFd(l, int(in.SUT.NS))} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	in.SUT.Do(t, func() {
		l, err := netlink.LinkByName("exit0")
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{
			netlink.LinkSetUp(l),
			netlink.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(198, 18, 1, 1), Mask: net.CIDRMask(24, 32)}}),
			netlink.NeighSet(&netlink.Neigh{LinkIndex: l.Attrs().Index, State: netlink.NUD_PERMANENT, IP: receiver.AsSlice(), HardwareAddr: out.Peer.MAC}),
			os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	cap := newCapture(t, out.Peer, out.Peer.Index, count)
	f := frame4()
	f.dst = receiver
	o := pairOptions(in, f)
	o.Count, o.Rate, o.Sizes, o.Flows = count, 40_000, Imix(), 4
	res := generate(t, in, o)
	frames, errs := xmit(t, in)
	if res.Sent != count || frames+errs != count {
		t.Errorf("result %+v, device sent %d and overflowed %d", res, frames, errs)
	}
	got := cap.wait()
	if uint64(len(got)) != frames {
		t.Errorf("%d of %d frames came through", len(got), frames)
	}
	for i, b := range got {
		g, err := f.readStamp(b)
		if err != nil {
			t.Fatalf("frame %d: %v", i, err)
		}
		want := g
		want.payload = Imix()[g.number%16] - 4 - 42
		want.sport, want.ttl = uint16(10000+g.number%4), 63
		want.dstMAC, want.srcMAC = out.Peer.MAC, out.SUT.MAC
		if !bytes.Equal(b, want.build()) {
			t.Fatalf("frame %d:\n% x, want\n% x", i, b[:60], want.build()[:60])
		}
	}
}

// Frames of several queues: the generator's CPU picks the queue, and the per-queue counts say so.
func TestGeneratorQueueFollowsCPU(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	d, err := NewDrop(DropOptions{Match: frame4().match()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	attachSUT(t, p, d)
	want := [2]uint64{}
	for cpu := range 2 {
		o := pairOptions(p, frame4())
		o.Count, o.Rate = uint64(1000+cpu), 50_000
		p.Peer.Do(t, func() {
			pin(t, cpu)
			g, err := NewGenerator(o)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if _, err := g.Run(); err != nil {
				t.Fatal(err)
			}
		})
		want[cpu] = o.Count
	}
	eventually(t, "queues 0 and 1 got what CPUs 0 and 1 sent", func() bool {
		_, q, err := d.Counters()
		return err == nil && q[0] == want[0] && q[1] == want[1]
	})
}
