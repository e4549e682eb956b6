// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"net/netip"
	"testing"
	"time"

	"twopath/internal/nstest"
)

// With a buffer of 4 KiB nearly all of a burst is lost, and every datagram must still be somewhere.
func TestSocketOverflowAddsUp(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	small := Socket{Rcvbuf: 4096}
	for _, k := range []kind{
		{name: "epoll", open: func(_ *nstest.Pair, a netip.AddrPort) (receiver, error) {
			return OpenEpoll(EpollOptions{Socket: Socket{Local: a, Rcvbuf: 4096}})
		}},
		recvmmsgKind("recvmmsg", RecvmmsgOptions{Socket: small}),
		recvmmsgKind("spin", RecvmmsgOptions{Socket: small, Wait: WaitSpin}),
		recvmmsgKind("busypoll", RecvmmsgOptions{Socket: small, Wait: WaitBusyPoll}),
	} {
		for _, v6 := range []bool{false, true} {
			t.Run(k.name+map[bool]string{false: "/v4", true: "/v6"}[v6], func(t *testing.T) {
				r := k.mustOpen(t, p, sutAddr(p, v6))
				if e := r.Effective(); e.Rcvbuf != 8192 || e.RcvbufAsked != 4096 {
					t.Errorf("asked for 4096 bytes, which the kernel doubles; effective says %+v", e)
				}
				const n = 2000
				send(t, p, v6, 0, n, 100, 1)
				got := receive(t, r, make([][]byte, 1))
				if err := r.Release(); err != nil {
					t.Fatal(err)
				}
				queued, err := r.Queued()
				if err != nil {
					t.Fatal(err)
				}
				c := r.Counters()
				if got != 1 || queued == 0 || c["sock.drops"] == 0 {
					t.Errorf("received %d, queued %d, dropped %d: want some of each", got, queued, c["sock.drops"])
				}
				if sum := uint64(got) + queued + c["sock.drops"]; sum != n || c["sock.queued"] != queued {
					t.Errorf("received %d + queued %d + dropped %d = %d of %d sent; %v", got, queued, c["sock.drops"], sum, n, c)
				}
			})
		}
	}
}

func TestDefaultBufferPassesRmemMax(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := recvmmsgKind("", RecvmmsgOptions{}).mustOpen(t, p, sutAddr(p, false))
	if e := r.Effective(); !e.RcvbufForced || e.Rcvbuf != 2*DefaultRcvbuf {
		t.Errorf("as root: %+v", e)
	}
}

func TestPacketRingOverflowAddsUp(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, v6 := range []bool{false, true} {
		local := sutAddr(p, v6)
		k := kind{name: "packet", frames: true, open: func(p *nstest.Pair, _ netip.AddrPort) (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: local, Ring: Ring{BlockBytes: 4096, Blocks: 2}, Quiet: QuietSocket})
		}}
		r := k.mustOpen(t, p, local)
		const n = 500
		send(t, p, v6, 0, n, 100, 1)
		seen, total := collect(t, r, true, 10, 100, 10)
		for i := range total {
			if seen[i] != 1 {
				t.Errorf("frame %d came %d times", i, seen[i])
			}
		}
		queued, err := r.Queued()
		if err != nil {
			t.Fatal(err)
		}
		c := r.Counters()
		if total < 10 || queued == 0 || c["packet.drops"] == 0 || c["packet.freeze"] == 0 {
			t.Errorf("received %d, queued %d, %v: want some of each", total, queued, c)
		}
		if sum := uint64(total) + queued + c["packet.drops"]; sum != n || c["packet.packets"] != n {
			t.Errorf("received %d + queued %d + dropped %d = %d of %d sent; %v", total, queued, c["packet.drops"], sum, n, c)
		}
		if c["packet.sink_drops"]+c["packet.sink_queued"] != n {
			t.Errorf("the quiet socket took %d + %d of %d", c["packet.sink_drops"], c["packet.sink_queued"], n)
		}
		// The kernel's statistics start over at each reading, ours must not; and the ring must work on.
		if again := r.Counters(); again["packet.packets"] != n || again["packet.drops"] != c["packet.drops"] {
			t.Errorf("second reading %v, first %v", again, c)
		}
		send(t, p, v6, 0, 5, 100, 1)
		seen, _ = collect(t, r, true, 5, 100, 64)
		exactly(t, seen, 5)
	}
}

func TestQueuedWithoutLoss(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, sutAddr(p, false))
			send(t, p, false, 0, 100, 64, 1)
			time.Sleep(10 * time.Millisecond)
			_, got := collect(t, r, k.frames, 10, 64, 10)
			q, err := r.Queued()
			if err != nil || got+int(q) != 100 {
				t.Errorf("received %d + queued %d (%v), want 100", got, q, err)
			}
		})
	}
}
