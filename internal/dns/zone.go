// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Zone is a zone with an answer packed for everything that may be asked of it. It does not change once it is read.
type Zone struct {
	origin string // as in the file, with a dot at its end
	apex   string // the same on the wire, in lower case
	nodes  map[string]*node
	rrsets map[string]map[uint16][]dns.RR // by name in lower case and type; names that only lead to others are empty

	nxdomain, refused, formErr, notImp answer
}

// node is a name of the zone.
type node struct {
	types []typed
	other answer // to every type that is not there
}

type typed struct {
	qtype uint16
	answer
}

// answer is what follows the question, packed. Compressed names in it lead to the question or to one another.
type answer struct {
	rcode                uint16
	authoritative        bool
	answers, authorities uint16
	body                 []byte
}

// ZoneError is a zone file that cannot be served. Line is 0 when it is not one line's fault.
type ZoneError struct {
	File    string
	Line    int
	Problem string
}

func (e *ZoneError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return e.File + ": " + e.Problem
}

// maxRecords bounds a zone: answers are held in memory, and the test is for small ones.
const maxRecords = 100_000

// maxSet bounds the records of one name and type: an answer over UDP holds fewer than a hundred.
const maxSet = 1000

// ParseZone reads a master file (RFC 1035, section 5) of one zone. file names it in errors, each of which is a
// [*ZoneError]. The zone has one SOA record, whose name is the zone's. What this responder cannot answer rightly is
// refused: wildcards, delegations, DNAME, other classes than IN, $INCLUDE.
func ParseZone(r io.Reader, file string) (*Zone, error) {
	z := &Zone{nodes: map[string]*node{}, rrsets: map[string]map[uint16][]dns.RR{}}
	bad := func(line int, format string, args ...any) (*Zone, error) {
		return nil, &ZoneError{File: file, Line: line, Problem: fmt.Sprintf(format, args...)}
	}
	records, err := readRecords(r, file)
	if err != nil {
		return nil, err
	}
	for _, rec := range records {
		if soa, ok := rec.rr.(*dns.SOA); ok {
			if z.origin != "" {
				return bad(rec.line, "a second SOA record (%s): one file is one zone", soa.Hdr.Name)
			}
			z.origin = soa.Hdr.Name
		}
	}
	if z.origin == "" {
		return bad(0, "no SOA record: a zone begins with one")
	}
	b := make([]byte, maxMessage)
	for _, rec := range records {
		if problem := z.add(rec.rr, b); problem != "" {
			return bad(rec.line, "%s", problem)
		}
	}
	if err := z.pack(); err != nil {
		return bad(0, "%v", err)
	}
	return z, nil
}

// record is a record and the line it ends in.
type record struct {
	rr   dns.RR
	line int
}

// readRecords parses the file, and finds the lines of errors and records by how far the library has read.
func readRecords(r io.Reader, file string) ([]record, error) {
	lines := &lineReader{r: bufio.NewReader(r)}
	p := dns.NewZoneParser(lines, "", "")
	p.SetDefaultTTL(3600)
	var out []record
	for rr, ok := p.Next(); ok; rr, ok = p.Next() {
		if out = append(out, record{rr, lines.given}); len(out) > maxRecords {
			return nil, &ZoneError{file, lines.given, fmt.Sprintf("more than %d records", maxRecords)}
		}
	}
	if err := p.Err(); err != nil {
		text, line := err.Error(), lines.given
		if m := atLine.FindStringSubmatch(text); m != nil {
			text = strings.Replace(text, m[0], "", 1)
			if n, e := strconv.Atoi(m[1]); e == nil && !lines.generate { // there it is a line of what was generated
				line = n
			}
		}
		return nil, &ZoneError{file, line, strings.TrimPrefix(strings.TrimPrefix(text, ": "), "dns: ")}
	}
	if lines.err != nil {
		return nil, &ZoneError{file, lines.given, lines.err.Error()}
	}
	return out, nil
}

// lineReader gives a file away line by line, so that it is known how far a parser has read: no further than it must.
type lineReader struct {
	r        *bufio.Reader
	rest     []byte
	given    int  // lines
	generate bool // the last of them was a $GENERATE
	err      error
}

func (l *lineReader) Read(p []byte) (int, error) {
	if len(l.rest) == 0 {
		line, err := l.r.ReadBytes('\n')
		if len(line) == 0 {
			if err != io.EOF {
				l.err = err
			}
			return 0, io.EOF
		}
		l.rest = line
		l.given++
		l.generate = bytes.HasPrefix(bytes.ToUpper(line), []byte("$GENERATE"))
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

var atLine = regexp.MustCompile(` at line: ([0-9]+):[0-9]+`)

// add files a record under its name, or tells what is wrong with it. b is room for one.
func (z *Zone) add(rr dns.RR, b []byte) string {
	h := rr.Header()
	name := dns.CanonicalName(h.Name)
	apex := dns.CanonicalName(z.origin)
	what := h.Name + " " + dns.TypeToString[h.Rrtype]
	switch {
	case h.Class != dns.ClassINET:
		return what + ": not of class IN"
	case !dns.IsSubDomain(apex, name):
		return what + ": outside the zone " + z.origin
	case strings.HasPrefix(name, "*."):
		return what + ": wildcards are not served"
	case h.Rrtype == dns.TypeDNAME:
		return what + ": DNAME is not served"
	case h.Rrtype == dns.TypeNS && name != apex:
		return what + ": delegations are not served"
	case h.Rrtype == dns.TypeOPT || h.Rrtype >= firstMeta && h.Rrtype <= typeANY:
		return what + ": not a type that a zone holds"
	case !complete(rr, b):
		return what + ": has no data, or data that cannot be sent"
	}
	for parent := name; ; parent = parent[next(parent):] { // names above exist too, if empty
		if z.rrsets[parent] == nil {
			z.rrsets[parent] = map[uint16][]dns.RR{}
		}
		if parent == apex {
			break
		}
	}
	set := z.rrsets[name]
	if len(set[h.Rrtype]) >= maxSet {
		return fmt.Sprintf("%s: more than %d records", what, maxSet)
	}
	for _, have := range set[h.Rrtype] {
		if dns.IsDuplicate(have, rr) {
			return "" // once is enough (RFC 2181, section 5)
		}
	}
	set[h.Rrtype] = append(set[h.Rrtype], rr)
	_, alias := set[dns.TypeCNAME]
	if alias && len(set) > 1 || len(set[dns.TypeCNAME]) > 1 {
		return h.Name + ": a name with a CNAME record has no other (RFC 1034, section 3.6.2)"
	}
	return ""
}

// complete tells whether a record survives being sent. The library also parses records without data, as dynamic updates
// have them.
func complete(rr dns.RR, b []byte) bool {
	n, err := dns.PackRR(rr, b, 0, nil, false)
	if err != nil {
		return false
	}
	back, end, err := dns.UnpackRR(b[:n], 0)
	return err == nil && end == n && back.Header().Rdlength > 0 && dns.IsDuplicate(rr, back)
}

// next is the offset of a name's second label.
func next(name string) int {
	i, _ := dns.NextLabel(name, 0)
	return i
}

// Origin is the zone's name, with a dot at its end.
func (z *Zone) Origin() string { return z.origin }

// Names is how many names exist in the zone, those without records of their own included.
func (z *Zone) Names() int { return len(z.nodes) }

// Records is how many records the zone holds.
func (z *Zone) Records() int {
	n := 0
	for _, set := range z.rrsets {
		for _, list := range set {
			n += len(list)
		}
	}
	return n
}

// names are those of the zone, in order.
func (z *Zone) names() []string { return slices.Sorted(maps.Keys(z.rrsets)) }

// errLoop is a CNAME that leads back to itself, or on for ever.
var errLoop = errors.New("CNAME records lead in a circle, or through more than 8 names")
