// SPDX-License-Identifier: Apache-2.0

package flows

import (
	"fmt"
	"math/bits"
)

// Defaults of a table.
const (
	DefaultSessions = 1 << 16
	DefaultLines    = 256
	maxSessions     = 1 << 24
)

// Options shape a table.
type Options struct {
	Sessions int // that are followed at a time; 0 means DefaultSessions. Packets of further ones are counted as untracked
	Lines    int // different HTTP request lines that are told apart; 0 means DefaultLines
}

// Counts is what a table saw, in frames unless named otherwise.
// Frames = NotIP + Malformed + Fragments + Untracked + ToServer + ToClient.
type Counts struct {
	Frames    uint64 `json:"frames"`
	NotIP     uint64 `json:"not_ip"`
	Malformed uint64 `json:"malformed"` // lengths that contradict each other
	Fragments uint64 `json:"fragments"` // IP fragments other than the first
	Untracked uint64 `json:"untracked"` // of sessions that found the table full

	// Sessions begin with the first packet of a 5-tuple, or with a SYN after the one before was closed or reset.
	TCP   uint64 `json:"tcp"`
	UDP   uint64 `json:"udp"`
	Other uint64 `json:"other"` // ICMP and all else; by addresses and protocol

	Established uint64 `json:"established"` // TCP sessions whose handshake was seen whole
	Closed      uint64 `json:"closed"`      // TCP sessions that both ends finished
	Reset       uint64 `json:"reset"`

	// The server is who the session's first packet went to.
	ToServer      uint64 `json:"to_server"`
	ToClient      uint64 `json:"to_client"`
	ToServerBytes uint64 `json:"to_server_bytes"` // payload of TCP and UDP
	ToClientBytes uint64 `json:"to_client_bytes"`

	Requests uint64 `json:"requests"` // HTTP/1 request lines, retransmissions apart
}

// Sessions are those of all protocols.
func (c Counts) Sessions() uint64 { return c.TCP + c.UDP + c.Other }

// Add adds what another table saw.
func (c *Counts) Add(o Counts) {
	for _, f := range []struct {
		to   *uint64
		from uint64
	}{{&c.Frames, o.Frames}, {&c.NotIP, o.NotIP}, {&c.Malformed, o.Malformed}, {&c.Fragments, o.Fragments}, {&c.Untracked, o.Untracked},
		{&c.TCP, o.TCP}, {&c.UDP, o.UDP}, {&c.Other, o.Other}, {&c.Established, o.Established}, {&c.Closed, o.Closed}, {&c.Reset, o.Reset},
		{&c.ToServer, o.ToServer}, {&c.ToClient, o.ToClient}, {&c.ToServerBytes, o.ToServerBytes}, {&c.ToClientBytes, o.ToClientBytes},
		{&c.Requests, o.Requests}} {
		*f.to += f.from
	}
}

// session is one entry; the ends are those of its key.
type session struct {
	key      key
	round    uint32 // of the table; an older one is a free entry
	state    state
	lowFirst bool // the client is the lower end
	sides    [2]side
}

// side is one direction: 0 from the client.
type side struct {
	next uint32 // sequence number after the last byte seen
	seen bool   // next is known
	fin  bool
}

// Table follows sessions. It belongs to one goroutine.
type Table struct {
	entries []session // twice as many as sessions: chains stay short
	mask    uint64
	limit   int
	used    int
	round   uint32
	c       Counts
	lines   lineTable
	t       tuple
}

// New makes a table; everything it will ever need is allocated here.
func New(o Options) (*Table, error) {
	if o.Sessions == 0 {
		o.Sessions = DefaultSessions
	}
	if o.Lines == 0 {
		o.Lines = DefaultLines
	}
	if o.Sessions < 1 || o.Sessions > maxSessions {
		return nil, fmt.Errorf("flow table: Sessions is %d, want 1..%d", o.Sessions, maxSessions)
	}
	if o.Lines < 1 || o.Lines > 1<<16 {
		return nil, fmt.Errorf("flow table: Lines is %d, want 1..65536", o.Lines)
	}
	size := 1 << bits.Len(uint(2*o.Sessions-1))
	t := &Table{entries: make([]session, size), mask: uint64(size - 1), limit: o.Sessions, round: 1, lines: newLineTable(o.Lines)}
	return t, nil
}

// Counts is what was seen so far.
func (t *Table) Counts() Counts { return t.c }

// Lines are the request lines seen, and how often; those beyond Options.Lines are summed under "".
func (t *Table) Lines() map[string]uint64 { return t.lines.counts() }

// NewRound forgets all sessions, at no cost, and keeps the counts: the same capture begins anew.
func (t *Table) NewRound() {
	t.used = 0
	if t.round++; t.round == 0 { // after 2^32 rounds the oldest entries would look like the newest
		clear(t.entries)
		t.round = 1
	}
}

// Frame follows one Ethernet frame without FCS. It keeps nothing of f.
func (t *Table) Frame(f []byte) {
	t.c.Frames++
	switch t.t.parse(f) {
	case notIP:
		t.c.NotIP++
		return
	case malformed:
		t.c.Malformed++
		return
	case fragment:
		t.c.Fragments++
		return
	}
	k, fromLow := t.t.key()
	s := t.find(&k)
	if s == nil {
		t.c.Untracked++
		return
	}
	if s.round != t.round {
		t.open(s, k, fromLow)
	} else if s.state.over() && t.t.proto == protoTCP && t.t.tcp[tcpFlags]&(flagSYN|flagACK) == flagSYN {
		t.begin(s, fromLow)
	}
	from := 0
	if fromLow != s.lowFirst {
		from = 1
	}
	n := uint64(len(t.t.payload))
	if from == 0 {
		t.c.ToServer++
		t.c.ToServerBytes += n
	} else {
		t.c.ToClient++
		t.c.ToClientBytes += n
	}
	if t.t.proto == protoTCP {
		t.tcp(s, from)
	}
}

// find returns the entry of a key, or a free one for it; nil when the table is full.
func (t *Table) find(k *key) *session {
	for i := k.hash(); ; i++ {
		s := &t.entries[i&t.mask]
		if s.round != t.round {
			if t.used == t.limit {
				return nil
			}
			return s
		}
		if s.key == *k {
			return s
		}
	}
}

// open takes a free entry.
func (t *Table) open(s *session, k key, fromLow bool) {
	t.used++
	s.key, s.round = k, t.round
	t.begin(s, fromLow)
}

// begin counts a new session.
func (t *Table) begin(s *session, fromLow bool) {
	s.state, s.sides = stateNone, [2]side{}
	s.lowFirst = fromLow
	switch t.t.proto {
	case protoTCP:
		t.c.TCP++
		if t.t.tcp[tcpFlags]&(flagSYN|flagACK) == flagSYN|flagACK { // the answer came first: it is the server's
			s.lowFirst = !fromLow
		}
	case protoUDP:
		t.c.UDP++
	default:
		t.c.Other++
	}
}
