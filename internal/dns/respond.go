// SPDX-License-Identifier: Apache-2.0

package dns

import "encoding/binary"

// Answer writes the reply to the query m into dst and returns its length in bytes and its response code: 0 bytes and
// [NoReply] when none is due. dst has at least 512 bytes, and [UDPSize] for whole EDNS answers; it must not overlap m. It
// does not allocate, and may be called from any goroutine.
//
// The question is repeated as it was sent, so a client that mixes case to tell forgeries (dns0x20) finds its own again. A
// reply that does not fit the client, or dst, says so (TC) and carries no records, as RFC 2181, section 9 wants.
func (z *Zone) Answer(dst, m []byte) (n, rcode int) {
	if len(m) < headerLen || m[2]&bitQR != 0 || len(dst) < plainUDP {
		return 0, NoReply
	}
	if m[2]&maskOpcode != 0 {
		return refuse(dst, m, NotImp), NotImp
	}
	var key [maxName]byte
	if binary.BigEndian.Uint16(m[4:]) != 1 {
		return refuse(dst, m, FormErr), FormErr
	}
	q, ok := parse(m, &key)
	if !ok {
		return refuse(dst, m, FormErr), FormErr
	}
	if q.edns && q.version != 0 {
		return q.reply(dst, m, &answer{rcode: BadVersion}, 0), BadVersion
	}
	a, pointer := z.find(key[:q.name], &q)
	return q.reply(dst, m, a, pointer), int(a.rcode)
}

// find looks up what is packed for a question. pointer is where in the reply the zone's own name stands, when the answer
// was packed without knowing that.
func (z *Zone) find(key []byte, q *question) (a *answer, pointer int) {
	switch {
	case q.qclass != classIN && q.qclass != classANY:
		return &z.refused, 0
	case q.qtype == typeOPT:
		return &z.formErr, 0
	case q.qtype >= firstMeta && q.qtype < typeANY: // transfers, signatures of transactions
		return &z.notImp, 0
	}
	if n, ok := z.nodes[string(key)]; ok { // no copy is made of a key that is only looked up
		return n.find(q.qtype), 0
	}
	if at := z.below(key); at > 0 {
		return &z.nxdomain, headerLen + at
	}
	return &z.refused, 0
}

// below returns where in a name the zone's own begins; 0 when the name is not under it.
func (z *Zone) below(key []byte) int {
	for at := 0; len(key)-at > len(z.apex); {
		at += 1 + int(key[at])
		if len(key)-at == len(z.apex) && string(key[at:]) == z.apex {
			return at
		}
	}
	return 0
}

func (n *node) find(qtype uint16) *answer {
	for i := range n.types {
		if n.types[i].qtype == qtype {
			return &n.types[i].answer
		}
	}
	return &n.other
}

// refuse is a reply without the question, for what could not be read, or was not for lack of a meaning.
func refuse(dst, m []byte, rcode byte) int {
	copy(dst[:2], m[:2])
	dst[2] = bitQR | m[2]&(maskOpcode|bitRD)
	dst[3] = m[3]&bitCD | rcode
	clear(dst[4:headerLen])
	return headerLen
}

// reply puts header, question, packed records and the OPT record together.
func (q *question) reply(dst, m []byte, a *answer, pointer int) int {
	refuse(dst, m, byte(a.rcode&15))
	if a.authoritative {
		dst[2] |= bitAA
	}
	dst[5] = 1
	n := headerLen + copy(dst[headerLen:], m[headerLen:q.end])
	room := min(q.size, UDPSize, len(dst))
	if q.edns {
		room -= optLen
	}
	if n+len(a.body) > room {
		dst[2] |= bitTC
	} else {
		binary.BigEndian.PutUint16(dst[6:], a.answers)
		binary.BigEndian.PutUint16(dst[8:], a.authorities)
		body := dst[n : n+copy(dst[n:], a.body)]
		if pointer > 0 {
			binary.BigEndian.PutUint16(body, 0xc000|uint16(pointer))
		}
		n += len(body)
	}
	if !q.edns {
		return n
	}
	dst[11] = 1
	opt := dst[n : n+optLen]
	clear(opt)
	opt[2] = typeOPT
	binary.BigEndian.PutUint16(opt[3:], UDPSize)
	opt[5] = byte(a.rcode >> 4) // the code's upper bits (RFC 6891, 6.1.3)
	if q.do {
		opt[7] = 0x80
	}
	return n + optLen
}
