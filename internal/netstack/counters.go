// SPDX-License-Identifier: Apache-2.0

package netstack

// Counters are running totals. A datagram that was begun is in Datagrams, in GivenUp, or still held:
// Begun + IDReuse = Datagrams + GivenUp + pending.
type Counters struct {
	Fragments uint64 // packets that were fragments, dropped ones included
	Used      uint64 // of these, how many are in Datagrams
	Unbroken  uint64 // packets that were whole datagrams by themselves, atomic fragments (RFC 6946) included
	Begun     uint64 // datagrams of which a first fragment came
	Datagrams uint64 // put together

	// Why datagrams were given up.
	Timeout      uint64 // not complete in time
	Overlap      uint64 // a fragment overlapped others (RFC 5722; Linux treats IPv4 alike)
	Inconsistent uint64 // two different ends, bytes beyond the end, or an empty fragment
	TooBig       uint64 // IPv4: more than 65,535 bytes with its header
	IDReuse      uint64 // IPv4: too many other fragments came in between; begun anew with the fragment that came
	Evicted      uint64 // no memory: the oldest made room, or one was too much alone
	NoBuffer     uint64 // complete, but the buffer given was too short

	// Fragments that were dropped alone.
	Duplicate uint64 // held already
	BadLength uint64 // not the last and yet no multiple of 8 bytes long. IPv4: only the bytes beyond are dropped
	Beyond    uint64 // IPv6: ends beyond 65,535 bytes
	BadHeader uint64 // packets with a wrong IP header, and IPv6 fragments without the whole upper header (RFC 7112)
}

// GivenUp is the number of datagrams that will never be whole.
func (c Counters) GivenUp() uint64 {
	return c.Timeout + c.Overlap + c.Inconsistent + c.TooBig + c.IDReuse + c.Evicted + c.NoBuffer
}
