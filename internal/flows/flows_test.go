// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"
)

// seg is a TCP segment or UDP datagram to build; from the client unless back.
type seg struct {
	back     bool
	client   string // address; "" is 10.0.0.1
	port     uint16 // of the client; 0 is 40000
	flags    byte
	seq      uint32
	data     string
	udp      bool
	vlan     bool
	pad      int
	fragment uint16 // IPv4 fragment field
	ext      bool   // IPv6 with a destination options header
}

func (s seg) frame() []byte {
	c := netip.MustParseAddr("10.0.0.1")
	if s.client != "" {
		c = netip.MustParseAddr(s.client)
	}
	server := netip.MustParseAddr("10.0.0.2")
	if c.Is6() {
		server = netip.MustParseAddr("2001:db8::2")
	}
	port := s.port
	if port == 0 {
		port = 40000
	}
	src, dst, sp, dp := c, server, port, uint16(80)
	if s.back {
		src, dst, sp, dp = server, c, 80, port
	}
	be := binary.BigEndian
	var l4 []byte
	proto := byte(6)
	if s.udp {
		proto = 17
		l4 = make([]byte, 8)
		be.PutUint16(l4[4:], uint16(8+len(s.data)))
	} else {
		l4 = make([]byte, 20)
		be.PutUint32(l4[4:], s.seq)
		l4[12], l4[13] = 5<<4, s.flags
	}
	be.PutUint16(l4, sp)
	be.PutUint16(l4[2:], dp)
	l4 = append(l4, s.data...)
	f := make([]byte, 12)
	if s.vlan {
		f = append(f, 0x81, 0, 0, 5)
	}
	if c.Is4() {
		f = append(f, 8, 0)
		ip := make([]byte, 20)
		ip[0], ip[9] = 0x45, proto
		be.PutUint16(ip[2:], uint16(20+len(l4)))
		be.PutUint16(ip[6:], s.fragment)
		copy(ip[12:], src.AsSlice())
		copy(ip[16:], dst.AsSlice())
		f = append(f, ip...)
	} else {
		f = append(f, 0x86, 0xdd)
		ip := make([]byte, 40)
		ip[0], ip[6] = 0x60, proto
		if s.ext {
			ip[6] = extDestOpts
			l4 = append([]byte{proto, 0, 1, 4, 0, 0, 0, 0}, l4...)
		}
		be.PutUint16(ip[4:], uint16(len(l4)))
		copy(ip[8:], src.AsSlice())
		copy(ip[24:], dst.AsSlice())
		f = append(f, ip...)
	}
	return append(append(f, l4...), make([]byte, s.pad)...)
}

func follow(t *testing.T, segs ...seg) Counts {
	t.Helper()
	tab := newTable(t, Options{Sessions: 64})
	for _, s := range segs {
		tab.Frame(s.frame())
	}
	return tab.Counts()
}

func newTable(t testing.TB, o Options) *Table {
	t.Helper()
	tab, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func handshake() []seg {
	return []seg{{flags: flagSYN, seq: 99}, {back: true, flags: flagSYN | flagACK, seq: 499}, {flags: flagACK, seq: 100}}
}

func TestSessionFromSYNToFIN(t *testing.T) {
	const get = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n"
	segs := append(handshake(),
		seg{flags: flagACK, seq: 100, data: get}, seg{back: true, flags: flagACK, seq: 500, data: "HTTP/1.1 200 OK\r\n\r\n"},
		seg{flags: flagACK | flagFIN, seq: 100 + uint32(len(get))}, seg{back: true, flags: flagACK | flagFIN, seq: 519}, seg{flags: flagACK, seq: 101 + uint32(len(get)), pad: 6})
	c := follow(t, segs...)
	want := Counts{Frames: 8, TCP: 1, Established: 1, Closed: 1, ToServer: 5, ToClient: 3, ToServerBytes: uint64(len(get)), ToClientBytes: 19, Requests: 1}
	if c != want {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

func TestSessionsBegin(t *testing.T) {
	fins := []seg{{flags: flagFIN | flagACK, seq: 100}, {back: true, flags: flagFIN | flagACK, seq: 500}}
	rst := seg{back: true, flags: flagRST, seq: 500}
	for _, c := range []struct {
		name string
		segs []seg
		want uint64
	}{
		{"a SYN sent again is the same session", append(handshake(), seg{flags: flagSYN, seq: 99}), 1},
		{"the ports again after both FINs", append(append(handshake(), fins...), handshake()...), 2},
		{"the ports again after a reset", append(append(handshake(), rst), handshake()...), 2},
		{"a late ACK after both FINs", append(append(handshake(), fins...), seg{flags: flagACK, seq: 101}), 1},
		{"one FIN is not the end", append(append(handshake(), fins[0]), handshake()...), 1},
		{"another port", append(handshake(), seg{port: 40001, flags: flagSYN}), 2},
		{"another address", append(handshake(), seg{client: "10.0.0.9", flags: flagSYN}), 2},
		{"IPv6", append(handshake(), seg{client: "2001:db8::1", flags: flagSYN}, seg{client: "2001:db8::1", back: true, flags: flagSYN | flagACK}), 2},
		{"a tag and padding change nothing", append(handshake(), seg{vlan: true, pad: 10, flags: flagACK, seq: 100}), 1},
		{"UDP on the same ports", append(handshake(), seg{udp: true, data: "q"}, seg{udp: true, back: true, data: "r"}), 2},
		{"IPv6 with an extension header", []seg{{client: "2001:db8::1", udp: true}, {client: "2001:db8::1", udp: true, back: true, ext: true}}, 1},
	} {
		if got := follow(t, c.segs...).Sessions(); got != c.want {
			t.Errorf("%s: %d sessions, want %d", c.name, got, c.want)
		}
	}
}

// Who begins is the client, also when the capture begins with the server's answer.
func TestDirections(t *testing.T) {
	for _, c := range []struct {
		segs               []seg
		toServer, toClient uint64
	}{
		{[]seg{{back: true, flags: flagSYN | flagACK}, {flags: flagACK}}, 1, 1},
		{[]seg{{flags: flagACK, data: "x"}, {back: true, flags: flagACK}, {back: true, flags: flagACK}}, 1, 2},
		{[]seg{{back: true, udp: true}, {udp: true}, {udp: true}}, 1, 2},
	} {
		got := follow(t, c.segs...)
		if got.ToServer != c.toServer || got.ToClient != c.toClient {
			t.Errorf("%+v: %d to the server, %d to the client", c.segs, got.ToServer, got.ToClient)
		}
	}
}

func TestRequests(t *testing.T) {
	const a, b = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n", "POST /b?c=1 HTTP/1.0\r\nContent-Length: 1\r\n\r\nx"
	data := func(seq int, s string) seg { return seg{flags: flagACK, seq: uint32(seq), data: s} }
	for _, c := range []struct {
		name  string
		segs  []seg
		lines map[string]uint64
	}{
		{"one", []seg{data(0, a)}, map[string]uint64{"GET /a": 1}},
		{"kept alive", []seg{data(0, a), data(len(a), b)}, map[string]uint64{"GET /a": 1, "POST /b?c=1": 1}},
		{"pipelined", []seg{data(0, a+a+b)}, map[string]uint64{"GET /a": 2, "POST /b?c=1": 1}},
		{"sent again", []seg{data(0, a), data(0, a), data(len(a), a)}, map[string]uint64{"GET /a": 2}},
		{"sent again with more", []seg{data(0, a), data(0, a+b)}, map[string]uint64{"GET /a": 1, "POST /b?c=1": 1}},
		{"sequence numbers wrap", []seg{data(-10, a), data(len(a)-10, b), data(-10, a)}, map[string]uint64{"GET /a": 1, "POST /b?c=1": 1}},
		{"after a gap", []seg{data(0, a), data(5000, b)}, map[string]uint64{"GET /a": 1, "POST /b?c=1": 1}},
		{"the line goes on in the next segment", []seg{data(0, "GET /long"), data(9, "er HTTP/1.1\r\n\r\n")}, map[string]uint64{"GET /long": 1}},
		{"all methods", []seg{data(0, "HEAD / HTTP/1.1\r\n\r\nOPTIONS * HTTP/1.1\r\n\r\nCONNECT a:1 HTTP/1.1\r\n\r\nPATCH http://h/ HTTP/1.1\r\n\r\nDELETE /d HTTP/1.1\r\n\r\n")},
			map[string]uint64{"HEAD /": 1, "OPTIONS *": 1, "CONNECT a:1": 1, "PATCH http://h/": 1, "DELETE /d": 1}},
		{"none", []seg{data(0, "GET it while it is hot\r\n"), data(50, "get /a HTTP/1.1\r\n"), data(100, "HTTP/1.1 200 OK\r\n"), data(150, "GET"), data(200, "GET ")}, map[string]uint64{}},
		{"another protocol's line", []seg{data(0, "GET /a SIP/2.0\r\n")}, map[string]uint64{}},
	} {
		tab := newTable(t, Options{Sessions: 8})
		var sum uint64
		for _, s := range c.segs {
			tab.Frame(s.frame())
		}
		for line, n := range c.lines {
			sum += n
			if got := tab.Lines()[line]; got != n {
				t.Errorf("%s: %q %d times, want %d", c.name, line, got, n)
			}
		}
		if got := tab.Counts().Requests; got != sum || len(tab.Lines()) != len(c.lines) {
			t.Errorf("%s: %d requests, lines %v", c.name, got, tab.Lines())
		}
	}
}

// A full table counts what it cannot follow, and keeps following what it has.
func TestBounds(t *testing.T) {
	tab := newTable(t, Options{Sessions: 10, Lines: 3})
	for round := range 2 {
		for p := range uint16(25) {
			tab.Frame(seg{port: 1000 + p, flags: flagACK, seq: uint32(100 * round), data: fmt.Sprintf("GET /%d HTTP/1.1\r\n\r\n", p)}.frame())
		}
	}
	c := tab.Counts()
	if c.TCP != 10 || c.ToServer != 20 || c.Untracked != 30 || c.Requests != 20 {
		t.Errorf("%+v", c)
	}
	if l := tab.Lines(); len(l) != 4 || l["GET /0"] != 2 || l[""] != 14 {
		t.Errorf("lines %v", l)
	}
	tab.NewRound()
	for p := range uint16(25) {
		tab.Frame(seg{port: 2000 + p, flags: flagACK}.frame())
	}
	if c := tab.Counts(); c.TCP != 20 || c.Untracked != 45 {
		t.Errorf("after a new round: %+v", c)
	}
}

// A round counter that wraps brings no old session back.
func TestRoundWraps(t *testing.T) {
	tab := newTable(t, Options{Sessions: 4})
	tab.Frame(seg{flags: flagACK}.frame()) // in round 1
	tab.round = 1<<32 - 1
	tab.NewRound()
	if tab.round == 0 {
		t.Fatal("round 0 would make every free entry a session")
	}
	tab.Frame(seg{flags: flagACK}.frame())
	if c := tab.Counts(); c.TCP != 2 {
		t.Errorf("%+v", c)
	}
}

func TestWhatIsNoPacket(t *testing.T) {
	tab := newTable(t, Options{Sessions: 4})
	arp := make([]byte, 42)
	arp[12], arp[13] = 8, 6
	ok := seg{flags: flagACK}.frame()
	long := seg{flags: flagACK}.frame()
	long[17]++ // total length beyond the frame
	offset := seg{flags: flagACK}.frame()
	offset[14+20+12] = 15 << 4 // TCP header beyond the packet
	frag := seg{udp: true, data: "12345678", fragment: 0x2001}.frame()
	first := seg{udp: true, data: "12345678", fragment: 0x2000}.frame()
	for _, f := range [][]byte{arp, ok, ok[:13], ok[:20], long, offset, frag, first} {
		tab.Frame(f)
	}
	want := Counts{Frames: 8, NotIP: 1, Malformed: 4, Fragments: 1, TCP: 1, UDP: 1, ToServer: 2, ToServerBytes: 8}
	if c := tab.Counts(); c != want {
		t.Errorf("got  %+v\nwant %+v", c, want)
	}
}

// Both directions have one hash; different sessions spread.
func TestHash(t *testing.T) {
	var odd int
	seen := map[uint64]bool{}
	for p := range uint16(4096) {
		a, b := seg{port: p, flags: flagSYN}.frame(), seg{port: p, back: true, flags: flagACK, data: "x"}.frame()
		if Hash(a) != Hash(b) {
			t.Fatalf("port %d: the directions differ", p)
		}
		seen[Hash(a)] = true
		odd += int(Hash(a) & 1)
	}
	if len(seen) != 4096 || odd < 1800 || odd > 2300 {
		t.Errorf("%d different hashes of 4096, %d odd", len(seen), odd)
	}
	if f := (seg{udp: true, fragment: 0x2001}).frame(); Hash(f) == 0 {
		t.Error("a fragment has no hash")
	}
	if Hash(make([]byte, 60)) != 0 {
		t.Error("a frame without IP has a hash")
	}
}

func TestNoAllocation(t *testing.T) {
	tab := newTable(t, Options{Sessions: 64, Lines: 4})
	var frames [][]byte
	for p := range uint16(80) {
		frames = append(frames, seg{port: p, flags: flagSYN}.frame(), seg{port: p, flags: flagACK, seq: 1, data: fmt.Sprintf("GET /%d HTTP/1.1\r\n\r\n", p)}.frame(),
			seg{udp: true, port: p}.frame(), seg{client: "2001:db8::1", flags: flagACK}.frame())
	}
	if n := testing.AllocsPerRun(100, func() {
		for _, f := range frames {
			tab.Frame(f)
		}
		tab.NewRound()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{{Sessions: -1}, {Sessions: maxSessions + 1}, {Lines: -1}, {Lines: 1<<16 + 1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}

// Whatever the bytes, every frame lands in exactly one count.
func FuzzFrame(f *testing.F) {
	for _, s := range append(handshake(), seg{udp: true, vlan: true, data: "x"}, seg{client: "2001:db8::1", ext: true, flags: flagACK, data: "GET / HTTP/1.1\r\n\r\n"}) {
		f.Add(s.frame(), uint64(1))
	}
	f.Fuzz(func(t *testing.T, b []byte, seed uint64) {
		tab := newTable(t, Options{Sessions: 3, Lines: 2})
		rnd := rand.New(rand.NewPCG(seed, 2))
		for range 8 {
			tab.Frame(b)
			Hash(b)
			if len(b) > 0 {
				b[rnd.IntN(len(b))] ^= byte(rnd.Uint32())
			}
		}
		c := tab.Counts()
		if c.Frames != 8 || c.Frames != c.NotIP+c.Malformed+c.Fragments+c.Untracked+c.ToServer+c.ToClient {
			t.Errorf("%+v", c)
		}
		var lines uint64
		for _, n := range tab.Lines() {
			lines += n
		}
		if lines != c.Requests {
			t.Errorf("%d requests, lines %v", c.Requests, tab.Lines())
		}
	})
}

func BenchmarkFrame(b *testing.B) {
	tab := newTable(b, Options{})
	var frames [][]byte
	for p := range uint16(1000) {
		frames = append(frames, seg{port: p, flags: flagSYN}.frame(), seg{port: p, flags: flagACK, seq: 1, data: "GET / HTTP/1.1\r\n\r\n"}.frame())
	}
	for i := 0; b.Loop(); i++ {
		tab.Frame(frames[i%len(frames)])
	}
}
