// SPDX-License-Identifier: Apache-2.0

package tcp

// Counters are an engine's counts, each of segments, connections or messages. They belong to the goroutine of the engine.
type Counters struct {
	Rx, Tx uint64 // segments of our tuples; Tx with those sent again
	Bad    uint64 // wrong length or checksum
	TxFull uint64 // segments that found no buffer: the timer sends them again

	Opened      uint64 // connections: SYN sent (client), SYN taken (server)
	Established uint64
	Completed   uint64 // closed with all requests answered, or all responses acknowledged
	Open        uint64 // now
	Skipped     uint64 // opens for which no tuple was free

	Requests, Responses       uint64 // sent and received whole, without those sent again
	BytesIn, BytesOut         uint64 // of messages
	SYNAgain, DataAgain       uint64 // retransmissions, by what they carried first
	FINAgain, FastRetransmits uint64
	AckDuplicates             uint64

	Dropped uint64 // segments not used: wrong number, state, or flags

	// Connections that ended otherwise, each in one.
	Refused         uint64 // RST to our SYN
	Reset           uint64 // RST later
	TimedOut        uint64 // a segment was sent again to no end
	ResponseTimeout uint64 // the peer acknowledged a request and never answered
	Idle            uint64 // server: nothing came for the idle time
	BadResponse     uint64 // status or body wrong; the connection ends by RST
	EarlyClose      uint64 // the peer closed before the response was whole, or before it got the request

	ResetsSent uint64
	Challenges uint64 // ACKs sent to what RFC 5961 lets nobody act upon
}

// Errors is how many connections ended otherwise than by plan.
func (c *Counters) Errors() uint64 {
	return c.Refused + c.Reset + c.TimedOut + c.ResponseTimeout + c.Idle + c.BadResponse + c.EarlyClose
}
