// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"
)

var families = map[string]bool{"IPv4": false, "IPv6": true}

// TestAnyOrder puts datagrams of many lengths together, whatever order their fragments come in.
func TestAnyOrder(t *testing.T) {
	for name, v6 := range families {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(1, 2))
			r := newReassembler(t, Options{Datagrams: 8, Bytes: 1 << 20})
			into := make([]byte, MaxPayload)
			for id, n := range []int{9, 16, 1480, 1481, 4000, 9000, 65507} {
				data := content(n, uint32(id))
				pieces := split(v6, uint32(id), data, 8*(1+rng.IntN(n/8)))
				if len(pieces) == 1 {
					pieces = split(v6, uint32(id), data, 8)
				}
				rng.Shuffle(len(pieces), func(i, j int) { pieces[i], pieces[j] = pieces[j], pieces[i] })
				for i, p := range pieces {
					d, v := r.Add(0, p.build(), into)
					if i < len(pieces)-1 {
						if v != Held {
							t.Fatalf("%d B, fragment %d of %d: verdict %d", n, i+1, len(pieces), v)
						}
						continue
					}
					if v != Whole || d.Protocol != 17 || !bytes.Equal(d.Payload, data) {
						t.Fatalf("%d B in %d fragments: verdict %d, %d B", n, len(pieces), v, len(d.Payload))
					}
				}
				check(t, r, 0)
			}
			if c := r.Counters(); c.Datagrams != 7 || c.Fragments != c.Used || c.GivenUp() != 0 {
				t.Errorf("%+v", c)
			}
		})
	}
}

// TestCauses gives up datagrams for every cause there is, and finds each in its counter and in no other.
func TestCauses(t *testing.T) {
	data := content(64, 1)
	frag := func(v6 bool, off, end int, more bool) piece {
		return piece{v6: v6, id: 5, off: off, more: more, payload: data[off:end]}
	}
	odd := func(v6 bool) piece { return piece{v6: v6, id: 5, off: 0, more: true, payload: data[:15]} }
	for _, c := range []struct {
		name   string
		only   string // IPv4 or IPv6; "" is both
		pieces func(v6 bool) []piece
		last   Verdict
		want   Counters
	}{
		{"exact duplicate", "", func(v bool) []piece { return []piece{frag(v, 0, 16, true), frag(v, 0, 16, true)} }, Duplicate,
			Counters{Fragments: 2, Begun: 1, Duplicate: 1}},
		{"part of one", "", func(v bool) []piece { return []piece{frag(v, 0, 32, true), frag(v, 8, 24, true)} }, Duplicate,
			Counters{Fragments: 2, Begun: 1, Duplicate: 1}},
		{"over a run in order", "", func(v bool) []piece {
			return []piece{frag(v, 0, 16, true), frag(v, 16, 32, true), frag(v, 8, 24, true)}
		}, Duplicate, Counters{Fragments: 3, Begun: 1, Duplicate: 1}},
		{"over two runs", "", func(v bool) []piece {
			return []piece{frag(v, 16, 32, true), frag(v, 0, 16, true), frag(v, 8, 24, true)}
		}, Rejected, Counters{Fragments: 3, Begun: 1, Overlap: 1}},
		{"overlap at the end", "", func(v bool) []piece { return []piece{frag(v, 0, 24, true), frag(v, 16, 40, true)} }, Rejected,
			Counters{Fragments: 2, Begun: 1, Overlap: 1}},
		{"overlap at the front", "", func(v bool) []piece { return []piece{frag(v, 16, 40, true), frag(v, 0, 24, true)} }, Rejected,
			Counters{Fragments: 2, Begun: 1, Overlap: 1}},
		{"larger than one", "", func(v bool) []piece { return []piece{frag(v, 8, 16, true), frag(v, 0, 24, true)} }, Rejected,
			Counters{Fragments: 2, Begun: 1, Overlap: 1}},
		{"what is left begins anew", "", func(v bool) []piece {
			return []piece{frag(v, 0, 24, true), frag(v, 16, 40, true), frag(v, 40, 64, false)}
		}, Held, Counters{Fragments: 3, Begun: 2, Overlap: 1}},
		{"two ends", "", func(v bool) []piece { return []piece{frag(v, 16, 32, false), frag(v, 8, 16, false)} }, Rejected,
			Counters{Fragments: 2, Begun: 1, Inconsistent: 1}},
		{"beyond the end", "", func(v bool) []piece { return []piece{frag(v, 16, 32, false), frag(v, 32, 48, true)} }, Rejected,
			Counters{Fragments: 2, Begun: 1, Inconsistent: 1}},
		{"empty", "", func(v bool) []piece { return []piece{frag(v, 0, 16, true), frag(v, 16, 16, false)} }, Rejected,
			Counters{Fragments: 2, Begun: 1, Inconsistent: 1}},
		{"odd length", "IPv4", func(v bool) []piece { return []piece{odd(v), frag(v, 8, 16, false)} }, Whole,
			Counters{Fragments: 2, Used: 2, Begun: 1, Datagrams: 1, BadLength: 1}},
		{"odd length", "IPv6", func(v bool) []piece { return []piece{odd(v), frag(v, 8, 16, false)} }, Held,
			Counters{Fragments: 2, Begun: 1, BadLength: 1}},
		{"beyond 65,535", "IPv6", func(v bool) []piece {
			return []piece{{v6: v, id: 5, off: 65528, payload: data[:8]}}
		}, Rejected, Counters{Fragments: 1, Begun: 1, Beyond: 1}},
		{"first without UDP header", "IPv6", func(v bool) []piece { return []piece{{v6: v, id: 5, more: true, payload: data[:0]}} }, Rejected,
			Counters{Fragments: 1, BadHeader: 1}},
		{"first without TCP header", "IPv6", func(v bool) []piece { return []piece{{v6: v, id: 5, more: true, proto: 6, payload: data[:16]}} }, Rejected,
			Counters{Fragments: 1, BadHeader: 1}},
		{"atomic", "IPv6", func(v bool) []piece { return []piece{frag(v, 0, 16, true), frag(v, 0, 16, false)} }, Unbroken,
			Counters{Fragments: 1, Begun: 1, Unbroken: 1}},
		{"another protocol, same id", "IPv4", func(v bool) []piece {
			p := frag(v, 16, 32, false)
			p.proto = 6
			return []piece{frag(v, 0, 16, true), p}
		}, Held, Counters{Fragments: 2, Begun: 2}},
		{"another protocol, same id", "IPv6", func(v bool) []piece { // RFC 8200: the protocol is that of the first fragment
			p := frag(v, 16, 32, false)
			p.proto = 6
			return []piece{frag(v, 0, 16, true), p}
		}, Whole, Counters{Fragments: 2, Used: 2, Begun: 1, Datagrams: 1}},
		{"another source, same id", "", func(v bool) []piece {
			p := frag(v, 16, 32, false)
			p.src = 9
			return []piece{frag(v, 0, 16, true), p}
		}, Held, Counters{Fragments: 2, Begun: 2}},
	} {
		for name, v6 := range families {
			if c.only != "" && c.only != name {
				continue
			}
			t.Run(c.name+"/"+name, func(t *testing.T) {
				r := newReassembler(t, Options{Datagrams: 4, Bytes: 1 << 16})
				into := make([]byte, MaxPayload)
				var v Verdict
				for _, p := range c.pieces(v6) {
					_, v = r.Add(0, p.build(), into)
				}
				if got := r.Counters(); got != c.want || v != c.last {
					t.Errorf("verdict %d, want %d\ngot  %+v\nwant %+v", v, c.last, got, c.want)
				}
				check(t, r, 0)
			})
		}
	}
}

func TestTooBig(t *testing.T) {
	r := newReassembler(t, Options{Bytes: 1 << 18})
	data := content(65520, 1) // with 20 bytes of header 65,540
	into := make([]byte, MaxPayload)
	var v Verdict
	for _, p := range split(false, 1, data, 8184) {
		_, v = r.Add(0, p.build(), into)
	}
	if c := r.Counters(); v != Rejected || c.TooBig != 1 || c.Datagrams != 0 {
		t.Errorf("verdict %d, %+v", v, c)
	}
	check(t, r, 0)
}

func TestBufferTooShort(t *testing.T) {
	r := newReassembler(t, Options{})
	var v Verdict
	for _, p := range split(true, 1, content(2000, 1), 1000) {
		_, v = r.Add(0, p.build(), make([]byte, 1999))
	}
	if c := r.Counters(); v != Rejected || c.NoBuffer != 1 || c.Datagrams != 0 {
		t.Errorf("verdict %d, %+v", v, c)
	}
	check(t, r, 0)
}

// TestTimeout counts from a datagram's first fragment, whatever comes later.
func TestTimeout(t *testing.T) {
	r := newReassembler(t, Options{Timeout: time.Second})
	into := make([]byte, MaxPayload)
	p := split(false, 1, content(48, 1), 16)
	r.Add(0, p[0].build(), into)
	r.Add(900*ms, p[1].build(), into)
	if n := r.Expire(1000*ms - 1); n != 1 {
		t.Fatalf("%d pending before the time is over", n)
	}
	if n := r.Expire(1000 * ms); n != 0 {
		t.Fatalf("%d pending when the time is over", n)
	}
	if _, v := r.Add(1000*ms, p[2].build(), into); v != Held {
		t.Fatalf("verdict %d: what comes late begins anew", v)
	}
	if _, v := r.Add(2500*ms, piece{id: 9, more: true, payload: make([]byte, 8)}.build(), into); v != Held {
		t.Fatalf("verdict %d", v)
	}
	if c := r.Counters(); c.Timeout != 2 || c.Begun != 3 { // Add looked at the clock too
		t.Errorf("%+v", c)
	}
	check(t, r, 2500*ms)
}

// TestMemory fills the memory, once by number and once by bytes: the oldest go, and no more is held than was allowed.
func TestMemory(t *testing.T) {
	into := make([]byte, MaxPayload)
	for name, o := range map[string]Options{"datagrams": {Datagrams: 10, Bytes: 1 << 20}, "bytes": {Datagrams: 1000, Bytes: 10 * blockLen}} {
		t.Run(name, func(t *testing.T) {
			r := newReassembler(t, o)
			for id := range uint32(30) {
				if _, v := r.Add(int64(id), piece{id: id, more: true, payload: content(1000, id)}.build(), into); v != Held {
					t.Fatalf("verdict %d", v)
				}
			}
			if n := r.Expire(30); n != 10 {
				t.Fatalf("%d pending, want 10", n)
			}
			for id := range uint32(10) { // the last ten can still be completed
				if _, v := r.Add(30, piece{id: 29 - id, off: 1000, payload: []byte{1}}.build(), into); v != Whole && (name == "datagrams" || id < 9) {
					t.Fatalf("datagram %d: verdict %d", 29-id, v)
				}
			}
			if c := r.Counters(); c.Evicted < 20 || c.Evicted > 21 || c.Datagrams < 9 { // by bytes, the first to come evicts one more
				t.Errorf("%+v", c)
			}
			check(t, r, 30)
		})
	}
	r := newReassembler(t, Options{Bytes: 4 * blockLen})
	var v Verdict
	for _, p := range split(false, 1, content(9000, 1), 1480) {
		if _, v = r.Add(0, p.build(), into); v == Rejected {
			break
		}
	}
	if c := r.Counters(); v != Rejected || c.Evicted != 1 { // more than the memory alone
		t.Errorf("verdict %d, %+v", v, c)
	}
	check(t, r, 0)
}

// TestDistance is the guard of 16-bit ids: a datagram whose fragments lie too far apart begins anew.
func TestDistance(t *testing.T) {
	into := make([]byte, MaxPayload)
	for between, reused := range map[int]uint64{63: 0, 64: 1} {
		r := newReassembler(t, Options{Distance: 64})
		r.Add(0, piece{id: 1, more: true, payload: make([]byte, 8)}.build(), into)
		for id := range between {
			r.Add(0, piece{id: uint32(100 + id), more: true, payload: make([]byte, 8)}.build(), into)
			r.Add(0, piece{v6: true, id: uint32(id), more: true, payload: make([]byte, 8)}.build(), into) // does not count
		}
		_, v := r.Add(0, piece{id: 1, off: 8, payload: make([]byte, 8)}.build(), into)
		if c := r.Counters(); c.IDReuse != reused || (v == Whole) != (reused == 0) {
			t.Errorf("%d fragments in between: verdict %d, %+v", between, v, c)
		}
		check(t, r, 0)
	}
}

func TestMalformed(t *testing.T) {
	good4, good6 := piece{payload: make([]byte, 16)}.build(), piece{v6: true, more: true, payload: make([]byte, 16)}.build()
	set := func(b []byte, at int, v byte) []byte { c := bytes.Clone(b); c[at] = v; return c }
	r := newReassembler(t, Options{})
	into := make([]byte, MaxPayload)
	for name, b := range map[string][]byte{
		"nothing": {}, "version": set(good4, 0, 0x55), "short": good4[:19], "header length": set(good4, 0, 0x44), "cut": good4[:30],
		"checksum": set(good4, 8, 1), "total below header": set(good4, 3, 19), "v6 short": good6[:39], "v6 cut": good6[:50], "v6 no fragment header": set(good6[:44], 5, 4),
	} {
		if _, v := r.Add(0, b, into); v != Rejected {
			t.Errorf("%s: verdict %d", name, v)
		}
	}
	if c := r.Counters(); c.BadHeader != 10 || c.Fragments != 0 || c.Begun != 0 {
		t.Errorf("%+v", c)
	}
}

func TestOptions(t *testing.T) {
	for name, o := range map[string]Options{"datagrams": {Datagrams: -1}, "bytes": {Bytes: 2047}, "timeout": {Timeout: -1}, "distance": {Distance: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

// TestNoAllocation: once set up, nothing is allocated, whatever comes.
func TestNoAllocation(t *testing.T) {
	r := newReassembler(t, Options{Datagrams: 16, Bytes: 8 * blockLen, Timeout: 3 * time.Millisecond, Distance: 64})
	into := make([]byte, MaxPayload)
	rng := rand.New(rand.NewPCG(3, 4))
	var frames [][]byte
	for id := range uint32(200) {
		p := split(id%2 == 0, id, content(4000, id), 1480)
		rng.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
		p = append(p, p[0])
		if id%3 == 0 {
			p = p[1:]
		}
		if id%5 == 0 {
			p[1].off += 8
		}
		for _, x := range p {
			frames = append(frames, x.build())
		}
	}
	now := int64(0)
	if n := testing.AllocsPerRun(20, func() {
		for i, f := range frames {
			if i%50 == 0 {
				now += 3 * ms
			}
			r.Add(now, f, into)
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	c := r.Counters()
	if c.Datagrams == 0 || c.Timeout == 0 || c.Overlap == 0 || c.Evicted == 0 {
		t.Errorf("not everything happened: %+v", c)
	}
	check(t, r, now)
}

func BenchmarkReassemble(b *testing.B) {
	for name, v6 := range families {
		b.Run(name, func(b *testing.B) {
			r := newReassembler(b, Options{})
			var frames [][]byte
			for _, p := range split(v6, 1, content(4008, 1), 1480) {
				frames = append(frames, p.build())
			}
			into := make([]byte, MaxPayload)
			b.SetBytes(4008)
			for b.Loop() {
				for _, f := range frames {
					r.Add(0, f, into)
				}
			}
			if r.Counters().GivenUp() != 0 {
				b.Fatal(r.Counters())
			}
		})
	}
}
