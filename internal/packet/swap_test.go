// SPDX-License-Identifier: Apache-2.0

package packet

import (
	"bytes"
	"testing"
)

// A frame turned round is what the other side would have built, byte for byte, checksums included.
func TestSwap(t *testing.T) {
	for _, v6 := range []bool{false, true} {
		f := testFlow(v6)
		back := f
		back.SrcMAC, back.DstMAC, back.Src, back.Dst, back.SrcPort, back.DstPort = f.DstMAC, f.SrcMAC, f.Dst, f.Src, f.DstPort, f.SrcPort
		for size := f.MinSize(); size <= 1518; size += 7 {
			s := Stamp{Run: 7, Number: uint64(size), Time: 123}
			there, err := f.Build(make([]byte, 2048), size, 0, s)
			if err != nil {
				t.Fatal(err)
			}
			want, err := back.Build(make([]byte, 2048), size, 0, s)
			if err != nil {
				t.Fatal(err)
			}
			Swap(there)
			if !bytes.Equal(there, want) {
				t.Fatalf("v6=%v size %d:\n% x, want\n% x", v6, size, there[:64], want[:64])
			}
			if _, verdict := (Verifier{DstPort: back.DstPort, Checksum: true}).Frame(there); verdict != OK {
				t.Fatalf("v6=%v size %d: verdict %d", v6, size, verdict)
			}
		}
	}
}

func TestSwapDoesNotAllocate(t *testing.T) {
	f := testFlow(true)
	b, err := f.Build(make([]byte, 256), 128, 0, Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(100, func() { Swap(b) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSwap(b *testing.B) {
	f := testFlow(false)
	frame, err := f.Build(make([]byte, 256), 64, 0, Stamp{})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		Swap(frame)
	}
}
