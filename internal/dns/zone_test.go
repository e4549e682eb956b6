// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

func TestZoneErrors(t *testing.T) {
	const head = "$ORIGIN t.example.\n$TTL 60\n@ SOA ns host 1 2 3 4 5\n"
	for _, c := range []struct {
		text string
		line int
		say  string
	}{
		{"", 0, "no SOA"},
		{"www.t.example. 60 A 192.0.2.1\n", 0, "no SOA"},
		{head + "www A 192.0.2.1\nbad A 192.0.2.300\n", 5, "192.0.2.300"},
		{head + "www A 192.0.2.1\n\n; a remark\nbad AAAA ::g\n", 7, "::g"},
		{head + "www NOSUCH 1\n", 4, "NOSUCH"},
		{head + "www TXT \"open\n", 0, ""},
		{head + "$INCLUDE /etc/passwd\n", 4, "INCLUDE"},
		{head + "@ SOA ns host 2 2 3 4 5\n", 4, "second SOA"},
		{head + "www.elsewhere. A 192.0.2.1\n", 4, "outside the zone"},
		{head + "*.www A 192.0.2.1\n", 4, "wildcards"},
		{head + "sub NS ns\n", 4, "delegations"},
		{head + "sub DNAME other\n", 0, "DNAME"},
		{head + "www CH A 192.0.2.1\n", 4, "class"},
		{head + "www CNAME a\nwww A 192.0.2.1\n", 5, "CNAME"},
		{head + "www A 192.0.2.1\nwww CNAME a\n", 5, "CNAME"},
		{head + "a A 192.0.2.1\n\nb TXT ( \"one\"\n \"two\" )\nc MX\nd A 192.0.2.2\n", 8, "newline"},
		{head + "$GENERATE 0-1100 www A 192.0.${0,0,d}.$\n", 4, ""},
		{head + strings.Repeat("www TXT a\n", 3) + "$GENERATE 1-1001 big TXT $\n", 7, "1000"},
		{head + "a CNAME b\nb CNAME a\n", 0, "circle"},
	} {
		_, err := ParseZone(strings.NewReader(c.text), "some.zone")
		var e *ZoneError
		if !errors.As(err, &e) {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		if c.line != 0 && e.Line != c.line || e.File != "some.zone" || !strings.Contains(e.Error(), c.say) || !strings.HasPrefix(e.Error(), "some.zone:") {
			t.Errorf("%q: %q (line %d), want line %d and %q", c.text, e, e.Line, c.line, c.say)
		}
	}
}

// Every answer to every question of the zone is what its records say, in the library's reading.
func TestDefaultZone(t *testing.T) {
	z := zoneOf(t, DefaultZone())
	if z.Origin() != "bench.example." || z.Records() < 35 || z.Names() < 25 {
		t.Fatalf("%s, %d names, %d records", z.Origin(), z.Names(), z.Records())
	}
	b := make([]byte, UDPSize)
	codes, truncated := map[int]int{}, 0
	for _, q := range queriesOf(t, z) {
		for _, edns := range []bool{false, true} {
			m, err := q.Message(edns)
			if err != nil {
				t.Fatal(err)
			}
			n, rcode := z.Answer(b, m)
			if err := z.Check(q, b[:n]); err != nil {
				t.Error(err)
			}
			if codes[rcode]++; b[2]&bitTC != 0 {
				truncated++
			}
		}
	}
	if codes[NoError] == 0 || codes[NXDomain] == 0 || len(codes) != 2 || truncated != 1 {
		t.Errorf("codes %v, %d truncated: the zone is to show one truncated answer, and absent names", codes, truncated)
	}
}

func TestCheckFindsWrongAnswers(t *testing.T) {
	z, other := zoneOf(t, testZone), zoneOf(t, strings.ReplaceAll(testZone, "192.0.2.2", "192.0.2.3"))
	q := Query{"www.t.example.", 1}
	m, err := q.Message(false)
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, UDPSize)
	n, _ := other.Answer(b, m)
	if err := z.Check(q, b[:n]); err == nil {
		t.Error("another address is not found")
	}
	n, _ = z.Answer(b, m)
	if err := z.Check(q, b[:n]); err != nil {
		t.Error(err)
	}
	for _, i := range []int{2, 3, 13, n - 1} { // response bit, code, name, last byte of an address
		b[i] ^= 0x81
		if err := z.Check(q, b[:n]); err == nil {
			t.Errorf("damage of byte %d is not found", i)
		}
		b[i] ^= 0x81
	}
}

func TestParseQueries(t *testing.T) {
	got, err := ParseQueries(strings.NewReader("; names\n\nwww.t.example a\nt.example. MX\nt.example TYPE65280\n# end\n"), "q")
	if err != nil || len(got) != 3 || got[2] != (Query{"t.example.", 65280}) || got[2].String() != "t.example. TYPE65280" || got[0] != (Query{"www.t.example.", 1}) || got[1] != (Query{"t.example.", 15}) {
		t.Errorf("%v, %v", got, err)
	}
	for text, line := range map[string]int{"": 0, "; nothing\n": 0, "www.t.example. A\nwww\n": 2, "www A A\n": 1, "www NOSUCH\n": 1, "www TYPE\n": 1, "www TYPE65536\n": 1, strings.Repeat("a", 64) + " A\n": 1} {
		_, err := ParseQueries(strings.NewReader(text), "q")
		var e *QueriesError
		if !errors.As(err, &e) || e.Line != line {
			t.Errorf("%q: %v, want line %d", text, err, line)
		}
	}
	z := zoneOf(t, testZone)
	again, err := ParseQueries(strings.NewReader(FormatQueries(queriesOf(t, z))), "q")
	if err != nil || len(again) != len(queriesOf(t, z)) {
		t.Errorf("%d of %d queries survive writing and reading: %v", len(again), len(queriesOf(t, z)), err)
	}
}

func FuzzParseZone(f *testing.F) {
	f.Add(testZone)
	f.Add(DefaultZone())
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(strings.ToUpper(text), "$GENERATE") {
			return // a hundred thousand records of one line take a second, in which a fuzzer learns nothing
		}
		z, err := ParseZone(strings.NewReader(text), "f")
		if err != nil {
			var e *ZoneError
			if !errors.As(err, &e) {
				t.Fatalf("%v", err)
			}
			return
		}
		b := make([]byte, UDPSize)
		for _, q := range queriesOf(t, z) {
			m, err := q.Message(true)
			if err != nil {
				continue
			}
			n, _ := z.Answer(b, m)
			if err := z.Check(q, b[:n]); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func queriesOf(t testing.TB, z *Zone) []Query {
	t.Helper()
	list, err := z.Queries()
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A list that would leave some of the zone out is refused, not cut.
func TestQueriesOfALargeZone(t *testing.T) {
	const head = "$ORIGIN t.example.\n$TTL 60\n@ SOA ns host 1 2 3 4 5\n"
	z := zoneOf(t, fmt.Sprintf("%s$GENERATE 1-%d h$ A 192.0.2.1\n", head, mostSets-1))
	if list, err := z.Queries(); err != nil || len(list) > MaxQueries {
		t.Errorf("%d queries, %v", len(list), err)
	}
	z = zoneOf(t, fmt.Sprintf("%s$GENERATE 1-%d h$ A 192.0.2.1\n", head, mostSets))
	if list, err := z.Queries(); err == nil {
		t.Errorf("%d queries of %d sets", len(list), mostSets+1)
	}
}
