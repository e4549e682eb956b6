// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math/rand/v2"
	"testing"
)

// model is the naive account: a map of everything seen, with the window's documented horizon.
type model struct {
	seen  map[uint64]bool
	next  uint64
	head  uint64
	words uint64
	tally Tally
}

func newModel(size int) *model {
	return &model{seen: map[uint64]bool{}, words: uint64(size / 64)}
}

// add takes the extended number: the generator of the test knows it, the window has to find it.
func (m *model) add(n int64) Class {
	if n < 0 || (uint64(n)/64+m.words < m.head) {
		m.tally.Late++
		return Late
	}
	u := uint64(n)
	if u >= m.next {
		m.next = u + 1
		m.head = max(m.head, u/64+1)
		m.seen[u] = true
		m.tally.Unique++
		return InOrder
	}
	if m.seen[u] {
		m.tally.Duplicate++
		return Duplicate
	}
	m.seen[u] = true
	m.tally.Unique++
	m.tally.Reordered++
	m.tally.MaxExtent = max(m.tally.MaxExtent, m.next-u)
	return Reordered
}

func (m *model) gaps(sent uint64) Gaps {
	var g Gaps
	end := max(sent, m.next)
	var run uint64
	for n := uint64(0); n < end; n++ {
		if m.seen[n] {
			run = 0
			continue
		}
		if g.Missing == 0 {
			g.First = n
		}
		g.Missing++
		g.Last = n
		if run == 0 {
			g.Ranges++
		}
		run++
		if run > g.Longest {
			g.Longest, g.LongestStart = run, n+1-run
		}
	}
	if sent > m.next {
		g.TailLost = sent - m.next
	} else {
		g.Beyond = m.next - sent
	}
	return g
}

// smallWindow bypasses NewWindow's minimum, so that sliding happens within few numbers.
func smallWindow(t testing.TB, words int) *Window {
	t.Helper()
	w := &Window{seen: make([]uint64, words), mask: uint64(words - 1)}
	return w
}

func TestWindowOrder(t *testing.T) {
	w, err := NewWindow(MinWindow)
	if err != nil {
		t.Fatal(err)
	}
	// Neighbours swapped (2 before 1), 3 twice, 5 and 6 missing.
	want := []Class{InOrder, InOrder, Reordered, InOrder, Duplicate, InOrder, InOrder}
	for i, n := range []uint64{0, 2, 1, 3, 3, 4, 7} {
		if got := w.Add(n); got != want[i] {
			t.Errorf("Add(%d) = %d, want %d", n, got, want[i])
		}
	}
	if got, want := w.Tally(), (Tally{Unique: 6, Reordered: 1, Duplicate: 1, MaxExtent: 2}); got != want {
		t.Errorf("tally %+v, want %+v", got, want)
	}
	if got, want := w.Gaps(10), (Gaps{Missing: 4, Ranges: 2, First: 5, Last: 9, LongestStart: 5, Longest: 2, TailLost: 2}); got != want {
		t.Errorf("gaps %+v, want %+v", got, want)
	}
	if g := w.Gaps(8); g.TailLost != 0 || g.Missing != 2 {
		t.Errorf("gaps of 8: %+v", g)
	}
	if g := w.Gaps(6); g.Beyond != 2 {
		t.Errorf("gaps of 6: beyond %d, want 2", g.Beyond)
	}
}

func TestWindowHorizon(t *testing.T) {
	w, err := NewWindow(MinWindow)
	if err != nil {
		t.Fatal(err)
	}
	w.Add(10)
	w.Add(11 + MinWindow - 64) // 10 is exactly size-64+1 behind NextExp
	for _, c := range []struct {
		n    uint64
		want Class
	}{{10, Duplicate}, {9, Reordered}, {9, Duplicate}} {
		if got := w.Add(c.n); got != c.want {
			t.Errorf("Add(%d) = %d, want %d", c.n, got, c.want)
		}
	}
	w.Add(200 + MinWindow)
	if got := w.Add(10); got != Late {
		t.Errorf("Add(10) after sliding = %d, want Late", got)
	}
	if got := w.Tally(); got.Late != 1 || got.Unique != 4 || got.Duplicate != 2 {
		t.Errorf("tally %+v", got)
	}
}

func TestWindowWraps(t *testing.T) {
	w, err := NewWindow(MinWindow)
	if err != nil {
		t.Fatal(err)
	}
	// Step near the 40-bit end in strides the window accepts as forward.
	for n := uint64(0); n < 1<<numberBits-100; n += 1 << 38 {
		w.Add(n)
	}
	base := uint64(1<<numberBits - 100)
	before := w.Tally().Unique
	for i := uint64(0); i < 200; i++ {
		if i == 150 {
			continue
		}
		if got := w.Add((base + i) & numberMask); got != InOrder {
			t.Fatalf("number %d past the wrap: class %d", i, got)
		}
	}
	if got := w.Add((base + 150) & numberMask); got != Reordered {
		t.Errorf("late-comer across the wrap: class %d, want Reordered", got)
	}
	if got := w.Add((base + 3) & numberMask); got != Duplicate {
		t.Errorf("repeat from before the wrap: class %d, want Duplicate", got)
	}
	if got := w.Tally().Unique - before; got != 200 {
		t.Errorf("unique across the wrap %d, want 200", got)
	}
	if w.Next() != base+200 {
		t.Errorf("next %d, want %d", w.Next(), base+200)
	}
}

func TestWindowAgainstModel(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 1))
		words := 1 << (1 + r.IntN(4))
		w, m := smallWindow(t, words), newModel(words*64)
		sent := int64(0)
		for range 20_000 {
			var n int64
			switch p := r.IntN(100); {
			case p < 80:
				n = sent
			case p < 95: // near the front, either way
				n = sent + int64(r.IntN(40)) - 20
			case p < 99: // anywhere around the horizon
				n = sent - int64(r.IntN(words*64*2))
			default: // a hole, at times longer than the window
				n = sent + int64(r.IntN(words*64*3))
			}
			if got, want := w.Add(uint64(n)&numberMask), m.add(n); got != want {
				t.Fatalf("seed %d: Add(%d) with next %d = %d, want %d", seed, n, m.next, got, want)
			}
			sent = max(sent, n+1)
		}
		if w.Tally() != m.tally {
			t.Errorf("seed %d: tally %+v, want %+v", seed, w.Tally(), m.tally)
		}
		for _, extra := range []uint64{0, 1, 700} {
			if got, want := w.Gaps(uint64(sent)+extra), m.gaps(uint64(sent)+extra); got != want {
				t.Errorf("seed %d +%d: gaps %+v, want %+v", seed, extra, got, want)
			}
		}
		if g := w.Gaps(uint64(sent)); g.Missing+w.Tally().Unique != uint64(sent) {
			t.Errorf("seed %d: missing %d + unique %d != sent %d", seed, g.Missing, w.Tally().Unique, sent)
		}
	}
}

func FuzzWindow(f *testing.F) {
	f.Add([]byte{0, 0, 1, 255, 2, 7, 250})
	f.Add([]byte{127, 127, 127, 128, 128, 1})
	f.Fuzz(func(t *testing.T, steps []byte) {
		w, m := smallWindow(t, 2), newModel(128)
		n := int64(0)
		for _, s := range steps {
			d := int64(int8(s))
			if d%5 == 0 {
				d *= 3
			}
			n = max(n+d, -200)
			if got, want := w.Add(uint64(n)&numberMask), m.add(n); got != want {
				t.Fatalf("Add(%d) = %d, want %d", n, got, want)
			}
		}
		if w.Tally() != m.tally {
			t.Fatalf("tally %+v, want %+v", w.Tally(), m.tally)
		}
		if got, want := w.Gaps(m.next+3), m.gaps(m.next+3); got != want {
			t.Fatalf("gaps %+v, want %+v", got, want)
		}
	})
}

func TestWindowSizes(t *testing.T) {
	for _, size := range []int{-1, 0, 1, 1 << 19, 1<<20 + 1, 3 << 20} {
		if _, err := NewWindow(size); err == nil {
			t.Errorf("size %d accepted", size)
		}
	}
}

func TestStreams(t *testing.T) {
	s, err := NewStreams(2, MinWindow)
	if err != nil {
		t.Fatal(err)
	}
	s.Add(0)
	s.Add(1 << 40)
	s.Add(1<<40 | 1)
	s.Add(1<<40 | 1)
	if got := s.Add(2<<40 | 5); got != Unknown {
		t.Errorf("unannounced stream: class %d", got)
	}
	if got, want := s.Tally(), (Tally{Unique: 3, Duplicate: 1, Unknown: 1}); got != want {
		t.Errorf("tally %+v, want %+v", got, want)
	}
	for _, n := range []int{0, -1, 257} {
		if _, err := NewStreams(n, MinWindow); err == nil {
			t.Errorf("%d streams accepted", n)
		}
	}
}

func TestMergeStreams(t *testing.T) {
	var workers [2]*Streams
	for i := range workers {
		s, err := NewStreams(3, MinWindow)
		if err != nil {
			t.Fatal(err)
		}
		workers[i] = s
	}
	for n := range uint64(100) {
		workers[0].Add(n)           // stream 0: one worker, all
		workers[n%2].Add(1<<40 | n) // stream 1: shared
	}
	got, err := MergeStreams([]uint64{110, 100, 7}, workers[0], workers[1])
	if err != nil {
		t.Fatal(err)
	}
	if r := got[0]; r.Tally.Unique != 100 || r.Lost() != 10 || !r.GapsKnown || r.Gaps.TailLost != 10 {
		t.Errorf("whole stream: %+v", r)
	}
	if r := got[1]; r.Tally.Unique != 100 || r.Lost() != 0 || r.GapsKnown || r.Next != 100 {
		t.Errorf("shared stream: %+v", r)
	}
	if r := got[2]; r.Lost() != 7 || !r.GapsKnown || r.Gaps.Missing != 7 || r.Gaps.TailLost != 7 {
		t.Errorf("silent stream: %+v", r)
	}
	if _, err := MergeStreams([]uint64{1}, workers[0]); err == nil {
		t.Error("stream counts that differ were merged")
	}
}

func TestAddDoesNotAllocate(t *testing.T) {
	s, err := NewStreams(1, MinWindow)
	if err != nil {
		t.Fatal(err)
	}
	n := uint64(0)
	if got := testing.AllocsPerRun(1000, func() {
		s.Add(n)
		s.Add(n)           // duplicate
		s.Add(n + 100_000) // hole
		s.Add(n + 50)      // reordered
		n += 100_001
	}); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
}

func BenchmarkWindowInOrder(b *testing.B) {
	w, err := NewWindow(MinWindow)
	if err != nil {
		b.Fatal(err)
	}
	for n := uint64(0); b.Loop(); n++ {
		w.Add(n)
	}
}

func BenchmarkStreamsInOrder(b *testing.B) {
	w, err := NewStreams(4, MinWindow)
	if err != nil {
		b.Fatal(err)
	}
	for n := uint64(0); b.Loop(); n++ {
		w.Add(2<<40 | n)
	}
}
