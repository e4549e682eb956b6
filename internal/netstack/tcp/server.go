// SPDX-License-Identifier: Apache-2.0

package tcp

// A server's start holds no time once the handshake is over: its halves are the highest sequence number sent, beyond nxt
// while lost segments are sent again, and where a fast recovery ends.
func (s *sock) high() uint32 { return uint32(s.start) }

func (s *sock) setHigh(n uint32) { s.start = s.start&^0xffffffff | int64(n) }

func (s *sock) recover() uint32 { return uint32(uint64(s.start) >> 32) }

func (s *sock) setRecover(n uint32) { s.start = int64(uint64(n)<<32 | uint64(uint32(s.start))) }

func (l *Load) serverInput(i uint32, s *sock, g *segment) {
	switch s.state {
	case closed, timeWait:
		fresh := g.flags&(flagSYN|flagACK|flagRST) == flagSYN
		switch {
		case fresh && (s.state == closed || !before(g.seq, s.rcv)):
			l.synTaken(i, s, g)
		case s.state == timeWait:
			l.lateSegment(s, g)
		default:
			l.refuse(s, g)
		}
	case synReceived:
		if g.flags&(flagSYN|flagACK|flagRST) == flagSYN && g.seq+1 == s.rcv { // our answer was lost
			l.emit(s, KindSYN, flagSYN|flagACK, s.una, s.rcv, nil)
			return
		}
		if !l.accept(i, s, g) {
			return
		}
		if s.una != s.nxt {
			l.n.Dropped++
			return
		}
		if s.tries == 0 {
			l.rto.sample(l.now - s.start)
		}
		s.state, s.tries = established, 0
		s.start = 0
		s.setHigh(s.nxt)
		l.n.Established++
		l.disarm(i)
		l.serverSegment(i, s, g)
	default:
		if l.accept(i, s, g) {
			l.serverSegment(i, s, g)
		}
	}
}

// synTaken opens a connection (RFC 9293, section 3.10.7.2).
func (l *Load) synTaken(i uint32, s *sock, g *segment) {
	l.peerOptions(s, g)
	s.una = s.nxt + 1
	s.nxt = s.una + 1
	s.rcv = g.seq + 1
	s.state, s.flags, s.tries, s.dups, s.start = synReceived, flagCounted, 0, 0, l.now
	s.base = s.nxt
	l.n.Opened++
	l.n.Open++
	l.emit(s, KindSYN, flagSYN|flagACK, s.una, s.rcv, nil)
	l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
}

// serverSegment is an acceptable segment of a synchronized connection.
func (l *Load) serverSegment(i uint32, s *sock, g *segment) {
	if s.una == s.nxt && s.state != established && l.finAcked(i, s) {
		return
	}
	if len(g.data) > 0 && !l.request(i, s, g.data) {
		return
	}
	if g.flags&flagFIN != 0 {
		if s.state == established && before(s.una, s.base+uint32(len(l.o.Response))) && s.base != s.nxt {
			l.abort(i, s, &l.n.EarlyClose) // before it had its response
			return
		}
		l.peerFIN(i, s)
		return
	}
	if s.state == established && s.una == s.nxt && s.list != listIdle+1 {
		l.arm(i, listIdle, tick(l.now)+l.idle)
	}
}

// request takes a request and answers it. It is false when the connection has ended by it, or the segment was not used.
func (l *Load) request(i uint32, s *sock, data []byte) bool {
	switch {
	case s.state != established: // after our FIN: nothing more is answered
		s.rcv += uint32(len(data))
		l.owe(i, s)
		return true
	case s.una != s.nxt: // the response before is not through: the client sends this again
		l.n.Dropped++
		return false
	}
	s.rcv += uint32(len(data))
	l.n.BytesIn += uint64(len(data))
	if l.o.HTTP && !completeRequest(data) {
		l.abort(i, s, &l.n.BadResponse)
		return false
	}
	l.n.Requests++
	s.base = s.nxt
	s.cwnd, s.low = firstWindow, 1<<16-1
	s.dups, s.flags = 0, s.flags&^flagRecovery
	if len(l.o.Response) > int(s.mss) {
		l.pump(i, s)
		return true
	}
	flags := uint8(flagPSH | flagACK)
	n := uint32(len(l.o.Response))
	if !l.o.Keep {
		flags |= flagFIN
		s.state = finWait1
		n++
	}
	l.emit(s, KindData, flags, s.nxt, s.rcv, nil)
	s.nxt += n
	s.setHigh(s.nxt)
	l.n.Responses++
	l.n.BytesOut += uint64(len(l.o.Response))
	l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
	return true
}

// firstWindow is what a response starts with (RFC 6928), in segments.
const firstWindow = 10

// pump sends what the congestion window and the peer's allow of a response of many segments.
func (l *Load) pump(i uint32, s *sock) {
	end := s.base + uint32(len(l.o.Response))
	for before(s.nxt, end) {
		room := min(uint32(s.cwnd)*uint32(s.mss), s.peerWindow())
		if out := s.nxt - s.una; out >= room {
			break
		} else if n := min(end-s.nxt, uint32(s.mss)); n > room-out && out > 0 {
			break // no silly segments while others are out (RFC 9293, section 3.8.6.2)
		}
		n := min(end-s.nxt, uint32(s.mss), room-(s.nxt-s.una))
		if !l.sendPart(s, s.nxt, n) {
			break
		}
		s.nxt += n
		if s.nxt == end && !l.o.Keep {
			s.nxt++
			s.state = finWait1
		}
		if before(s.high(), s.nxt) {
			if !before(s.nxt, end) {
				l.n.Responses++
				l.n.BytesOut += uint64(len(l.o.Response))
			}
			s.setHigh(s.nxt)
		}
	}
	// The timer runs while something is out, and while a closed window must be probed (RFC 9293, section 3.8.6.1).
	if s.list == 0 || s.list > maxTries+1 {
		l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
	}
}

// sendPart sends n bytes of the response from sequence number seq, with FIN where they are its last and the server closes.
func (l *Load) sendPart(s *sock, seq, n uint32) bool {
	flags := uint8(flagACK)
	from := seq - s.base
	if from+n == uint32(len(l.o.Response)) {
		flags |= flagPSH
		if !l.o.Keep {
			flags |= flagFIN
		}
	}
	if from == 0 && int(n) == len(l.o.Response) {
		return l.emit(s, KindData, flags, seq, s.rcv, nil)
	}
	return l.emit(s, KindPart, flags, seq, s.rcv, l.o.Response[from:from+n])
}

// acked is congestion control on an acknowledgement of n new bytes (RFC 5681, and RFC 6582 for partial ones).
func (l *Load) acked(i uint32, s *sock, n uint32) {
	s.dups, s.tries = 0, 0
	if s.has(flagRecovery) {
		if before(s.una, s.recover()) { // partial: the next segment is lost too
			l.again(s)
			l.n.FastRetransmits++
			return
		}
		s.flags &^= flagRecovery
		s.cwnd = s.low
	} else if s.cwnd < s.low {
		s.cwnd += uint16(min((n+uint32(s.mss)-1)/uint32(s.mss), 2, 1<<16-1-uint32(s.cwnd)))
	} else if s.left++; s.left >= s.cwnd { // about one segment a round trip; a server has no other use for left
		s.cwnd, s.left = min(s.cwnd+1, 1<<15), 0
	}
}

// duplicate is the third duplicate acknowledgement: the segment after it is lost.
func (l *Load) duplicate(i uint32, s *sock) {
	if s.dups++; s.dups != 3 || s.has(flagRecovery) {
		if s.has(flagRecovery) && s.dups > 3 {
			s.cwnd = min(s.cwnd+1, 1<<15)
			l.pump(i, s)
		}
		return
	}
	flight := (s.nxt - s.una) / uint32(s.mss)
	s.low = uint16(max(flight/2, 2))
	s.cwnd = s.low + 3
	s.flags |= flagRecovery
	s.setRecover(s.high())
	l.n.FastRetransmits++
	l.again(s)
}

// again sends the segment at una again.
func (l *Load) again(s *sock) {
	end := s.base + uint32(len(l.o.Response))
	if !before(s.una, end) {
		l.n.FINAgain++
		l.emit(s, KindBare, flagFIN|flagACK, s.una, s.rcv, nil)
		return
	}
	l.n.DataAgain++
	l.sendPart(s, s.una, min(end-s.una, uint32(s.mss)))
}
