// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"bytes"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// echoer is the shape of a responder.
type echoer interface {
	receiver
	Reply(which []int) (int, error)
}

var (
	_ echoer = (*EpollEcho)(nil)
	_ echoer = (*RecvmmsgEcho)(nil)
)

func echoers() map[string]func(Socket) (echoer, error) {
	return map[string]func(Socket) (echoer, error){
		"epoll":         func(s Socket) (echoer, error) { return OpenEpollEcho(EpollOptions{Socket: s}) },
		"epoll+batch=1": func(s Socket) (echoer, error) { s.Batch = 1; return OpenEpollEcho(EpollOptions{Socket: s}) },
		"recvmmsg":      func(s Socket) (echoer, error) { return OpenRecvmmsgEcho(RecvmmsgOptions{Socket: s}) },
		"recvmmsg+busypoll": func(s Socket) (echoer, error) {
			return OpenRecvmmsgEcho(RecvmmsgOptions{Socket: s, Wait: WaitBusyPoll})
		},
		"recvmmsg+spin": func(s Socket) (echoer, error) { return OpenRecvmmsgEcho(RecvmmsgOptions{Socket: s, Wait: WaitSpin}) },
	}
}

// asker sends from several sockets of the peer and reads what comes back.
type asker struct{ conns []*net.UDPConn }

func newAsker(t *testing.T, p *nstest.Pair, v6 bool, n int) *asker {
	t.Helper()
	a := &asker{}
	p.Peer.Do(t, func() {
		for range n {
			c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(sutAddr(p, v6)))
			if err != nil {
				t.Fatal(err)
			}
			a.conns = append(a.conns, c)
			t.Cleanup(func() { c.Close() })
		}
	})
	return a
}

// payloadOf is the i-th request: its length and content depend on i.
func payloadOf(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8)}, 10+i%300) }

func (a *asker) send(t *testing.T, from, n int) {
	t.Helper()
	for i := from; i < from+n; i++ {
		if _, err := a.conns[i%len(a.conns)].Write(payloadOf(i)); err != nil {
			t.Fatal(err)
		}
	}
}

// expect reads the answers to requests [from, from+n) but those skipped, each at its own socket, in order.
func (a *asker) expect(t *testing.T, from, n int, skipped func(int) bool) {
	t.Helper()
	buf := make([]byte, 2048)
	for i := from; i < from+n; i++ {
		if skipped != nil && skipped(i) {
			continue
		}
		c := a.conns[i%len(a.conns)]
		if err := c.SetReadDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		k, err := c.Read(buf)
		if err != nil {
			t.Fatalf("answer %d: %v", i, err)
		}
		if !bytes.Equal(buf[:k], payloadOf(i)) {
			t.Fatalf("answer %d is % x..., %d bytes", i, buf[:min(k, 8)], k)
		}
	}
}

// serve receives n datagrams and answers those that answer says, by their running number.
func serve(t *testing.T, e echoer, n int, answer func(int) bool) (replied int) {
	t.Helper()
	b := make([][]byte, 64)
	which := make([]int, 0, 64)
	seen := 0
	for deadline := time.Now().Add(10 * time.Second); seen < n; {
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d datagrams after 10 s", seen, n)
		}
		k, err := e.Receive(b)
		if err != nil {
			t.Fatal(err)
		}
		which = which[:0]
		for i := range k {
			if answer == nil || answer(seen) {
				which = append(which, i)
			}
			seen++
		}
		sent, err := e.Reply(which)
		if err != nil || sent != len(which) {
			t.Fatalf("%d of %d answered: %v", sent, len(which), err)
		}
		replied += sent
		if err := e.Release(); err != nil {
			t.Fatal(err)
		}
	}
	return replied
}

// Every datagram comes back to the socket that sent it, unchanged; those not named stay unanswered.
func TestEchoAnswers(t *testing.T) {
	const n = 300
	for name, open := range echoers() {
		for _, v6 := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				p := nstest.NewPair(t, nstest.Options{})
				var e echoer
				var err error
				p.SUT.Do(t, func() { e, err = open(Socket{Local: sutAddr(p, v6)}) })
				if err != nil {
					t.Fatal(err)
				}
				defer e.Close()
				a := newAsker(t, p, v6, 3)
				a.send(t, 0, n)
				if got := serve(t, e, n, nil); got != n {
					t.Errorf("%d answered", got)
				}
				a.expect(t, 0, n, nil)
				odd := func(i int) bool { return i%2 == 1 }
				even := func(i int) bool { return !odd(i) }
				a.send(t, 0, n)
				if got := serve(t, e, n, odd); got != n/2 {
					t.Errorf("%d answered", got)
				}
				a.expect(t, 0, n, even)
				c := e.Counters()
				if c["send.refused"] != 0 || c["syscalls.sendto"]+c["syscalls.sendmmsg"] == 0 || c["sock.received"] != 2*n {
					t.Errorf("counters %v", c)
				}
				if q, err := e.Queued(); q != 0 || err != nil {
					t.Errorf("%d queued, %v", q, err)
				}
			})
		}
	}
}

// An answer to a socket that is gone brings an ICMP error with one of the next calls, which is no end.
func TestEchoAskerGone(t *testing.T) {
	for name, open := range echoers() {
		p := nstest.NewPair(t, nstest.Options{})
		var e echoer
		var err error
		p.SUT.Do(t, func() { e, err = open(Socket{Local: sutAddr(p, false)}) })
		if err != nil {
			t.Fatal(err)
		}
		a := newAsker(t, p, false, 2)
		a.send(t, 0, 10)
		a.conns[0].Close()
		serve(t, e, 10, nil)
		b := newAsker(t, p, false, 1)
		b.send(t, 0, 5)
		serve(t, e, 5, nil)
		b.expect(t, 0, 5, nil)
		if err := e.Close(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without a way back answers are refused, which is counted and no end.
func TestEchoNoRoute(t *testing.T) {
	for name, open := range echoers() {
		p := nstest.NewPair(t, nstest.Options{})
		var e echoer
		var err error
		p.SUT.Do(t, func() { e, err = open(Socket{Local: sutAddr(p, false)}) })
		if err != nil {
			t.Fatal(err)
		}
		a := newAsker(t, p, false, 1)
		a.send(t, 0, 10)
		unreachable := &netlink.Route{Dst: &net.IPNet{IP: p.Peer.IP4.AsSlice(), Mask: net.CIDRMask(32, 32)}, Type: unix.RTN_UNREACHABLE}
		p.SUT.Do(t, func() {
			if err := netlink.RouteAdd(unreachable); err != nil {
				t.Fatal(err)
			}
		})
		b, which, got := make([][]byte, 64), []int{}, 0
		for deadline := time.Now().Add(5 * time.Second); got < 10 && time.Now().Before(deadline); {
			n, err := e.Receive(b)
			if err != nil {
				t.Fatal(err)
			}
			which = which[:0]
			for i := range n {
				which = append(which, i)
			}
			if sent, err := e.Reply(which); sent != 0 || err != nil {
				t.Fatalf("%s: %d sent, %v", name, sent, err)
			}
			got += n
		}
		if c := e.Counters(); got != 10 || c["send.refused"] != 10 {
			t.Errorf("%s: %d received, counters %v", name, got, c)
		}
		p.SUT.Do(t, func() {
			if err := netlink.RouteDel(unreachable); err != nil {
				t.Fatal(err)
			}
		})
		a.send(t, 10, 5)
		serve(t, e, 5, nil)
		a.expect(t, 10, 5, nil)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestEchoDoesNotAllocate(t *testing.T) {
	const n = 64
	for name, open := range echoers() {
		t.Run(name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			var e echoer
			var err error
			p.SUT.Do(t, func() { e, err = open(Socket{Local: sutAddr(p, false)}) })
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			a := newAsker(t, p, false, 1)
			a.send(t, 0, 2*n) // AllocsPerRun runs once before it counts
			time.Sleep(50 * time.Millisecond)
			b, which := make([][]byte, n), make([]int, 0, n)
			answered, bad := 0, false
			allocs := testing.AllocsPerRun(1, func() {
				for got := 0; got < n; {
					k, err := e.Receive(b[:min(n, n-got)])
					if err != nil || k == 0 {
						bad = true
						return
					}
					which = which[:0]
					for i := range k {
						which = append(which, i)
					}
					sent, err := e.Reply(which)
					bad = bad || err != nil || sent != k
					got += k
					answered += sent
				}
			})
			if allocs != 0 || bad || answered != 2*n {
				t.Errorf("%v allocations for %d answers, %d in all, bad %v", allocs, n, answered, bad)
			}
		})
	}
}

func TestEchoRefusals(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	p.SUT.Do(t, func() {
		if _, err := OpenRecvmmsgEcho(RecvmmsgOptions{Socket: Socket{Local: sutAddr(p, false)}, GRO: true}); err == nil {
			t.Error("GRO: no error")
		}
		e, err := OpenEpollEcho(EpollOptions{Socket: Socket{Local: sutAddr(p, false)}})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Reply([]int{0}); err == nil {
			t.Error("closed: no error")
		}
	})
}
