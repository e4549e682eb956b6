// SPDX-License-Identifier: Apache-2.0

package tcp

// accept is what all synchronized states do with a segment first (RFC 9293, section 3.10.7.4, with RFC 5961 for RST and
// SYN). It is true when the segment's data and FIN, what is left of them in g, are the next in order. What does not fit is
// answered here; a load generator keeps no data that came too early, since its peer sends it again.
func (l *Load) accept(i uint32, s *sock, g *segment) bool {
	if g.flags&(flagRST|flagSYN) != 0 {
		l.control(i, s, g)
		return false
	}
	if g.flags&flagACK == 0 {
		l.n.Dropped++
		return false
	}
	limit := s.nxt
	if l.layout.server && s.state != synReceived {
		limit = s.high()
	}
	switch {
	case before(limit, g.ack): // of what was never sent
		l.n.Dropped++
		l.challenge(s)
		return false
	case before(s.una, g.ack):
		n := g.ack - s.una
		s.una = g.ack
		if before(s.nxt, g.ack) {
			s.nxt = g.ack
		}
		if s.state != synReceived {
			s.window = g.window
		}
		l.progress(i, s, n)
	case g.ack == s.una:
		update := s.window != g.window
		s.window = g.window
		if s.una != s.nxt && len(g.data) == 0 && g.flags&flagFIN == 0 && l.long() && s.state != synReceived {
			if !update {
				l.n.AckDuplicates++
				l.duplicate(i, s)
			} else {
				l.pump(i, s)
			}
		}
	}
	if g.seq == s.rcv {
		return true
	}
	return l.trim(i, s, g)
}

// long tells whether this engine's messages are of many segments.
func (l *Load) long() bool { return l.layout.server && len(l.o.Response) > l.mss/2 }

// progress is new data acknowledged: the timer starts anew for what is still out, and a long response goes on.
func (l *Load) progress(i uint32, s *sock, n uint32) {
	if l.long() && s.state != synReceived && before(s.base, s.una) {
		l.acked(i, s, n)
		if s.una != s.nxt || before(s.nxt, s.base+uint32(len(l.o.Response))) {
			l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
			l.pump(i, s)
			return
		}
	} else {
		s.tries = 0
	}
	if s.una == s.nxt {
		l.disarm(i)
	} else {
		l.arm(i, 0, tick(l.now)+l.rto.ticks(0))
	}
}

// trim cuts off what was received before. A segment that starts beyond the next number expected has lost one before it.
func (l *Load) trim(i uint32, s *sock, g *segment) bool {
	if before(s.rcv, g.seq) {
		l.n.Dropped++
		if g.length() == 0 {
			return false // nothing in it is missing, and two ends that answer each other's ACKs never stop
		}
		l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil) // at once (RFC 5681, section 4.2)
		return false
	}
	n := g.length()
	old := s.rcv - g.seq
	if old >= n {
		if n == 0 {
			return true // an ACK that was overtaken
		}
		l.n.Dropped++
		l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
		return false
	}
	if old <= uint32(len(g.data)) {
		g.data = g.data[old:]
	} else {
		g.data = nil
	}
	g.seq = s.rcv
	return true
}

// control is RST and SYN in a synchronized state: only an RST with exactly the next number ends the connection.
func (l *Load) control(i uint32, s *sock, g *segment) {
	switch {
	case g.flags&flagRST == 0:
		l.n.Dropped++
		l.challenge(s)
	case g.seq == s.rcv:
		if s.state == lastAck || s.state == closing {
			l.complete(i, s) // all was said; peers that do not wait answer our FIN so
			return
		}
		l.end(i, s, &l.n.Reset)
	default:
		l.n.Dropped++
		if g.seq-s.rcv < uint32(l.window)<<ourScale {
			l.challenge(s)
		}
	}
}

// challenge is the ACK of RFC 5961, which also answers what was never sent. Two ends that each hold the other's number for
// wrong would do so for ever: so many are sent in a second, and no more (section 7).
func (l *Load) challenge(s *sock) {
	if second := l.now / 1e9; second != l.challenged {
		l.challenged, l.challenges = second, 0
	}
	if l.challenges++; l.challenges > challengesAtMost {
		return
	}
	l.n.Challenges++
	l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
}

// challengesAtMost is how many challenges an engine sends in a second.
const challengesAtMost = 1000

// refuse answers a segment that has no connection; an RST is never answered (RFC 9293, section 3.10.7.1).
func (l *Load) refuse(s *sock, g *segment) {
	l.n.Dropped++
	if g.flags&flagRST != 0 {
		return
	}
	l.n.ResetsSent++
	if g.flags&flagACK != 0 {
		l.emit(s, KindBare, flagRST, g.ack, 0, nil)
		return
	}
	l.emit(s, KindBare, flagRST|flagACK, 0, g.seq+g.length(), nil)
}

// lateSegment is TIME_WAIT: the peer's FIN came again, so our ACK was lost.
func (l *Load) lateSegment(s *sock, g *segment) {
	l.n.Dropped++
	if g.flags&flagRST == 0 && (g.length() > 0 || g.flags&flagSYN != 0) {
		l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
	}
}

// owe acknowledges data with the next segment, with the second one without an answer, or at the next tick.
func (l *Load) owe(i uint32, s *sock) {
	if s.has(flagAckOwed) || len(l.owed) == cap(l.owed) {
		l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
		return
	}
	s.flags |= flagAckOwed
	l.owed = append(l.owed, i)
}

// complete is a connection that ended as planned.
func (l *Load) complete(i uint32, s *sock) {
	l.n.Completed++
	l.over(i, s, timeWait)
}

// end counts a connection that ended otherwise.
func (l *Load) end(i uint32, s *sock, why *uint64) {
	*why++
	l.over(i, s, closed)
}

// abort ends a connection by RST, and counts why.
func (l *Load) abort(i uint32, s *sock, why *uint64) {
	l.n.ResetsSent++
	l.emit(s, KindBare, flagRST|flagACK, s.nxt, s.rcv, nil)
	l.end(i, s, why)
}

func (l *Load) over(i uint32, s *sock, next state) {
	l.disarm(i)
	s.state = next
	s.flags = 0
	l.n.Open--
}

// Tick does what the clock asks for: segments sent again, requests that are due, peers given up, delayed ACKs. It should be
// called every millisecond or so.
func (l *Load) Tick(now int64) {
	l.now = now
	for _, i := range l.owed {
		if s := &l.socks[i]; s.has(flagAckOwed) {
			l.emit(s, KindBare, flagACK, s.nxt, s.rcv, nil)
			s.flags &^= flagAckOwed
		}
	}
	l.owed = l.owed[:0]
	t := tick(now)
	for list := range uint8(lists) {
		for f := &l.timers[list]; f.head != 0; {
			i := f.head - 1
			s := &l.socks[i]
			if before(t, s.due) {
				break
			}
			l.disarm(i)
			l.expired(i, s, list)
		}
	}
}

// expired is a timer that ran out.
func (l *Load) expired(i uint32, s *sock, list uint8) {
	switch list {
	case listInterval:
		l.sendRequest(i, s)
	case listResponse:
		if s.state == finWait2 { // the peer never closes: its end is its own affair
			l.complete(i, s)
			return
		}
		l.abort(i, s, &l.n.ResponseTimeout)
	case listIdle:
		l.abort(i, s, &l.n.Idle)
	default:
		l.timeout(i, s, list)
	}
}

// timeout sends the oldest unacknowledged segment again, with double the patience (RFC 6298, section 5.5).
func (l *Load) timeout(i uint32, s *sock, tries uint8) {
	if tries >= maxTries {
		l.abort(i, s, &l.n.TimedOut)
		return
	}
	tries++
	s.tries = tries
	switch {
	case s.state == synSent:
		l.n.SYNAgain++
		l.emit(s, KindSYN, flagSYN, s.una, 0, nil)
	case s.state == synReceived:
		l.n.SYNAgain++
		l.emit(s, KindSYN, flagSYN|flagACK, s.una, s.rcv, nil)
	case !l.layout.server:
		if s.state == established {
			l.n.DataAgain++
			l.resend(s, l.o.Request)
		} else {
			l.n.FINAgain++
			l.emit(s, KindBare, flagFIN|flagACK, s.una, s.rcv, nil)
		}
	case s.una == s.nxt: // the peer's window is closed: one byte asks whether it still is
		l.probe(s)
	default:
		s.low = uint16(max((s.nxt-s.una)/uint32(s.mss)/2, 2))
		s.cwnd, s.dups = 1, 0
		s.flags |= flagRecovery // what follows is sent again as its turn comes
		s.setRecover(s.high())
		l.again(s)
	}
	l.arm(i, tries, tick(l.now)+l.rto.ticks(tries))
}

// probe is a zero-window probe.
func (l *Load) probe(s *sock) {
	if from := s.nxt - s.base; from < uint32(len(l.o.Response)) && l.sendPart(s, s.nxt, 1) {
		s.nxt++
		if before(s.high(), s.nxt) {
			s.setHigh(s.nxt)
		}
	}
}
