// SPDX-License-Identifier: Apache-2.0

package flows

import "encoding/binary"

// Fields of a TCP header (RFC 9293, section 3.1).
const (
	tcpSeq   = 4
	tcpFlags = 13
	flagFIN  = 1
	flagSYN  = 2
	flagRST  = 4
	flagACK  = 16
)

// state is how far a TCP session is, as someone sees it who only listens.
type state uint8

const (
	stateNone        state = iota // begun before the capture
	stateSynSent                  // SYN seen
	stateSynReceived              // SYN and the answer to it seen
	stateEstablished              // the handshake was seen whole
	stateClosed                   // both ends have sent FIN
	stateReset
)

// over says that a SYN begins another session.
func (s state) over() bool { return s >= stateClosed }

// tcp follows one segment from the client (0) or the server (1).
func (t *Table) tcp(s *session, from int) {
	h, payload := t.t.tcp, t.t.payload
	flags, seq := h[tcpFlags], binary.BigEndian.Uint32(h[tcpSeq:])
	me := &s.sides[from]
	switch {
	case flags&flagRST != 0:
		if s.state != stateReset {
			s.state = stateReset
			t.c.Reset++
		}
		return
	case flags&(flagSYN|flagACK) == flagSYN:
		if s.state == stateNone {
			s.state = stateSynSent
		}
	case flags&flagSYN != 0:
		if s.state == stateSynSent && from == 1 {
			s.state = stateSynReceived
		}
	case flags&flagACK != 0 && s.state == stateSynReceived && from == 0:
		s.state = stateEstablished
		t.c.Established++
	}
	if flags&flagSYN != 0 {
		seq++ // a SYN takes a number of its own
		me.next, me.seen = seq, true
	}
	t.data(me, seq, payload)
	if flags&flagFIN != 0 && !me.fin {
		me.fin = true
		if s.sides[1-from].fin && !s.state.over() {
			s.state = stateClosed
			t.c.Closed++
		}
	}
}

// data takes what is new of a segment: what lies before the sequence number expected next was seen before, and what lies after
// it comes behind a gap.
func (t *Table) data(me *side, seq uint32, payload []byte) {
	if len(payload) == 0 {
		return
	}
	if me.seen {
		if old := me.next - seq; int32(old) > 0 {
			if int64(old) >= int64(len(payload)) {
				return
			}
			payload, seq = payload[old:], me.next
		}
	}
	me.next, me.seen = seq+uint32(len(payload)), true
	t.http(payload)
}
