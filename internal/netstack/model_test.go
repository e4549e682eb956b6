// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// model is reassembly of one datagram done the slow way: for every byte, whether it is held, and in which run.
type model struct {
	run     [1 << 17]int32 // 0: not held
	data    [1 << 17]byte
	runs    int32
	highest int // one past the highest byte held
	end     int
	last    bool
}

func (m *model) add(p piece) string {
	end := p.off + len(p.payload)
	if p.v6 && end > MaxPayload {
		return "beyond"
	}
	if p.more && end%8 != 0 {
		if p.v6 {
			return "bad length"
		}
		end -= end % 8
	}
	if !p.more {
		if end < m.end || m.last && end != m.end {
			return "inconsistent"
		}
		m.last, m.end = true, end
	} else if end > m.end {
		if m.last {
			return "inconsistent"
		}
		m.end = end
	}
	if end == p.off {
		return "inconsistent"
	}
	held, same := 0, true
	for i := p.off; i < end; i++ {
		if m.run[i] != 0 {
			held++
		}
		same = same && m.run[i] == m.run[p.off]
	}
	switch {
	case held == end-p.off && same:
		return "duplicate"
	case held > 0:
		return "overlap"
	}
	id := int32(0)
	if p.off == m.highest && m.highest > 0 {
		id = m.run[m.highest-1]
	} else {
		m.runs++
		id = m.runs
	}
	for i := p.off; i < end; i++ {
		m.run[i], m.data[i] = id, p.payload[i-p.off]
	}
	m.highest = max(m.highest, end)
	if !m.last {
		return "held"
	}
	for i := range m.end {
		if m.run[i] == 0 {
			return "held"
		}
	}
	if !p.v6 && 20+m.end > MaxPayload {
		return "too big"
	}
	return "whole"
}

// word is what the reassembler says in the model's terms, by the counter that moved.
func word(v Verdict, before, after Counters) string {
	switch {
	case v == Whole:
		return "whole"
	case after.Duplicate > before.Duplicate:
		return "duplicate"
	case after.Overlap > before.Overlap:
		return "overlap"
	case after.Inconsistent > before.Inconsistent:
		return "inconsistent"
	case after.TooBig > before.TooBig:
		return "too big"
	case after.Beyond > before.Beyond:
		return "beyond"
	case v == Rejected && after.BadLength > before.BadLength:
		return "bad length"
	case v == Held:
		return "held"
	}
	return fmt.Sprintf("verdict %d", v)
}

// TestModel sends random fragments of a few datagrams, whole ones and nonsense, and asks the model for every one.
func TestModel(t *testing.T) {
	seen := map[string]int{}
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 9))
		v6 := seed%2 == 1
		r := newReassembler(t, Options{Datagrams: 64, Bytes: 8 << 20})
		into := make([]byte, MaxPayload)
		ids := uint32(1 + rng.IntN(4))
		models := map[uint32]*model{}
		size := 8 << rng.IntN(14)
		step := 8 << rng.IntN(9)
		for range 150 {
			id := rng.Uint32N(ids)
			p := piece{v6: v6, id: id, off: rng.IntN(size/8+1) * 8 / step * step, more: rng.IntN(4) > 0}
			n := step
			switch rng.IntN(6) {
			case 0:
				n = rng.IntN(2 * step)
			case 1:
				n = 2 * step
			}
			p.off = min(p.off, 65528)
			if !p.more {
				p.off = min(size/step*step, 65528)
			}
			p.payload = content(n, id*7+uint32(p.off))
			if v6 && p.off == 0 && (len(p.payload) < 8 || !p.more) {
				continue // not for reassembly
			}
			if !v6 && p.off == 0 && !p.more || len(p.payload) > 65000 {
				continue
			}
			m := models[id]
			if m == nil {
				m = &model{}
				models[id] = m
			}
			want := m.add(p)
			before := r.Counters()
			d, v := r.Add(0, p.build(), into)
			got := word(v, before, r.Counters())
			if got != want {
				t.Fatalf("seed %d: id %d, bytes %d..%d, more %v: %s, the model says %s", seed, id, p.off, p.off+n, p.more, got, want)
			}
			seen[got]++
			switch got {
			case "whole":
				if !bytes.Equal(d.Payload, m.data[:m.end]) {
					t.Fatalf("seed %d: other bytes than were sent", seed)
				}
				delete(models, id)
			case "overlap", "inconsistent", "too big":
				delete(models, id)
			}
		}
		check(t, r, 0)
	}
	for _, w := range []string{"whole", "held", "duplicate", "overlap", "inconsistent", "beyond", "bad length"} { // TestTooBig has the last one
		if seen[w] == 0 {
			t.Errorf("%q never came up: %v", w, seen)
		}
	}
}

// FuzzAdd hands anything to a small reassembler: whatever comes, memory and counters stay in order.
func FuzzAdd(f *testing.F) {
	for _, p := range append(split(false, 1, content(100, 1), 40), split(true, 1, content(100, 1), 40)...) {
		f.Add(p.build(), uint16(1), true)
	}
	f.Add(piece{payload: content(64, 2)}.build(), uint16(8), false)
	f.Fuzz(func(t *testing.T, b []byte, cut uint16, fix bool) {
		r, err := New(Options{Datagrams: 3, Bytes: 5 * blockLen, Timeout: 10, Distance: 4})
		if err != nil {
			t.Fatal(err)
		}
		into := make([]byte, MaxPayload)
		step := int(cut)%64 + 1
		for i := 0; i+step <= len(b); i += step { // many packets of one input
			p := bytes.Clone(b[i:])
			if fix && len(p) >= 20 && p[0] == 0x45 {
				p[2], p[3] = byte(len(p)>>8), byte(len(p))
				seal(p)
			}
			if d, v := r.Add(int64(i), p, into); v == Whole && len(d.Payload) > MaxPayload {
				t.Fatal("longer than can be")
			}
			check(t, r, int64(i))
		}
	})
}
