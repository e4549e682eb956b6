// SPDX-License-Identifier: Apache-2.0

package tcp

// state is a connection's state (RFC 9293, section 3.3.2). Those that the load path passes through in no time have none:
// a FIN that acknowledges our own ends the connection, and CLOSE_WAIT lasts as long as one call.
type state uint8

const (
	closed      state = iota // the tuple may be opened
	synSent                  // client: SYN is out
	synReceived              // server: SYN-ACK is out
	established
	finWait1 // our FIN is out, unacknowledged
	finWait2 // our FIN is acknowledged, the peer's has not come
	closing  // both FINs are out, ours unacknowledged
	lastAck  // the peer closed first, our FIN is out
	// timeWait keeps what a late segment is answered with. It costs nothing, since the socket's memory is its own for ever: it
	// has no timer, and ends with the next use of the tuple (RFC 9293, section 3.10.7.4: a SYN beyond the last sequence
	// number; a client picks a tuple again only after all others).
	timeWait
)

// open tells whether a connection counts as one that is there.
func (s state) open() bool { return s != closed && s != timeWait }

// Flags of a socket.
const (
	flagAckOwed  uint8 = 1 << iota // data came that no segment has acknowledged yet
	flagWaiting                    // client: a request is out and its response has not come whole
	flagHeader                     // client: the response's header has come, left counts the body
	flagPeerFIN                    // the peer's FIN was taken
	flagBad                        // client: the response is not what it should be
	flagRecovery                   // sender: fast recovery (RFC 6582), until all that was out then is acknowledged
	flagScale                      // the peer takes window scaling
	flagCounted                    // in the gauge of open connections
)

// sock is one connection, placed before the run and found by arithmetic: 64 bytes, one cache line, no pointers.
type sock struct {
	next, prev uint32 // timer list, index + 1; 0 is none
	due        uint32 // when the timer runs out, in ticks
	state      state
	list       uint8 // timer list it is in, + 1; 0 is none
	tries      uint8 // times the oldest unacknowledged segment was sent again
	dups       uint8 // duplicate acknowledgements in a row

	una  uint32 // oldest unacknowledged sequence number (SND.UNA)
	nxt  uint32 // next to send (SND.NXT)
	rcv  uint32 // next expected (RCV.NXT)
	base uint32 // sequence number of the message's first byte: of a request, or of a response

	start int64 // ns: when the connection, or the request on a kept one, was meant to start

	sum          uint32 // of addresses, ports and protocol, as the checksum's pseudo header has them, not folded
	cport, sport uint16
	client       uint16 // index of the client's address, and of the server's
	server       uint16

	left   uint16 // client: requests to come after this one
	mss    uint16 // bytes of payload in a segment to the peer
	window uint16 // the peer's, as it came: scaled by scale
	cwnd   uint16 // segments (RFC 5681), of a sender of many; a client counts in it the response's missing bytes' high half
	low    uint16 // ssthresh in segments; a client's low half of the same
	scale  uint8  // of the peer's window (RFC 7323)
	flags  uint8
}

// missing is how many bytes of the response a client still waits for. A client's request is one segment, so the two
// congestion fields are free for it.
func (s *sock) missing() uint32 { return uint32(s.cwnd)<<16 | uint32(s.low) }

func (s *sock) setMissing(n uint32) { s.cwnd, s.low = uint16(n>>16), uint16(n) }

func (s *sock) has(f uint8) bool { return s.flags&f != 0 }

// peerWindow is how many bytes the peer takes beyond una.
func (s *sock) peerWindow() uint32 { return uint32(s.window) << s.scale }

// before compares sequence numbers (RFC 9293, section 3.4): a is before b.
func before(a, b uint32) bool { return int32(a-b) < 0 }
