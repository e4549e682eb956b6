// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"errors"
	"fmt"

	"twopath/internal/packet"
)

// Role is which end of its connections an engine is.
type Role uint8

// The roles.
const (
	Client Role = iota
	Server
)

// LoadOptions shapes a load engine.
type LoadOptions struct {
	Role   Role
	Tuples Tuples
	Link   Link
	Output Output

	// Request and Response are the messages. The request is one segment. An engine of either role knows both: a client
	// compares what it gets with Response, byte by byte, unless AnyResponse.
	Request, Response []byte
	// HTTP says that messages are HTTP/1.1: a server looks for the end of the request's header, a client for status and
	// Content-Length. Without it a request is one segment of any content, and a response is as long as Response.
	HTTP bool
	// AnyResponse takes every response with status 2xx (HTTP only).
	AnyResponse bool
	// Requests is how many a client sends on a connection before it closes; 0 is 1. With more than one the server keeps
	// connections open, which it is told by Keep.
	Requests int
	Keep     bool
	// Interval is the time in ns between the starts of two requests of a connection; 0 sends the next when the response is in.
	Interval int64
	// ResponseTimeout in ns gives up a connection whose peer acknowledged the request and never answered; 0 is 10 s.
	ResponseTimeout int64
	// IdleTimeout in ns ends a server's connection that nothing comes on; 0 is 60 s.
	IdleTimeout int64
	MSS         int // bytes of payload in a segment; 0 is 1460, for IPv6 1440
	Seed        uint64
	NoVerify    bool // do not verify checksums of what comes in
	// Observe (optional) gets the time in ns from a request's intended start to the response's last byte, and from the
	// SYN to its answer.
	Observe Observer
}

// Observer takes latencies.
type Observer interface {
	Connected(ns int64)
	Responded(ns int64)
}

// Load is the TCP of a load engine: every connection is placed beforehand and found by arithmetic, requests go with the
// handshake's last ACK and responses with FIN, so that a connection is six packets and a kept request two. Frames go in by
// Input, time by Tick, connections are opened by Open; frames come out at Output. One goroutine calls all methods.
type Load struct {
	o         LoadOptions
	out       Output
	layout    layout
	clients   directory
	servers   directory
	table     table
	socks     []sock
	templates [kinds]template
	timers    [lists]fifo
	rto       rto
	n         Counters
	seg       segment

	cursor    uint32 // the tuple to try next
	mss       int
	window    uint16
	synWindow uint16
	isn       uint64 // state of the sequence number generator
	owed      []uint32
	interval  uint32 // ticks
	patience  uint32
	idle      uint32
	now       int64

	challenged int64 // second of the newest challenge, and how many there were in it
	challenges int
}

const (
	ourScale   = 7 // of our window: 65535 << 7 is 8 MiB
	owedAtMost = 1024
	mss4       = 1460
	mss6       = 1440
)

// NewLoad places the sockets and builds the templates. Close frees them.
func NewLoad(o LoadOptions) (*Load, error) {
	if err := o.Tuples.check(); err != nil {
		return nil, err
	}
	l := &Load{o: o, out: o.Output, isn: o.Seed*2 + 1, owed: make([]uint32, 0, owedAtMost)}
	l.layout = layout{l2: o.Link.len(), v6: o.Tuples.Clients[0].Is6(), server: o.Role == Server}
	ip, most := packet.IPv4Len, mss4
	if l.layout.v6 {
		ip, most = packet.IPv6Len, mss6
	}
	l.layout.l3, l.layout.l4 = l.layout.l2, l.layout.l2+ip
	if l.mss = o.MSS; l.mss == 0 {
		l.mss = most
	}
	switch {
	case o.Output == nil:
		return nil, errors.New("load options: Output is nil")
	case len(o.Link.Src) != 6 || len(o.Link.Dst) != 6:
		return nil, errors.New("load options: Link needs two Ethernet addresses")
	case l.mss < 64 || l.mss > 9000:
		return nil, fmt.Errorf("load options: MSS is %d, want 64..9000", l.mss)
	case len(o.Request) == 0 || len(o.Request) > l.mss:
		return nil, fmt.Errorf("load options: a request of %d bytes is not one segment of 1..%d", len(o.Request), l.mss)
	case len(o.Response) == 0 && !o.AnyResponse || len(o.Response) > 1<<30:
		return nil, fmt.Errorf("load options: a response of %d bytes, want 1..%d", len(o.Response), 1<<30)
	case o.Requests < 0 || o.Requests > 1<<16:
		return nil, fmt.Errorf("load options: %d requests on a connection, want at most %d", o.Requests, 1<<16)
	case o.AnyResponse && !o.HTTP:
		return nil, errors.New("load options: AnyResponse needs HTTP, or nothing says where a response ends")
	}
	var err error
	if l.clients, err = newDirectory("clients", o.Tuples.Clients); err != nil {
		return nil, err
	}
	if l.servers, err = newDirectory("servers", o.Tuples.Servers); err != nil {
		return nil, err
	}
	l.rto = rto{ns: firstRTO, least: leastRTO}
	l.interval = uint32(o.Interval >> tickShift)
	l.patience, l.idle = ticksOr(o.ResponseTimeout, 10e9), ticksOr(o.IdleTimeout, 60e9)
	l.window, l.synWindow = 65535, 65535
	payload := o.Request
	if o.Role == Server {
		payload = o.Response
	}
	if len(payload) > l.mss {
		payload = nil // sent in parts
	}
	syn := []byte{2, 4, byte(l.mss >> 8), byte(l.mss), 1, 3, 3, ourScale}
	l.templates[KindSYN] = newTemplate(o.Link, l.layout, syn, nil)
	l.templates[KindBare] = newTemplate(o.Link, l.layout, nil, nil)
	l.templates[KindData] = newTemplate(o.Link, l.layout, nil, payload)
	l.templates[KindPart] = newTemplate(o.Link, l.layout, nil, nil)
	if l.table, err = newTable(o.Tuples.Count()); err != nil {
		return nil, err
	}
	l.socks = l.table.socks
	return l, nil
}

func ticksOr(ns int64, otherwise float64) uint32 {
	if ns <= 0 {
		ns = int64(otherwise)
	}
	return max(uint32(ns>>tickShift), 1)
}

// MaxFrame is the longest frame that the engine sends, in bytes without FCS: what a buffer must hold.
func (l *Load) MaxFrame() int { return max(l.layout.l4+tcpLen+l.mss, minFrame) }

// Counters are the counts so far.
func (l *Load) Counters() Counters { return l.n }

// Connections is how many are open.
func (l *Load) Connections() uint64 { return l.n.Open }

// Close frees the sockets.
func (l *Load) Close() error {
	l.socks = nil
	return l.table.close()
}

// random is a generator of sequence numbers: splitmix64. They are no secret here; what matters is that they differ.
func (l *Load) random() uint32 {
	l.isn += 0x9e3779b97f4a7c15
	z := l.isn
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return uint32(z >> 32)
}

// index is the place of a tuple: [client address][client port][server port][server address].
func (l *Load) index(client int, cport uint16, server int, sport uint16) uint32 {
	t := &l.o.Tuples
	return uint32(((client*t.ClientPorts.Count+int(cport-t.ClientPorts.First))*t.ServerPorts.Count+int(sport-t.ServerPorts.First))*len(t.Servers) + server)
}

// place writes a socket's tuple into it, when it is used for the first time.
func (l *Load) place(i uint32, s *sock) {
	t := &l.o.Tuples
	n := int(i)
	s.server = uint16(n % len(t.Servers))
	n /= len(t.Servers)
	s.sport = t.ServerPorts.First + uint16(n%t.ServerPorts.Count)
	n /= t.ServerPorts.Count
	s.cport = t.ClientPorts.First + uint16(n%t.ClientPorts.Count)
	s.client = uint16(n / t.ClientPorts.Count)
	s.sum = l.clients.sums[s.client] + l.servers.sums[s.server] + uint32(s.cport) + uint32(s.sport) + protoTCP
	s.nxt = l.random()
}

// find is the socket of a segment that came in.
func (l *Load) find(g *segment) (uint32, *sock) {
	src, dst, cport, sport := g.src, g.dst, g.sport, g.dport
	if !l.layout.server {
		src, dst, cport, sport = g.dst, g.src, g.dport, g.sport
	}
	t := &l.o.Tuples
	if int(cport)-int(t.ClientPorts.First) < 0 || int(cport-t.ClientPorts.First) >= t.ClientPorts.Count ||
		int(sport)-int(t.ServerPorts.First) < 0 || int(sport-t.ServerPorts.First) >= t.ServerPorts.Count {
		return 0, nil
	}
	c, ok := l.clients.find(src)
	if !ok {
		return 0, nil
	}
	v, ok := l.servers.find(dst)
	if !ok {
		return 0, nil
	}
	i := l.index(c, cport, v, sport)
	s := &l.socks[i]
	if s.sum == 0 {
		l.place(i, s)
	}
	return i, s
}

// Input takes a frame in at time now (ns of a monotonic clock).
func (l *Load) Input(f []byte, now int64) Verdict {
	l.now = now
	g := &l.seg
	if !l.tagged(f) {
		return NotOurs
	}
	if v := g.parse(f, l.layout.l2, l.layout.v6, !l.o.NoVerify); v != Taken {
		if v == Bad {
			l.n.Bad++
		}
		return v
	}
	i, s := l.find(g)
	if s == nil {
		return NotOurs
	}
	l.n.Rx++
	if l.layout.server {
		l.serverInput(i, s, g)
	} else {
		l.clientInput(i, s, g)
	}
	return Taken
}

// tagged tells whether the frame has the EtherType, and the tag, of this engine.
func (l *Load) tagged(f []byte) bool {
	if len(f) < l.layout.l4+tcpLen {
		return false
	}
	e := f[12:]
	if tag := l.o.Link.VLAN; tag != 0 {
		if be16(e) != packet.EtherTypeVLAN || be16(e[2:])&0xfff != tag {
			return false
		}
		e = e[4:]
	}
	if l.layout.v6 {
		return be16(e) == packet.EtherTypeIPv6
	}
	return be16(e) == packet.EtherTypeIPv4
}

func be16(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }

// Counted is Counters without the copy, for the engine's own goroutine; it is read only.
func (l *Load) Counted() *Counters { return &l.n }
