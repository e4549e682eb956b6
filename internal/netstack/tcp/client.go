// SPDX-License-Identifier: Apache-2.0

package tcp

import "bytes"

// openTries is how many tuples Open looks at before it gives up.
const openTries = 64

// Open starts a connection that was meant to start at the given time. It is false when no tuple is free, which is counted.
func (l *Load) Open(intended, now int64) bool {
	l.now = now
	for range openTries {
		i := l.cursor
		s := &l.socks[i]
		if l.cursor++; int(l.cursor) == len(l.socks) {
			l.cursor = 0
		}
		if s.state.open() {
			continue
		}
		if s.sum == 0 {
			l.place(i, s)
		}
		// Beyond the last number of the connection before, so that a peer in TIME_WAIT takes it (RFC 9293, section 3.10.7.4).
		s.una = s.nxt + 1
		s.nxt = s.una + 1
		s.state, s.flags, s.tries, s.dups, s.start = synSent, flagCounted, 0, 0, intended
		s.left = uint16(max(l.o.Requests, 1) - 1)
		l.n.Opened++
		l.n.Open++
		l.emit(s, KindSYN, flagSYN, s.una, 0, nil)
		l.arm(i, 0, tick(now)+l.rto.ticks(0))
		return true
	}
	l.n.Skipped++
	return false
}

func (l *Load) clientInput(i uint32, s *sock, g *segment) {
	switch s.state {
	case closed:
		l.refuse(s, g)
	case timeWait:
		l.lateSegment(s, g)
	case synSent:
		l.synAnswered(i, s, g)
	default:
		if l.accept(i, s, g) {
			l.clientSegment(i, s, g)
		}
	}
}

// synAnswered is SYN_SENT (RFC 9293, section 3.10.7.3). Two SYNs that cross are not a load generator's business.
func (l *Load) synAnswered(i uint32, s *sock, g *segment) {
	acked := g.flags&flagACK != 0 && g.ack == s.nxt
	switch {
	case g.flags&flagRST != 0:
		if acked {
			l.end(i, s, &l.n.Refused)
		} else {
			l.n.Dropped++
		}
	case g.flags&flagACK != 0 && !acked: // of an older connection of this tuple: the RST ends it there, and the SYN is sent again
		l.refuse(s, g)
	case g.flags&flagSYN == 0 || !acked:
		l.n.Dropped++
	default:
		l.peerOptions(s, g)
		s.rcv, s.una = g.seq+1, g.ack
		if s.tries == 0 {
			l.rto.sample(l.now - s.start)
		}
		if l.o.Observe != nil {
			l.o.Observe.Connected(l.now - s.start)
		}
		s.state, s.tries = established, 0
		l.n.Established++
		l.sendRequest(i, s)
	}
}

// peerOptions takes what the peer's SYN says of it.
func (l *Load) peerOptions(s *sock, g *segment) {
	mss, scale := g.synOptions()
	if mss == 0 {
		mss = 536 // RFC 9293, section 3.7.1; for IPv6 1220, which is more
	}
	s.mss, s.window = min(max(mss, 64), uint16(l.mss)), g.window
	s.scale = 0
	if scale >= 0 {
		s.scale = uint8(scale)
	}
}

// sendRequest sends the next request; it acknowledges all that came, too.
func (l *Load) sendRequest(i uint32, s *sock) {
	s.base = s.nxt
	s.flags = s.flags&^(flagHeader|flagBad) | flagWaiting
	s.setMissing(uint32(len(l.o.Response)))
	l.n.Requests++
	l.n.BytesOut += uint64(len(l.o.Request))
	s.nxt += uint32(len(l.o.Request))
	l.resend(s, l.o.Request)
	l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
}

// resend sends all of a client's request from una on. It is at most a few segments, when the peer's are short.
func (l *Load) resend(s *sock, msg []byte) {
	if s.una == s.base && len(msg) <= int(s.mss) {
		l.emit(s, KindData, flagPSH|flagACK, s.una, s.rcv, nil)
		return
	}
	for seq := s.una; before(seq, s.base+uint32(len(msg))); {
		from := seq - s.base
		n := min(uint32(s.mss), uint32(len(msg))-from)
		if !l.emit(s, KindPart, flagPSH|flagACK, seq, s.rcv, msg[from:from+n]) {
			return
		}
		seq += n
	}
}

// clientSegment is an acceptable segment of a synchronized connection.
func (l *Load) clientSegment(i uint32, s *sock, g *segment) {
	if s.una == s.nxt && l.finAcked(i, s) {
		return
	}
	if len(g.data) > 0 {
		if s.state != established { // we have closed: what still comes is acknowledged and not looked at
			s.rcv += uint32(len(g.data))
			l.owe(i, s)
		} else if !l.response(i, s, g.data) {
			return
		}
	} else if s.has(flagWaiting) && s.una == s.nxt && s.list != listResponse+1 {
		l.arm(i, listResponse, tick(l.now)+l.patience)
	}
	if g.flags&flagFIN != 0 {
		l.peerFIN(i, s)
	}
}

// response takes bytes of a response in. It is false when the connection has ended by it.
func (l *Load) response(i uint32, s *sock, data []byte) bool {
	s.rcv += uint32(len(data))
	l.n.BytesIn += uint64(len(data))
	if !s.has(flagWaiting) || !l.right(s, data) {
		l.abort(i, s, &l.n.BadResponse)
		return false
	}
	if s.missing() > 0 || l.o.AnyResponse && !s.has(flagHeader) {
		l.owe(i, s)
		if s.una == s.nxt {
			l.arm(i, listResponse, tick(l.now)+l.patience)
		}
		return true
	}
	s.flags &^= flagWaiting
	l.n.Responses++
	if l.o.Observe != nil {
		l.o.Observe.Responded(l.now - s.start)
	}
	l.answered(i, s)
	return true
}

// right compares what came with what should, and counts it off.
func (l *Load) right(s *sock, data []byte) bool {
	missing := s.missing()
	if l.o.AnyResponse && !s.has(flagHeader) {
		body, length, ok := parseResponse(data)
		if !ok {
			return false
		}
		s.flags |= flagHeader
		data, missing = body, length
	} else if !l.o.AnyResponse {
		from := uint32(len(l.o.Response)) - missing
		if uint32(len(data)) > missing || !bytes.Equal(data, l.o.Response[from:from+uint32(len(data))]) {
			return false
		}
	}
	if uint32(len(data)) > missing {
		return false
	}
	s.setMissing(missing - uint32(len(data)))
	return true
}

// answered goes on after a response: with the next request, or towards the end.
func (l *Load) answered(i uint32, s *sock) {
	if s.left == 0 {
		if l.o.Keep { // the server would wait for more
			l.sendFIN(i, s, finWait1)
			return
		}
		l.owe(i, s)
		l.arm(i, listResponse, tick(l.now)+l.patience) // for the server's FIN
		return
	}
	s.left--
	if l.o.Interval == 0 {
		s.start = l.now
		l.sendRequest(i, s)
		return
	}
	s.start += l.o.Interval // the schedule stands: a late response does not move it
	if s.start <= l.now {
		l.sendRequest(i, s)
		return
	}
	if l.o.Interval >= quietAck {
		l.owe(i, s)
	}
	l.arm(i, listInterval, tick(s.start))
}

// quietAck is how long in ns a response may stay unacknowledged, for the next request to do it: half of what the most
// impatient peer waits before it sends again.
const quietAck = leastRTO / 2

// peerFIN takes the peer's FIN.
func (l *Load) peerFIN(i uint32, s *sock) {
	s.rcv++
	s.flags |= flagPeerFIN
	switch s.state {
	case established:
		if !l.layout.server && (s.has(flagWaiting) || s.left > 0) {
			l.abort(i, s, &l.n.EarlyClose)
			return
		}
		l.sendFIN(i, s, lastAck)
	case finWait1: // ours was not acknowledged, or finAcked had come first
		s.state = closing
		l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
	case finWait2:
		l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
		l.complete(i, s)
	}
}

// finAcked moves on when all that we sent is acknowledged; true when the connection is over.
func (l *Load) finAcked(i uint32, s *sock) bool {
	switch s.state {
	case finWait1:
		s.state = finWait2
		l.arm(i, listResponse, tick(l.now)+l.patience)
	case closing, lastAck:
		l.complete(i, s)
		return true
	}
	return false
}

// sendFIN closes our side; it acknowledges all that came, too.
func (l *Load) sendFIN(i uint32, s *sock, next state) {
	s.state = next
	l.emit(s, KindBare, flagFIN|flagACK, s.nxt, s.rcv, nil)
	s.nxt++
	if l.layout.server {
		s.setHigh(s.nxt)
	}
	l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
}
