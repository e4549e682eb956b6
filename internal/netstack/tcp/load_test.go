// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

// wire carries frames from one engine to another in a test, with faults on request.
type wire struct {
	pool   [kinds][][]byte // free buffers, by what they held
	kind   Kind
	last   []byte
	queue  [][]byte
	kindOf []Kind
	to     *Load
	sent   int

	fault func(n int, f []byte) (copies int) // of the n-th frame; nil is one
	rng   *rand.Rand
	swap  float64
}

func (w *wire) Buffer(k Kind) ([]byte, Kind) {
	if p := &w.pool[k]; len(*p) > 0 {
		w.last, *p = (*p)[len(*p)-1], (*p)[:len(*p)-1]
		w.kind = k
		return w.last, k
	}
	w.last, w.kind = make([]byte, 2048), k
	return w.last, NoKind
}

func (w *wire) Send(n int) {
	w.sent++
	copies := 1
	if w.fault != nil {
		copies = w.fault(w.sent, w.last[:n])
	}
	if copies != 1 {
		for range copies {
			w.queue = append(w.queue, append([]byte(nil), w.last[:n]...))
			w.kindOf = append(w.kindOf, NoKind)
		}
		return
	}
	w.queue = append(w.queue, w.last[:n])
	w.kindOf = append(w.kindOf, w.kind)
	if m := len(w.queue); w.swap > 0 && m > 1 && w.rng.Float64() < w.swap {
		w.queue[m-1], w.queue[m-2] = w.queue[m-2], w.queue[m-1]
		w.kindOf[m-1], w.kindOf[m-2] = w.kindOf[m-2], w.kindOf[m-1]
	}
}

// deliver hands over what is queued now.
func (w *wire) deliver(now int64) int {
	n := len(w.queue)
	for i := range n {
		w.to.Input(w.queue[i], now)
		if k := w.kindOf[i]; k != NoKind {
			w.pool[k] = append(w.pool[k], w.queue[i][:2048])
		}
	}
	w.queue = append(w.queue[:0], w.queue[n:]...)
	w.kindOf = append(w.kindOf[:0], w.kindOf[n:]...)
	return n
}

// pair is a client and a server with a wire each way.
type pair struct {
	client, server *Load
	up, down       *wire // from the client, to the client
	now            int64
}

func tuples(v6 bool, clients, ports int) Tuples {
	t := Tuples{ClientPorts: PortRange{1024, ports}, ServerPorts: PortRange{80, 1}}
	base, server := netip.MustParseAddr("198.18.0.10"), netip.MustParseAddr("198.18.0.1")
	if v6 {
		base, server = netip.MustParseAddr("2001:2::10"), netip.MustParseAddr("2001:2::1")
	}
	for range clients {
		t.Clients = append(t.Clients, base)
		base = base.Next()
	}
	t.Servers = []netip.Addr{server}
	return t
}

func newPair(t testing.TB, o LoadOptions) *pair {
	t.Helper()
	p := &pair{up: &wire{rng: rand.New(rand.NewPCG(1, 2))}, down: &wire{rng: rand.New(rand.NewPCG(3, 4))}, now: 1e9}
	mac := []byte{2, 0, 0, 0, 0, 1}
	o.Link.Src, o.Link.Dst = mac, mac
	if o.Request == nil {
		o.Request = []byte("GET / HTTP/1.1\r\nHost: twopath\r\n\r\n")
	}
	if o.Response == nil {
		o.Response = []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
	}
	var err error
	o.Output, o.Role = p.up, Client
	if p.client, err = NewLoad(o); err != nil {
		t.Fatal(err)
	}
	o.Output, o.Role, o.Seed = p.down, Server, 7
	if p.server, err = NewLoad(o); err != nil {
		t.Fatal(err)
	}
	p.up.to, p.down.to = p.server, p.client
	t.Cleanup(func() {
		if err := p.client.Close(); err != nil {
			t.Error(err)
		}
		if err := p.server.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// settle carries frames until nothing moves.
func (p *pair) settle() {
	for p.up.deliver(p.now)+p.down.deliver(p.now) > 0 {
		p.now += 1000
	}
}

// run lets the clock go on, with frames carried at each step, until no connection is open or the time is up.
func (p *pair) run(d int64) {
	for end := p.now + d; p.now < end; p.now += 1 << tickShift {
		p.settle()
		p.client.Tick(p.now)
		p.server.Tick(p.now)
		if p.client.Connections() == 0 && p.server.Connections() == 0 && len(p.up.queue)+len(p.down.queue) == 0 {
			return
		}
	}
}

func (p *pair) open(t testing.TB, n int) {
	t.Helper()
	for range n {
		if !p.client.Open(p.now, p.now) {
			t.Fatal("no tuple was free")
		}
	}
}

// A connection with one request is six packets, three each way.
func TestSixPackets(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		for _, vlan := range []uint16{0, 7} {
			p := newPair(t, LoadOptions{Tuples: tuples(v6, 2, 100), HTTP: true, Link: Link{VLAN: vlan}})
			p.open(t, 150)
			p.settle()
			c, s := p.client.Counters(), p.server.Counters()
			if p.up.sent != 450 || p.down.sent != 450 || c.Completed != 150 || s.Completed != 150 || c.Responses != 150 || c.Open+s.Open != 0 ||
				c.Errors()+s.Errors() != 0 || c.Dropped+s.Dropped+c.Bad+s.Bad != 0 {
				t.Errorf("v6 %v vlan %d: up %d down %d\n%+v\n%+v", v6, vlan, p.up.sent, p.down.sent, c, s)
			}
		}
	}
}

// A kept request is two packets.
func TestKeptRequests(t *testing.T) {
	const n, requests = 50, 20
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 100), HTTP: true, Keep: true, Requests: requests})
	p.open(t, n)
	p.settle()
	c, s := p.client.Counters(), p.server.Counters()
	if c.Responses != n*requests || s.Responses != n*requests || c.Completed != n || s.Completed != n || c.Errors()+s.Errors() != 0 {
		t.Fatalf("%+v\n%+v", c, s)
	}
	if want := n * (requests + 3); p.up.sent != want { // SYN, FIN and the last ACK
		t.Errorf("the client sent %d, want %d", p.up.sent, want)
	}
	if want := n * (requests + 2); p.down.sent != want { // SYN-ACK and FIN
		t.Errorf("the server sent %d, want %d", p.down.sent, want)
	}
}

// Requests at an interval follow their schedule, and latency counts from it.
func TestInterval(t *testing.T) {
	o := &latencies{}
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 10), HTTP: true, Keep: true, Requests: 5, Interval: 20e6, Observe: o})
	began := p.now
	p.open(t, 3)
	p.run(10e9)
	if c := p.client.Counters(); c.Responses != 15 || c.Completed != 3 {
		t.Fatalf("%+v", c)
	}
	if d := p.now - began; d < 80e6 || d > 100e6 {
		t.Errorf("five requests 20 ms apart took %d ms", d/1e6)
	}
	if len(o.responded) != 15 {
		t.Fatalf("%d latencies", len(o.responded))
	}
	for _, ns := range o.responded {
		if ns < 0 || ns > 3e6 {
			t.Errorf("latency %d ns", ns)
		}
	}
}

type latencies struct{ connected, responded []int64 }

func (l *latencies) Connected(ns int64) { l.connected = append(l.connected, ns) }
func (l *latencies) Responded(ns int64) { l.responded = append(l.responded, ns) }

func longResponse(n int) []byte {
	body := make([]byte, n)
	for i := range body {
		body[i] = byte(i * 7)
	}
	return append(fmt.Appendf(nil, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n", n), body...)
}

func TestLongResponse(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for _, any := range []bool{false, true} {
			for _, n := range []int{1400, 1460, 1461, 5000, 1 << 20} {
				p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 10), HTTP: true, Keep: keep, Requests: map[bool]int{true: 3}[keep], Response: longResponse(n), AnyResponse: any})
				p.open(t, 4)
				p.run(20e9)
				c, s := p.client.Counters(), p.server.Counters()
				want := uint64(4)
				if keep {
					want = 12
				}
				if c.Responses != want || c.Completed != 4 || s.Completed != 4 || c.Errors()+s.Errors()+s.DataAgain+c.DataAgain != 0 || c.BytesIn != want*uint64(len(longResponse(n))) {
					t.Errorf("keep %v any %v %d bytes:\n%+v\n%+v", keep, any, n, c, s)
				}
			}
		}
	}
}

// Each single segment of a connection lost, or doubled, in either direction: the connection completes all the same, and
// exactly one retransmission counter tells.
func TestEachSegmentLost(t *testing.T) {
	for _, keep := range []bool{false, true} {
		for dir := range 2 {
			for k := 1; k <= 5; k++ {
				for _, copies := range []int{0, 2} {
					p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 10), HTTP: true, Keep: keep, Requests: map[bool]int{true: 2}[keep]})
					w := []*wire{p.up, p.down}[dir]
					hit := false
					w.fault = func(n int, _ []byte) int {
						if n == k {
							hit = true
							return copies
						}
						return 1
					}
					p.open(t, 1)
					p.run(100e9)
					c, s := p.client.Counters(), p.server.Counters()
					if c.Completed != 1 || c.Open+s.Open != 0 || c.Errors() != 0 || s.Errors() != 0 || s.Completed != 1 {
						t.Errorf("keep %v dir %d segment %d x%d (hit %v):\n%+v\n%+v", keep, dir, k, copies, hit, c, s)
					}
				}
			}
		}
	}
}

// Loss, reordering and duplication at once, both ways: every response is right, nothing is left open.
func TestLossyWire(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 9))
		fault := func(int, []byte) int {
			switch x := rng.Float64(); {
			case x < 0.01:
				return 0
			case x < 0.02:
				return 2
			}
			return 1
		}
		keep := seed%2 == 1
		p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 200), HTTP: true, Keep: keep, Requests: map[bool]int{true: 4}[keep], Response: longResponse(20000)})
		p.up.fault, p.down.fault, p.up.swap, p.down.swap = fault, fault, 0.05, 0.05
		p.open(t, 100)
		p.run(200e9)
		c, s := p.client.Counters(), p.server.Counters()
		want := uint64(100)
		if keep {
			want = 400
		}
		if c.Responses != want || c.Completed != 100 || c.Errors() != 0 || c.Open+s.Open != 0 {
			t.Errorf("seed %d:\n%+v\n%+v", seed, c, s)
		}
	}
}

// Faults of the peer, each with its own counter; connections return to 0.
func TestPeerFaults(t *testing.T) {
	drop := func(int, []byte) int { return 0 }
	flags := func(f []byte) uint8 { return f[14+20+13] }
	for name, c := range map[string]struct {
		set   func(p *pair)
		count func(c Counters) uint64
	}{
		"silent":       {func(p *pair) { p.up.fault = drop }, func(c Counters) uint64 { return c.TimedOut }},
		"silent later": {func(p *pair) { p.down.fault = func(n int, f []byte) int { return map[bool]int{true: 1}[n == 1] } }, func(c Counters) uint64 { return c.TimedOut }},
		"acks and never answers": {func(p *pair) {
			p.down.fault = func(n int, f []byte) int {
				if flags(f)&flagSYN != 0 {
					return 1
				}
				// The server's response becomes a bare ACK.
				f[14+3] = 40
				return 0
			}
			s := p.server
			p.down.fault = func(n int, f []byte) int {
				if flags(f)&(flagSYN|flagRST) != 0 {
					return 1
				}
				sk := &s.socks[0]
				if flags(f)&flagPSH != 0 {
					b := make([]byte, 2048)
					copy(b, s.templates[KindBare].frame)
					w := &wire{}
					w.to = p.client
					out := s.out
					s.out = w
					s.emit(sk, KindBare, flagACK, sk.una, sk.rcv, nil)
					s.out = out
					p.down.queue = append(p.down.queue, w.queue...)
					p.down.kindOf = append(p.down.kindOf, NoKind)
				}
				return 0
			}
		}, func(c Counters) uint64 { return c.ResponseTimeout }},
	} {
		p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 1), HTTP: true})
		c.set(p)
		p.open(t, 1)
		p.run(300e9)
		got := p.client.Counters()
		if got.Open != 0 || c.count(got) != 1 || got.Errors() != 1 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestRefusedAndReset(t *testing.T) {
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 4), HTTP: true})
	p.open(t, 1)
	p.up.queue, p.up.kindOf = nil, nil // the SYN goes astray; a stranger's RST comes
	c := &p.client.socks[0]
	s := p.server
	s.place(0, &s.socks[0])
	s.emit(&s.socks[0], KindBare, flagRST|flagACK, 0, c.nxt+1, nil) // of another number: not believed
	p.down.deliver(p.now)
	if p.client.Counters().Refused != 0 {
		t.Error("an RST that acknowledges nothing ended a connection")
	}
	s.emit(&s.socks[0], KindBare, flagRST|flagACK, 0, c.nxt, nil)
	p.down.deliver(p.now)
	if n := p.client.Counters(); n.Refused != 1 || n.Open != 0 || n.ResetsSent != 0 {
		t.Errorf("%+v", n)
	}
}

// An RST outside the window is ignored, inside it is challenged, and only the exact number ends the connection (RFC 5961).
func TestResetNumbers(t *testing.T) {
	for off, want := range map[uint32][2]uint64{0: {1, 0}, 1: {0, 1}, 1000: {0, 1}, 1 << 31: {0, 0}} {
		p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 1), HTTP: true, Keep: true, Requests: 2, Interval: 1e12})
		p.open(t, 1)
		p.settle()
		sk := &p.server.socks[0]
		p.server.emit(sk, KindBare, flagRST, sk.nxt+off, 0, nil)
		p.down.deliver(p.now)
		if n := p.client.Counters(); n.Reset != want[0] || n.Challenges != want[1] || n.ResetsSent != 0 {
			t.Errorf("RST off by %d: %+v", off, n)
		}
	}
}

// When all tuples are open the launch is counted, and when they are used up they are used again.
func TestTuplesRunOut(t *testing.T) {
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 3), HTTP: true})
	p.open(t, 3)
	if p.client.Open(p.now, p.now) || p.client.Counters().Skipped != 1 {
		t.Error("a fourth of three tuples was opened")
	}
	for range 10 {
		p.settle()
		p.open(t, 3)
	}
	p.settle()
	if c := p.client.Counters(); c.Completed != 33 || c.Errors() != 0 {
		t.Errorf("%+v", c)
	}
}

func TestWrongBody(t *testing.T) {
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 3), HTTP: true})
	p.client.o.Response = []byte("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nno")
	p.open(t, 1)
	p.settle()
	if c := p.client.Counters(); c.BadResponse != 1 || c.Responses != 0 || c.Open != 0 {
		t.Errorf("%+v", c)
	}
	if s := p.server.Counters(); s.Open != 0 || s.Reset != 1 {
		t.Errorf("%+v", s)
	}
}

func TestBadChecksum(t *testing.T) {
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 3), HTTP: true})
	p.up.fault = func(n int, f []byte) int {
		if n == 1 {
			f[14+20+4] ^= 1
		}
		return 1
	}
	p.open(t, 1)
	p.run(10e9)
	if s := p.server.Counters(); s.Bad != 1 || s.Completed != 1 {
		t.Errorf("%+v", s)
	}
}

func TestNoAllocations(t *testing.T) {
	p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 1000), HTTP: true})
	cycle := func() {
		for range 100 {
			p.client.Open(p.now, p.now)
		}
		p.settle()
		p.client.Tick(p.now)
		p.server.Tick(p.now)
	}
	for range 20 {
		cycle()
	}
	if n := testing.AllocsPerRun(50, cycle); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzInput(f *testing.F) {
	p := newPair(f, LoadOptions{Tuples: tuples(false, 1, 2), HTTP: true})
	p.up.fault = func(_ int, b []byte) int { f.Add(append([]byte(nil), b...)); return 1 }
	p.down.fault = p.up.fault
	p.open(f, 2)
	p.settle()
	f.Fuzz(func(t *testing.T, b []byte) {
		p := newPair(t, LoadOptions{Tuples: tuples(false, 1, 2), NoVerify: true, Response: longResponse(9000)})
		p.open(t, 1)
		p.up.deliver(p.now)
		p.client.Input(b, p.now)
		p.server.Input(b, p.now)
		p.run(500e9)
		if p.client.Connections() != 0 {
			t.Errorf("a connection is left open: %+v", p.client.Counters())
		}
	})
}

// BenchmarkConnections is what one side of a connection takes: three frames in and three out. Client and server are run
// against each other in memory, and the time of each is taken by itself.
func BenchmarkConnections(b *testing.B) {
	const batch = 64
	p := newPair(b, LoadOptions{Tuples: tuples(false, 4, 50000), HTTP: true})
	var client, server time.Duration
	timed := func(d *time.Duration, f func()) {
		began := time.Now()
		f()
		*d += time.Since(began)
	}
	b.ReportAllocs()
	for b.Loop() {
		timed(&client, func() {
			for range batch {
				p.client.Open(p.now, p.now)
			}
		})
		for len(p.up.queue)+len(p.down.queue) > 0 {
			timed(&server, func() { p.up.deliver(p.now) })
			timed(&client, func() { p.down.deliver(p.now) })
		}
		p.now += 1000
	}
	n := float64(p.client.Counters().Completed)
	b.ReportMetric(n/client.Seconds(), "client-conn/s")
	b.ReportMetric(n/server.Seconds(), "server-conn/s")
}
