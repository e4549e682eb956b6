// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A template's frames are those of Build, byte for byte, whatever frame the memory held before.
func TestTemplateIsBuild(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, v6 := range []bool{false, true} {
		f := testFlow(v6)
		f.Flows = 500
		sizes := []int{f.MinSize(), 1518, 85, 594, f.MinSize(), 101, 1000}
		tm, err := NewTemplate(f, 0xfffefdfc, 201, sizes)
		if err != nil {
			t.Fatal(err)
		}
		b, want := make([]byte, 2048), make([]byte, 2048)
		if err := tm.Init(b); err != nil {
			t.Fatal(err)
		}
		p := make([]byte, 2048)
		tm.InitPayload(p)
		for i := range 20000 {
			position, flow := i%len(sizes), int(r.UintN(500))
			s := Stamp{Run: 0xfffefdfc, Stream: 201, Number: r.Uint64() & (1<<NumberBits - 1), Time: r.Int64()}
			if i%5 == 0 {
				s.Number, s.Time = 1<<NumberBits-1, 1<<63-1
			}
			n := tm.Frame(b, position, flow, s.Number, s.Time)
			frame, err := f.Build(want, sizes[position], flow, s)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(b[:n], frame) {
				t.Fatalf("v6=%v %d B flow %d %+v:\ngot  % x\nwant % x", v6, sizes[position], flow, s, b[:n], frame)
			}
			n = tm.Payload(p, position, s.Number, s.Time)
			if !bytes.Equal(p[:n], frame[f.HeaderLen():]) {
				t.Fatalf("v6=%v %d B: payload differs from the frame's", v6, sizes[position])
			}
		}
		if tm.Longest() != 1514 || tm.Cycle() != len(sizes) || tm.Bytes(1) != 1514 || tm.Header() != f.HeaderLen() {
			t.Errorf("longest %d, cycle %d, bytes %d, header %d", tm.Longest(), tm.Cycle(), tm.Bytes(1), tm.Header())
		}
	}
}

// A checksum that computes to 0 is sent as 0xffff (RFC 768), as Build does.
func TestTemplateChecksumZero(t *testing.T) {
	f := testFlow(false)
	tm, err := NewTemplate(f, 0, 0, []int{64})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 64)
	if err := tm.Init(b); err != nil {
		t.Fatal(err)
	}
	ones := 0
	for n := range uint64(1 << 17) {
		tm.Frame(b, 0, 0, n, 0)
		switch UDP(b[34:]).Checksum() {
		case 0:
			t.Fatalf("number %d: checksum 0 on the wire", n)
		case 0xffff:
			ones++
		}
	}
	if ones == 0 {
		t.Error("no number in 2^17 gave 0xffff: the search is wrong")
	}
}

func TestTemplateRefusals(t *testing.T) {
	f := testFlow(false)
	many := make([]int, 300)
	for i := range many {
		many[i] = 64 + i
	}
	for _, sizes := range [][]int{nil, {63}, {64, 0}, {-1}, many} {
		if _, err := NewTemplate(f, 1, 0, sizes); err == nil {
			t.Errorf("sizes %v: no error", sizes)
		}
	}
	tm, err := NewTemplate(f, 1, 0, []int{128})
	if err != nil {
		t.Fatal(err)
	}
	if err := tm.Init(make([]byte, 123)); err == nil {
		t.Error("a buffer too short was prepared")
	}
}

func TestTemplateDoesNotAllocate(t *testing.T) {
	tm, err := NewTemplate(testFlow(false), 1, 0, []int{64, 128})
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 256)
	if err := tm.Init(b); err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { tm.Frame(b, 1, 3, 5, 7); tm.Payload(b[42:], 0, 5, 7) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTemplateFrame64(b *testing.B) {
	tm, err := NewTemplate(testFlow(false), 1, 0, []int{64})
	if err != nil {
		b.Fatal(err)
	}
	m := make([]byte, 64)
	if err := tm.Init(m); err != nil {
		b.Fatal(err)
	}
	for i := uint64(0); b.Loop(); i++ {
		tm.Frame(m, 0, 0, i, int64(i))
	}
}
