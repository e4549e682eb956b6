// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/miekg/dns"
)

const testZone = `$ORIGIN t.example.
$TTL 600
@     SOA ns host 1 2 3 4 60
      NS  ns
      MX  10 www
ns    A   192.0.2.53
www   A   192.0.2.1
      A   192.0.2.2
      AAAA 2001:db8::1
a     CNAME b
b     CNAME www
gone  CNAME nowhere
away  CNAME www.example.
Mixed TXT "as written"
x.y.z TXT "below empty names"
`

func zoneOf(t testing.TB, text string) *Zone {
	t.Helper()
	z, err := ParseZone(strings.NewReader(text), "test.zone")
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func ask(t testing.TB, z *Zone, m []byte) (*dns.Msg, int) {
	t.Helper()
	b := make([]byte, UDPSize)
	n, rcode := z.Answer(b, m)
	if n == 0 {
		return nil, rcode
	}
	var r dns.Msg
	if err := r.Unpack(b[:n]); err != nil {
		t.Fatalf("the reply to %x does not parse: %v", m, err)
	}
	// A reply's length on the wire is what its records take: nothing stands behind them.
	if again, err := r.Pack(); err != nil || len(again) < n {
		t.Fatalf("the reply has %d B, and uncompressed only %d (%v)", n, len(again), err)
	}
	return &r, rcode
}

func pack(t testing.TB, m *dns.Msg) []byte {
	t.Helper()
	b, err := m.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// records are a section in words, without TTL and spaces: "www.t.example. A 192.0.2.1".
func records(list []dns.RR) string {
	var out []string
	for _, rr := range list {
		f := strings.Fields(rr.String())
		out = append(out, strings.Join(append([]string{f[0]}, f[3:]...), " "))
	}
	return strings.Join(out, "; ")
}

func TestAnswers(t *testing.T) {
	const soa = "t.example. SOA ns.t.example. host.t.example. 1 2 3 4 60"
	z := zoneOf(t, testZone)
	for _, c := range []struct {
		name, kind        string
		rcode             int
		answer, authority string
	}{
		{"www.t.example.", "A", NoError, "www.t.example. A 192.0.2.1; www.t.example. A 192.0.2.2", ""},
		{"www.t.example.", "AAAA", NoError, "www.t.example. AAAA 2001:db8::1", ""},
		{"www.t.example.", "TXT", NoError, "", soa},
		{"t.example.", "SOA", NoError, soa, ""},
		{"t.example.", "NS", NoError, "t.example. NS ns.t.example.", ""},
		{"t.example.", "MX", NoError, "t.example. MX 10 www.t.example.", ""},
		{"a.t.example.", "A", NoError, "a.t.example. CNAME b.t.example.; b.t.example. CNAME www.t.example.; www.t.example. A 192.0.2.1; www.t.example. A 192.0.2.2", ""},
		{"a.t.example.", "CNAME", NoError, "a.t.example. CNAME b.t.example.", ""},
		{"a.t.example.", "TXT", NoError, "a.t.example. CNAME b.t.example.; b.t.example. CNAME www.t.example.", soa},
		{"gone.t.example.", "A", NXDomain, "gone.t.example. CNAME nowhere.t.example.", soa},
		{"away.t.example.", "A", NoError, "away.t.example. CNAME www.example.", ""},
		{"MIXED.T.eXample.", "TXT", NoError, `MIXED.T.eXample. TXT "as written"`, ""},
		{"y.z.t.example.", "A", NoError, "", soa},
		{"x.y.z.t.example.", "TXT", NoError, `x.y.z.t.example. TXT "below empty names"`, ""},
		{"nobody.t.example.", "A", NXDomain, "", soa},
		{"a.b.c.d.e.f.t.example.", "A", NXDomain, "", soa},
		{"nobody.T.Example.", "A", NXDomain, "", "T.Example. SOA ns.t.example. host.t.example. 1 2 3 4 60"},
		{"www.t.example.", "ANY", NoError, `www.t.example. HINFO "RFC8482" ""`, ""},
		{"y.z.t.example.", "ANY", NoError, "", soa},
		{"example.", "A", Refused, "", ""},
		{"wwwt.example.", "A", Refused, "", ""},
		{"xt.example.", "A", Refused, "", ""},
		{".", "NS", Refused, "", ""},
		{"t.example.", "AXFR", NotImp, "", ""},
		{"t.example.", "OPT", FormErr, "", ""},
		{"www.t.example.", "TYPE65000", NoError, "", soa},
	} {
		t.Run(c.name+" "+c.kind, func(t *testing.T) {
			var m dns.Msg
			qtype, ok := dns.StringToType[c.kind]
			if !ok {
				qtype = 65000
			}
			m.Question = []dns.Question{{Name: c.name, Qtype: qtype, Qclass: dns.ClassINET}}
			m.Id, m.RecursionDesired, m.CheckingDisabled = 0xbeef, true, true
			r, rcode := ask(t, z, pack(t, &m))
			if rcode != c.rcode || r.Rcode != c.rcode {
				t.Errorf("code %d, in the message %d, want %d", rcode, r.Rcode, c.rcode)
			}
			if r.Id != 0xbeef || !r.Response || !r.RecursionDesired || r.RecursionAvailable || !r.CheckingDisabled || r.Truncated {
				t.Errorf("header %+v", r.MsgHdr)
			}
			if r.Authoritative != (c.rcode == NoError || c.rcode == NXDomain) {
				t.Errorf("authoritative is %v", r.Authoritative)
			}
			if len(r.Question) != 1 || r.Question[0] != m.Question[0] {
				t.Errorf("question %v, want %v, in its own case", r.Question, m.Question)
			}
			if got := records(r.Answer); got != c.answer {
				t.Errorf("answer\n %s, want\n %s", got, c.answer)
			}
			if got := records(r.Ns); got != c.authority {
				t.Errorf("authority\n %s, want\n %s", got, c.authority)
			}
			if len(r.Extra) != 0 {
				t.Errorf("additional %v, and no EDNS was asked for", r.Extra)
			}
			if c.authority != "" && r.Ns[0].Header().Ttl != 60 {
				t.Errorf("absence is to be remembered for %d s, and the SOA says 60", r.Ns[0].Header().Ttl)
			}
		})
	}
}

func TestClasses(t *testing.T) {
	z := zoneOf(t, testZone)
	for class, want := range map[uint16]int{dns.ClassINET: NoError, dns.ClassANY: NoError, dns.ClassCHAOS: Refused, dns.ClassNONE: Refused} {
		m := &dns.Msg{Question: []dns.Question{{Name: "www.t.example.", Qtype: dns.TypeA, Qclass: class}}}
		if _, rcode := ask(t, z, pack(t, m)); rcode != want {
			t.Errorf("class %d: code %d, want %d", class, rcode, want)
		}
	}
}

func TestEDNS(t *testing.T) {
	z := zoneOf(t, testZone)
	query := func(change func(*dns.Msg, *dns.OPT)) *dns.Msg {
		var m dns.Msg
		m.SetQuestion("www.t.example.", dns.TypeA)
		m.SetEdns0(4096, true)
		change(&m, m.IsEdns0())
		r, _ := ask(t, z, pack(t, &m))
		return r
	}
	r := query(func(*dns.Msg, *dns.OPT) {})
	opt := r.IsEdns0()
	if opt == nil || opt.UDPSize() != UDPSize || !opt.Do() || opt.Version() != 0 || len(r.Extra) != 1 || len(r.Answer) != 2 {
		t.Errorf("reply %v", r)
	}
	if r := query(func(_ *dns.Msg, o *dns.OPT) { o.SetDo(false) }); r.IsEdns0().Do() {
		t.Error("DO is repeated that was not there")
	}
	r = query(func(_ *dns.Msg, o *dns.OPT) { o.SetVersion(1) })
	if r.Rcode != BadVersion || len(r.Answer) != 0 {
		t.Errorf("version 1: %v", r)
	}
	r = query(func(_ *dns.Msg, o *dns.OPT) {
		o.Option = append(o.Option, &dns.EDNS0_COOKIE{Code: dns.EDNS0COOKIE, Cookie: "0123456789abcdef"})
	})
	if r.Rcode != NoError || len(r.IsEdns0().Option) != 0 {
		t.Errorf("with a cookie: %v", r)
	}
	if r := query(func(m *dns.Msg, o *dns.OPT) { m.Extra = append(m.Extra, dns.Copy(o)) }); r.Rcode != FormErr {
		t.Errorf("two OPT records: %v", r)
	}
	if r := query(func(_ *dns.Msg, o *dns.OPT) { o.Hdr.Name = "t.example." }); r.Rcode != FormErr {
		t.Errorf("an OPT record with a name: %v", r)
	}
}

// A reply of every length, asked for with every size around it, is whole or says that it is not.
func TestTruncation(t *testing.T) {
	for _, bytes := range []int{10, 200, 470, 471, 472, 473, 474, 475, 900, 1160, 1180, 1190, 1200, 1400} {
		var text strings.Builder
		for n := bytes; n > 0; n -= 200 {
			fmt.Fprintf(&text, " \"%s\"", strings.Repeat("x", min(n, 200)))
		}
		z := zoneOf(t, testZone+"long TXT"+text.String()+"\n")
		whole, err := z.packed("long.t.example.", dns.TypeTXT)
		if err != nil {
			t.Fatal(err)
		}
		const head = headerLen + 16 + questionEnd // of long.t.example.
		for _, size := range []int{0, 100, 512, 513, 700, 1231, 1232, 4096} {
			var m dns.Msg
			m.SetQuestion("long.t.example.", dns.TypeTXT)
			room, extra := plainUDP, 0
			if size > 0 {
				m.SetEdns0(uint16(size), false)
				room, extra = min(max(size, plainUDP), UDPSize), optLen
			}
			b := make([]byte, UDPSize)
			n, _ := z.Answer(b, pack(t, &m))
			r, _ := ask(t, z, pack(t, &m))
			need := head + len(whole.body) + extra
			if n > room {
				t.Errorf("%d B for a client that takes %d", n, room)
			}
			if r.Truncated != (need > room) || len(r.Answer) != flagged(!r.Truncated) || (r.IsEdns0() != nil) != (size > 0) {
				t.Errorf("%d B of an answer of %d, %d taken: truncated is %v, %d answers", n, need, room, r.Truncated, len(r.Answer))
			}
		}
	}
}

func flagged(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestBadQueries(t *testing.T) {
	z := zoneOf(t, testZone)
	good := pack(t, new(dns.Msg).SetQuestion("www.t.example.", dns.TypeA))
	change := func(f func(b []byte) []byte) []byte { return f(append([]byte(nil), good...)) }
	name := headerLen
	for what, c := range map[string]struct {
		m    []byte
		want int
	}{
		"nothing":                   {nil, NoReply},
		"half a header":             {good[:11], NoReply},
		"a response":                {change(func(b []byte) []byte { b[2] |= 0x80; return b }), NoReply},
		"a header only":             {good[:12], FormErr},
		"an update":                 {change(func(b []byte) []byte { b[2] |= 5 << 3; return b }), NotImp},
		"an inverse query":          {change(func(b []byte) []byte { b[2] |= 1 << 3; return b }), NotImp},
		"no question":               {change(func(b []byte) []byte { b[5] = 0; return b }), FormErr},
		"two questions":             {change(func(b []byte) []byte { b[5] = 2; return append(b, b[name:]...) }), FormErr},
		"an answer in it":           {change(func(b []byte) []byte { b[7] = 1; return b }), FormErr},
		"an authority in it":        {change(func(b []byte) []byte { b[9] = 1; return b }), FormErr},
		"additional that is absent": {change(func(b []byte) []byte { b[11] = 1; return b }), FormErr},
		"65535 additional":          {change(func(b []byte) []byte { b[10], b[11] = 255, 255; return b }), FormErr},
		"bytes behind its end":      {append(append([]byte(nil), good...), 0), FormErr},
		"cut in the type":           {good[:len(good)-3], FormErr},
		"cut in the name":           {good[:name+3], FormErr},
		"a pointer to itself":       {change(func(b []byte) []byte { b[name], b[name+1] = 0xc0, byte(name); return b }), FormErr},
		"a pointer to the header":   {append(good[:name:name], 0xc0, 0, 0, 1, 0, 1), FormErr},
		"a pointer behind a label":  {append(append(good[:name:name], 1, 'a'), 0xc0, byte(name), 0, 1, 0, 1), FormErr},
		"a label of type 01":        {change(func(b []byte) []byte { b[name] |= 0x40; return b }), FormErr},
		"a label of type 10":        {change(func(b []byte) []byte { b[name] |= 0x80; return b }), FormErr},
		"a name of 256 bytes":       {append(append(good[:name:name], strings.Repeat("\x01a", 128)...), 0, 0, 1, 0, 1), FormErr},
	} {
		t.Run(what, func(t *testing.T) {
			b := make([]byte, UDPSize)
			n, rcode := z.Answer(b, c.m)
			if rcode != c.want || (n == 0) != (c.want == NoReply) {
				t.Fatalf("%d B, code %d, want code %d", n, rcode, c.want)
			}
			if n > 0 && (n != headerLen || binary.BigEndian.Uint64(b[4:]) != 0 || b[2]&bitQR == 0 || b[0] != c.m[0] || b[1] != c.m[1]) {
				t.Errorf("reply %x", b[:n])
			}
		})
	}
	longest := append(append(good[:name:name], strings.Repeat("\x01a", 127)...), 0, 0, 1, 0, 1)
	if _, rcode := ask(t, z, longest); rcode != Refused {
		t.Errorf("a foreign name of 255 bytes: code %d, want %d", rcode, Refused)
	}
}

func TestAnswerDoesNotAllocate(t *testing.T) {
	z := zoneOf(t, DefaultZone())
	dst := make([]byte, UDPSize)
	for _, q := range queriesOf(t, z) {
		m, err := q.Message(true)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(20, func() { z.Answer(dst, m) }); n != 0 {
			t.Errorf("%s: %v allocations", q, n)
		}
	}
}

// FuzzAnswer: whatever comes, a reply is none, or one that the library can read, to this very question, within its bounds.
func FuzzAnswer(f *testing.F) {
	z := zoneOf(f, testZone)
	for _, q := range queriesOf(f, z) {
		for _, edns := range []bool{false, true} {
			m, err := q.Message(edns)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(m)
		}
	}
	f.Add([]byte("\x00\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x01\x01a\xc0\x0c\x00\x01\x00\x01"))
	f.Fuzz(func(t *testing.T, m []byte) {
		b := make([]byte, 2*UDPSize)
		for i := range b {
			b[i] = 0xaa
		}
		n, rcode := z.Answer(b[:UDPSize:UDPSize], m)
		if n > UDPSize || (n == 0) != (rcode == NoReply) {
			t.Fatalf("%d bytes, code %d", n, rcode)
		}
		for _, c := range b[UDPSize:] {
			if c != 0xaa {
				t.Fatal("wrote beyond its buffer")
			}
		}
		if n == 0 {
			return
		}
		var r dns.Msg
		if err := r.Unpack(b[:n]); err != nil {
			t.Fatalf("reply %x to %x: %v", b[:n], m, err)
		}
		if !r.Response || r.Id != binary.BigEndian.Uint16(m) || r.Rcode != rcode {
			t.Fatalf("reply %v, code %d", r.MsgHdr, rcode)
		}
		var q dns.Msg
		if rcode == FormErr || rcode == NotImp || q.Unpack(m) != nil {
			return // the library may take, or refuse, other things than we do
		}
		if len(q.Question) != 1 || len(r.Question) != 1 || q.Question[0] != r.Question[0] {
			t.Fatalf("question %v of the query %v", r.Question, q.Question)
		}
		if rcode == NoError || rcode == NXDomain {
			if qc := q.Question[0]; qc.Qtype != dns.TypeANY {
				// The name in the library's text form is what the list of queries holds.
				if err := z.Check(Query{qc.Name, qc.Qtype}, b[:n]); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

func BenchmarkAnswer(b *testing.B) {
	z := zoneOf(b, DefaultZone())
	var list [][]byte
	for _, q := range queriesOf(b, z) {
		m, err := q.Message(false)
		if err != nil {
			b.Fatal(err)
		}
		list = append(list, m)
	}
	dst := make([]byte, UDPSize)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		z.Answer(dst, list[i%len(list)])
	}
}
