// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net"
	"net/netip"
	"testing"
	"time"

	"twopath/bpf"
	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/nstest"
	"twopath/internal/packet"
)

// TestXDPEchoAnswers: an AF_XDP responder turns frames round as the kernel at the other end likes them, all of them, and
// without allocating.
func TestXDPEchoAnswers(t *testing.T) {
	const n = 128
	for _, options := range []map[string]string{{}, {"wait": "poll"}, {"batch": "7"}} {
		p := nstest.NewPair(t, nstest.Options{})
		prepare := agent.Prepare{Device: p.SUT.Name, Run: 77, Engine: compare.XDP, Variant: "auto", Options: options, Queues: 1, MaxSize: 64, Strict: true,
			Flow: packet.Flow{Src: p.Peer.IP4, Dst: p.SUT.IP4, SrcPort: 10000, DstPort: 9000, Flows: 1}}
		var s *set
		var err error
		p.SUT.Do(t, func() { s, err = openEcho(prepare) })
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		w := s.workers[0].(responder)

		var back *net.UDPConn
		p.Peer.Do(t, func() {
			back, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(p.Peer.IP4, 10000)))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { back.Close() })
			g, err := bpf.NewGenerator(bpf.GeneratorOptions{IfIndex: p.Peer.Index, RunID: 77, SrcMAC: p.Peer.MAC, DstMAC: p.SUT.MAC, Src: p.Peer.IP4, Dst: p.SUT.IP4, Count: 2 * n})
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if res, err := g.Run(); err != nil || res.Sent != 2*n {
				t.Fatalf("%+v, %v", res, err)
			}
		})
		time.Sleep(50 * time.Millisecond) // the frames are in the ring
		b, which := make([][]byte, s.batch), make([]int, 0, s.batch)
		answered := 0
		var failed error
		allocs := testing.AllocsPerRun(1, func() { // once before it counts
			for got := 0; got < n; {
				k, err := w.Receive(b[:min(len(b), n-got)])
				if err != nil || k == 0 {
					failed = err
					return
				}
				which = which[:0]
				for i := range k {
					which = append(which, i)
				}
				sent, err := w.Reply(which)
				if err != nil {
					failed = err
				}
				got, answered = got+k, answered+sent
				if err := w.Release(); err != nil {
					failed = err
				}
			}
		})
		if allocs != 0 || failed != nil || answered != 2*n {
			t.Errorf("%v: %v allocations, %d answered, %v", options, allocs, answered, failed)
		}
		if q, err := w.Queued(); q != 0 || err != nil {
			t.Errorf("%d queued, %v", q, err)
		}
		if c := s.own(); c["xsk.tx_submitted"] != 2*n || c["xsk.tx_completed"] != 2*n || c["xsk.tx_unsent"] != 0 {
			t.Errorf("counters %v", c)
		}
		buf := make([]byte, 2048)
		for i := range 2 * n {
			if err := back.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
				t.Fatal(err)
			}
			k, from, err := back.ReadFromUDPAddrPort(buf)
			if err != nil {
				t.Fatalf("answer %d: %v", i, err)
			}
			if s := packet.ParseStamp(buf[:k]); k != packet.StampLen || s.Run != 77 || s.Number != uint64(i) || from.Port() != 9000 {
				t.Fatalf("answer %d: %+v from %v, %d bytes", i, s, from, k)
			}
		}
	}
}
