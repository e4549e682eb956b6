// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Query is one question of a list.
type Query struct {
	Name string // with a dot at its end
	Type uint16
}

func (q Query) String() string { return q.Name + " " + dns.Type(q.Type).String() }

// parseType reads a type by name, or as "TYPE65280" (RFC 3597).
func parseType(s string) (uint16, bool) {
	s = strings.ToUpper(s)
	if t, ok := dns.StringToType[s]; ok {
		return t, true
	}
	digits, ok := strings.CutPrefix(s, "TYPE")
	n, err := strconv.ParseUint(digits, 10, 16)
	return uint16(n), ok && err == nil
}

// QueriesError is a list of queries that cannot be used.
type QueriesError struct {
	File    string
	Line    int // 0 when it is not one line's fault
	Problem string
}

func (e *QueriesError) Error() string {
	if e.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Problem)
	}
	return e.File + ": " + e.Problem
}

// MaxQueries is how many different queries a list may have: the peer keeps a frame for each.
const MaxQueries = 16384

// ParseQueries reads a list in the format of dnsperf: a name and a type a line. Empty lines and those that begin with ";"
// or "#" are comments. Every error is a [*QueriesError].
func ParseQueries(r io.Reader, file string) ([]Query, error) {
	var out []Query
	s := bufio.NewScanner(r)
	for line := 1; s.Scan(); line++ {
		text := strings.TrimSpace(s.Text())
		if text == "" || text[0] == ';' || text[0] == '#' {
			continue
		}
		bad := func(format string, args ...any) ([]Query, error) {
			return nil, &QueriesError{file, line, fmt.Sprintf(format, args...)}
		}
		fields := strings.Fields(text)
		if len(fields) != 2 {
			return bad("want a name and a type, as in www.example. A")
		}
		t, ok := parseType(fields[1])
		if !ok {
			return bad("no record type %q", fields[1])
		}
		name := dns.Fqdn(fields[0])
		if _, err := wireName(name); err != nil {
			return bad("%q is no domain name", fields[0])
		}
		if out = append(out, Query{name, t}); len(out) > MaxQueries {
			return bad("more than %d queries", MaxQueries)
		}
	}
	if err := s.Err(); err != nil {
		return nil, &QueriesError{File: file, Problem: err.Error()}
	}
	if len(out) == 0 {
		return nil, &QueriesError{File: file, Problem: "no queries in it"}
	}
	return out, nil
}

// absentShare is how many of the derived queries ask for names that are not there: 1 in 8.
const absentShare = 8

// mostSets is how many sets of records Queries can ask for.
const mostSets = MaxQueries * (absentShare - 1) / absentShare

// Queries derives a list from the zone: every set of records once, and one query in 8 for a name that is not there. The
// order is mixed, the same each time. A zone with more sets than a list can have must be asked by a list of the caller's.
func (z *Zone) Queries() ([]Query, error) {
	var out []Query
	for _, name := range z.names() {
		for _, t := range slices.Sorted(maps.Keys(z.rrsets[name])) {
			if out = append(out, Query{name, t}); len(out) > mostSets {
				return nil, fmt.Errorf("the zone has more than the %d sets of records that are asked for without a list of queries", mostSets)
			}
		}
	}
	for i := range (len(out) + absentShare - 2) / (absentShare - 1) {
		absent := fmt.Sprintf("absent-%d.%s", i, dns.CanonicalName(z.origin))
		if _, there := z.rrsets[absent]; !there {
			out = append(out, Query{absent, dns.TypeA})
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	r.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out, nil
}

// FormatQueries writes a list in the format of dnsperf.
func FormatQueries(list []Query) string {
	var b strings.Builder
	for _, q := range list {
		fmt.Fprintln(&b, q)
	}
	return b.String()
}

// Message packs a query with id 0. edns adds an OPT record that takes [UDPSize] bytes; recursion is not asked for.
func (q Query) Message(edns bool) ([]byte, error) {
	m := &dns.Msg{Question: []dns.Question{{Name: q.Name, Qtype: q.Type, Qclass: dns.ClassINET}}}
	if edns {
		m.SetEdns0(UDPSize, false)
	}
	b, err := m.Pack()
	if err != nil {
		return nil, fmt.Errorf("query %s: %w", q, err)
	}
	return b, nil
}
