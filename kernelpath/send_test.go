// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// sender is the shape the caller's loop expects of every engine.
type sender interface {
	Buffers() [][]byte
	Reserve(b [][]byte) (int, error)
	Submit(b [][]byte, flow int) (int, error)
	Flush(time.Duration) error
	Counters() map[string]uint64
	Effective() Effective
	Close() error
}

var (
	_ sender = (*Write)(nil)
	_ sender = (*Sendmmsg)(nil)
	_ sender = (*PacketSend)(nil)
)

// sendKind is one sender under test.
type sendKind struct {
	name   string
	frames bool // lends room for Ethernet frames, not payloads
	open   func(p *nstest.Pair, o SendSocket) (sender, error)
}

func sendKinds() []sendKind {
	return []sendKind{
		{name: "write", open: func(_ *nstest.Pair, o SendSocket) (sender, error) { return OpenWrite(o) }},
		{name: "sendto", open: func(_ *nstest.Pair, o SendSocket) (sender, error) { return OpenSendto(o) }},
		{name: "sendmmsg", open: func(_ *nstest.Pair, o SendSocket) (sender, error) {
			return OpenSendmmsg(SendmmsgOptions{SendSocket: o})
		}},
		{name: "sendmmsg+gso", open: func(_ *nstest.Pair, o SendSocket) (sender, error) {
			return OpenSendmmsg(SendmmsgOptions{SendSocket: o, GSO: true})
		}},
		{name: "packet", frames: true, open: func(p *nstest.Pair, _ SendSocket) (sender, error) {
			return OpenPacketSend(PacketSendOptions{Interface: p.SUT.Name})
		}},
	}
}

// from is a sender's socket: from the SUT's port 10000 on to port 9000 of the peer.
func from(p *nstest.Pair, v6 bool, flows int) SendSocket {
	if v6 {
		return SendSocket{Local: netip.AddrPortFrom(p.SUT.IP6, 10000), Remote: netip.AddrPortFrom(p.Peer.IP6, port), Flows: flows}
	}
	return SendSocket{Local: netip.AddrPortFrom(p.SUT.IP4, 10000), Remote: netip.AddrPortFrom(p.Peer.IP4, port), Flows: flows}
}

func (k sendKind) mustOpen(t testing.TB, p *nstest.Pair, o SendSocket) (s sender) {
	t.Helper()
	var err error
	p.SUT.Do(t, func() { s, err = k.open(p, o) })
	if err != nil {
		t.Fatalf("open %s: %v", k.name, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

// etherFrame is an Ethernet header to the peer, of a type for experiments, and a payload.
func etherFrame(p *nstest.Pair, b []byte, number, size int) []byte {
	copy(b, p.Peer.MAC)
	copy(b[6:], p.SUT.MAC)
	b[12], b[13] = 0x88, 0xb5
	copy(b[14:], payload(number, size-14))
	return b[:size]
}

// peerReader receives what the senders under test send, in the peer's namespace.
func peerReader(t testing.TB, p *nstest.Pair, frames, v6 bool) receiver {
	t.Helper()
	var r receiver
	var err error
	p.Peer.Do(t, func() {
		if frames {
			// A frame a millisecond takes a block each: enough of them for a reader that does not get the CPU.
			r, err = OpenPacket(PacketOptions{Interface: p.Peer.Name, Ring: Ring{BlockBytes: 4096, Blocks: 2048}})
			return
		}
		addr := p.Peer.IP4
		if v6 {
			addr = p.Peer.IP6
		}
		r, err = OpenRecvmmsg(RecvmmsgOptions{Socket: Socket{Local: netip.AddrPortFrom(addr, port)}})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

// sendAll sends numbers first..first+n-1 with sizes in turn, in batches, and returns what was accepted.
func sendAll(t testing.TB, p *nstest.Pair, k sendKind, s sender, n, batch, flows int, sizes []int) int {
	t.Helper()
	b := make([][]byte, batch)
	sent := 0
	for deadline := time.Now().Add(20 * time.Second); sent < n; {
		if time.Now().After(deadline) {
			t.Fatalf("sent %d of %d: %v", sent, n, s.Counters())
		}
		got, err := s.Reserve(b[:min(batch, n-sent)])
		if err != nil {
			t.Fatal(err)
		}
		for i := range b[:got] {
			size := sizes[(sent+i)%len(sizes)]
			if k.frames {
				b[i] = etherFrame(p, b[i], sent+i, size+14)
			} else {
				b[i] = b[i][:copy(b[i], payload(sent+i, size))]
			}
		}
		took, err := s.Submit(b[:got], sent/batch%flows)
		if err != nil {
			t.Fatal(err)
		}
		sent += took
		time.Sleep(time.Millisecond) // a veth's ring has 256 entries
	}
	if err := s.Flush(5 * time.Second); err != nil {
		t.Fatal(err)
	}
	return sent
}

func TestEverySenderSendsEveryDatagramOnce(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range sendKinds() {
		for _, v6 := range []bool{false, true} {
			for _, batch := range []int{1, 7, 64} {
				t.Run(fmt.Sprintf("%s/v6=%v/batch=%d", k.name, v6, batch), func(t *testing.T) {
					const n = 1000
					sizes := []int{18, 18, 18, 100, 1400, 60, 60}
					r := peerReader(t, p, k.frames, v6)
					seen := make(chan map[int]int, 1)
					go func() {
						runtime.LockOSThread()
						m := map[int]int{}
						b := make([][]byte, 64)
						for last := time.Now(); len(m) < n && time.Since(last) < 2*time.Second; {
							got, err := r.Receive(b)
							if err != nil {
								t.Error(err)
								break
							}
							for _, f := range b[:got] {
								if k.frames {
									if len(f) < 14 || f[12] != 0x88 || f[13] != 0xb5 {
										continue // the kernel's own
									}
									f = f[14:]
								}
								number := -1
								for _, size := range sizes {
									if len(f) == size {
										number = checkPayload(f, size)
									}
								}
								m[number]++
								last = time.Now()
							}
							if err := r.Release(); err != nil {
								t.Error(err)
							}
						}
						seen <- m
					}()
					s := k.mustOpen(t, p, from(p, v6, 3))
					sendAll(t, p, k, s, n, batch, 3, sizes)
					m := <-seen
					c := s.Counters()
					if len(m) != n {
						t.Logf("sender %v, reader %v, %s", c, r.Counters(), linkCounts(t, p))
					}
					exactly(t, m, n)
					if c["send.packets"] != n || c["syscalls.failed"] != 0 {
						t.Errorf("counters: %v", c)
					}
					if k.name == "sendmmsg+gso" && batch == 64 && c["syscalls.sendmmsg"] >= n/2 {
						t.Errorf("nothing was batched: %v", c)
					}
				})
			}
		}
	}
}

// With GSO neighbours of one length are one message, and a shorter one ends it (udp(7)).
func TestGSOGroups(t *testing.T) {
	s := &Sendmmsg{gso: true, senders: senders{o: SendSocket{Batch: 512}}}
	s.prepare()
	for _, c := range []struct{ lengths, want []int }{
		{[]int{18}, []int{1}},
		{[]int{18, 18, 18}, []int{3}},
		{[]int{18, 18, 10, 10, 18}, []int{3, 1, 1}},
		{[]int{10, 18}, []int{1, 1}},
		{[]int{18, 594, 18, 18}, []int{1, 2, 1}},
		{[]int{1400, 1400, 1400, 64, 64}, []int{4, 1}},
	} {
		var b [][]byte
		for _, n := range c.lengths {
			b = append(b, make([]byte, n))
		}
		n := s.group(b)
		if fmt.Sprint(s.parts[:n]) != fmt.Sprint(c.want) {
			t.Errorf("%v: messages of %v, want %v", c.lengths, s.parts[:n], c.want)
		}
	}
	long := make([][]byte, 200)
	for i := range long {
		long[i] = make([]byte, 1400)
	}
	n := s.group(long)
	for _, k := range s.parts[:n] {
		if k*1400 > maxSegmentBytes || k > maxSegments {
			t.Errorf("a message of %d datagrams of 1400 B", k)
		}
	}
	if s.accepted(0, n) != 200 {
		t.Errorf("groups hold %d of 200", s.accepted(0, n))
	}
}

func TestSendingDoesNotAllocate(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range sendKinds() {
		t.Run(k.name, func(t *testing.T) {
			s := k.mustOpen(t, p, from(p, false, 1))
			b := make([][]byte, 16)
			for _, m := range s.Buffers() {
				if k.frames {
					etherFrame(p, m, 0, 60)
				}
			}
			sent := 0
			if n := testing.AllocsPerRun(200, func() {
				got, err := s.Reserve(b)
				if err != nil {
					t.Error(err)
				}
				for i := range b[:got] {
					b[i] = b[i][:60]
				}
				took, err := s.Submit(b[:got], 0)
				if err != nil {
					t.Error(err)
				}
				sent += took
			}); n != 0 {
				t.Errorf("%v allocations per batch", n)
			}
			if sent == 0 {
				t.Error("nothing was sent")
			}
		})
	}
}

// A device that goes down ends sending with its errno; nothing hangs.
func TestSendersSeeTheDeviceGoDown(t *testing.T) {
	for _, k := range sendKinds() {
		t.Run(k.name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			s := k.mustOpen(t, p, from(p, false, 1))
			sendAll(t, p, k, s, 10, 5, 1, []int{100})
			p.SUT.Do(t, func() {
				l, err := netlink.LinkByIndex(p.SUT.Index)
				if err == nil {
					err = netlink.LinkSetDown(l)
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			b := make([][]byte, 4)
			var err error
			for deadline := time.Now().Add(5 * time.Second); err == nil && time.Now().Before(deadline); {
				var got int
				if got, err = s.Reserve(b); err != nil {
					break
				}
				for i := range b[:got] {
					if k.frames {
						b[i] = etherFrame(p, b[i], i, 60)
					} else {
						b[i] = b[i][:60]
					}
				}
				_, err = s.Submit(b[:got], 0)
			}
			if !errors.Is(err, unix.ENETDOWN) && !errors.Is(err, unix.ENETUNREACH) {
				t.Fatalf("error %v, want the network to be down or out of reach", err)
			}
			if s.Counters()["syscalls.failed"] == 0 {
				t.Errorf("the failure is not counted: %v", s.Counters())
			}
		})
	}
}

func TestSendOptions(t *testing.T) {
	good := SendSocket{Local: netip.MustParseAddrPort("127.0.0.1:10000"), Remote: netip.MustParseAddrPort("127.0.0.1:9000")}
	for _, c := range []struct {
		want   string
		change func(*SendSocket)
	}{
		{"Local", func(o *SendSocket) { o.Local = netip.AddrPort{} }},
		{"Remote", func(o *SendSocket) { o.Remote = netip.MustParseAddrPort("127.0.0.1:0") }},
		{"one plain IP version", func(o *SendSocket) { o.Remote = netip.MustParseAddrPort("[::1]:9000") }},
		{"Flows", func(o *SendSocket) { o.Flows = MaxFlows + 1 }},
		{"do not fit", func(o *SendSocket) { o.Local, o.Flows = netip.MustParseAddrPort("127.0.0.1:65535"), 2 }},
		{"Batch", func(o *SendSocket) { o.Batch = MaxBatch + 1 }},
		{"Buffer", func(o *SendSocket) { o.Buffer = 1 << 20 }},
		{"Sndbuf", func(o *SendSocket) { o.Sndbuf = -1 }},
		{"Timeout", func(o *SendSocket) { o.Timeout = time.Hour }},
	} {
		o := good
		c.change(&o)
		if _, err := OpenWrite(o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want it to speak of %s", err, c.want)
		}
	}
	for _, o := range []PacketSendOptions{{}, {Interface: "lo", Frames: 100}, {Interface: "lo", Frames: 16, Batch: 32}, {Interface: "lo", Buffer: 1 << 20}, {Interface: "lo", Sndbuf: -1}} {
		if _, err := OpenPacketSend(o); err == nil || !strings.Contains(err.Error(), "options") {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}

// What was asked for and what was granted are both told; a closed sender sends no more.
func TestSenderEffectiveAndClose(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range sendKinds() {
		if k.frames {
			continue
		}
		o := from(p, false, 2)
		o.Sndbuf = 100_000
		s := k.mustOpen(t, p, o)
		if e := s.Effective(); e.SndbufAsked != 100_000 || e.Sndbuf != 200_000 || e.Local != o.Local || e.GSO != (k.name == "sendmmsg+gso") {
			t.Errorf("%s: effective %+v", k.name, e)
		}
		if err := errors.Join(s.Close(), s.Close()); err != nil {
			t.Errorf("%s: close: %v", k.name, err)
		}
		if _, err := s.Submit([][]byte{{1}}, 0); !errors.Is(err, ErrClosed) {
			t.Errorf("%s: sending on a closed sender: %v", k.name, err)
		}
	}
}

// linkCounts tells where frames went on the pair, for failures.
func linkCounts(t testing.TB, p *nstest.Pair) string {
	var out string
	for _, e := range []*nstest.End{p.SUT, p.Peer} {
		e.Do(t, func() {
			if l, err := netlink.LinkByIndex(e.Index); err == nil {
				out += fmt.Sprintf("%s %+v ", e.Name, *l.Attrs().Statistics)
			}
		})
	}
	return out
}
