// SPDX-License-Identifier: Apache-2.0

package dns

import "encoding/binary"

// Sizes in bytes (RFC 1035, RFC 6891).
const (
	headerLen   = 12
	maxName     = 255 // of a name on the wire
	maxLabel    = 63
	optLen      = 11  // an OPT record without options
	plainUDP    = 512 // the most that a client without EDNS takes
	questionEnd = 4   // type and class behind the name

	// UDPSize is what a reply has at most, whatever more the client would take: it then fits every path unfragmented.
	UDPSize = 1232
)

// Header bits, in byte 2 and byte 3 of a message.
const (
	bitQR, bitAA, bitTC, bitRD = 0x80, 0x04, 0x02, 0x01
	maskOpcode                 = 0x78
	bitCD                      = 0x10
)

// Response codes (IANA); badVersion needs EDNS to say it.
const (
	NoError    = 0
	FormErr    = 1
	NXDomain   = 3
	NotImp     = 4
	Refused    = 5
	BadVersion = 16
	NoReply    = -1 // nothing is due: a response, or too short for a header
	typeOPT    = 41
	typeANY    = 255
	classIN    = 1
	classANY   = 255
	firstMeta  = 128 // to 255: types that ask for other than records of the type (RFC 6895, section 3.1)
	maxExtra   = 4   // additional records that are looked through for an OPT
)

// question is what a query asks, and how much of an answer its client takes.
type question struct {
	name    int // bytes of the name on the wire, the root label included
	end     int // offset behind the question
	qtype   uint16
	qclass  uint16
	edns    bool
	version uint8 // of EDNS
	do      bool  // DNSSEC OK, which a reply repeats (RFC 3225)
	size    int   // bytes the client takes
}

// parse reads the question and the OPT record of a query whose header has been looked at, and writes the name to key in
// lower case. A name must be spelled out: a pointer in a question could only point into the header or to itself. What does
// not parse to its very end is no query.
func parse(m []byte, key *[maxName]byte) (q question, ok bool) {
	q.size = plainUDP
	at := headerLen
	for {
		if at >= len(m) {
			return q, false
		}
		n := int(m[at])
		if n > maxLabel || q.name+1+n > maxName || at+1+n > len(m) { // pointers and other label types are over maxLabel
			return q, false
		}
		key[q.name] = byte(n)
		for i := 1; i <= n; i++ {
			key[q.name+i] = lower(m[at+i])
		}
		q.name += 1 + n
		at += 1 + n
		if n == 0 {
			break
		}
	}
	if at+questionEnd > len(m) {
		return q, false
	}
	q.qtype, q.qclass = binary.BigEndian.Uint16(m[at:]), binary.BigEndian.Uint16(m[at+2:])
	q.end = at + questionEnd
	// Answers and authorities have no place in a query.
	if binary.BigEndian.Uint32(m[6:]) != 0 {
		return q, false
	}
	extra := int(binary.BigEndian.Uint16(m[10:]))
	if extra > maxExtra {
		return q, false
	}
	at = q.end
	for range extra {
		if at, ok = q.additional(m, at); !ok {
			return q, false
		}
	}
	return q, at == len(m)
}

// additional reads the record at an offset and returns the offset behind it.
func (q *question) additional(m []byte, at int) (next int, ok bool) {
	root := at < len(m) && m[at] == 0
	if at, ok = skipName(m, at); !ok || at+10 > len(m) {
		return at, false
	}
	kind, size, ttl := binary.BigEndian.Uint16(m[at:]), binary.BigEndian.Uint16(m[at+2:]), binary.BigEndian.Uint32(m[at+4:])
	next = at + 10 + int(binary.BigEndian.Uint16(m[at+8:]))
	if next > len(m) {
		return at, false
	}
	if kind != typeOPT {
		return next, true
	}
	if q.edns || !root { // RFC 6891, 6.1.1: one, and its name is the root
		return at, false
	}
	q.edns, q.version, q.do = true, uint8(ttl>>16), ttl&0x8000 != 0
	q.size = max(int(size), plainUDP)
	return next, true
}

// skipName steps over a name, which ends at the first pointer; where that leads to is not looked at.
func skipName(m []byte, at int) (next int, ok bool) {
	for length := 0; length < maxName; {
		if at >= len(m) {
			return at, false
		}
		n := int(m[at])
		switch {
		case n == 0:
			return at + 1, true
		case n >= 0xc0:
			return at + 2, at+2 <= len(m)
		case n > maxLabel:
			return at, false
		}
		at += 1 + n
		length += 1 + n
	}
	return at, false
}

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}
