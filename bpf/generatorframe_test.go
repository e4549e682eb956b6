// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"math"
	"net/netip"
	"testing"
	"time"
)

func optionsOf(f testFrame) GeneratorOptions {
	return GeneratorOptions{IfIndex: 1, RunID: f.run, SrcMAC: f.srcMAC, DstMAC: f.dstMAC, Src: f.src, Dst: f.dst}
}

// The template is the reference frame but for what the program writes, at every size.
func TestTemplate(t *testing.T) {
	for _, f := range []testFrame{frame4(), frame6()} {
		least := MinFrameSize4
		if f.src.Is6() {
			least = MinFrameSize6
		}
		for size := least; size <= 1518; size++ {
			o, err := optionsOf(f).withDefaults()
			if err != nil {
				t.Fatal(err)
			}
			o.Sizes = []int{least, size}
			got := o.template()
			f.payload = 18 + size - least
			want := f.build()
			udp := len(want) - f.payload - 8
			clear(want[udp+8 : udp+26]) // stamp
			clear(want[udp : udp+2])    // source port
			clear(want[udp+4 : udp+8])  // UDP length and checksum
			if f.src.Is4() {
				clear(want[16:18])
				clear(want[24:26])
			} else {
				clear(want[18:20])
			}
			if !bytes.Equal(got, want) {
				t.Fatalf("size %d:\n% x, want\n% x", size, got, want)
			}
		}
	}
}

func TestGeneratorDefaults(t *testing.T) {
	o, err := optionsOf(frame6()).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	if o.DstPort != 9000 || o.SrcPort != 10000 || o.Flows != 1 || o.Batch != 64 || o.CatchUp != 1.25 || o.Burst != 96 ||
		o.MaxLag != 50*time.Millisecond || len(o.Sizes) != 1 || o.Sizes[0] != MinFrameSize6 {
		t.Errorf("defaults %+v", o)
	}
}

func TestGeneratorRefusals(t *testing.T) {
	for name, change := range map[string]func(*GeneratorOptions){
		"no interface":      func(o *GeneratorOptions) { o.IfIndex = 0 },
		"no MAC":            func(o *GeneratorOptions) { o.DstMAC = nil },
		"no address":        func(o *GeneratorOptions) { o.Src = netip.Addr{} },
		"mixed families":    func(o *GeneratorOptions) { o.Dst = netip.MustParseAddr("::1") },
		"flows wrap":        func(o *GeneratorOptions) { o.Flows = 60000 },
		"negative flows":    func(o *GeneratorOptions) { o.Flows = -1 },
		"too small":         func(o *GeneratorOptions) { o.Sizes = []int{63} },
		"too small for v6":  func(o *GeneratorOptions) { o.Src, o.Dst, o.Sizes = frame6().src, frame6().dst, []int{83} },
		"too large":         func(o *GeneratorOptions) { o.Sizes = []int{MaxFrameSize + 1} },
		"too many sizes":    func(o *GeneratorOptions) { o.Sizes = make([]int, MaxSizes+1) },
		"negative rate":     func(o *GeneratorOptions) { o.Rate = -1 },
		"rate NaN":          func(o *GeneratorOptions) { o.Rate = math.NaN() },
		"rate infinite":     func(o *GeneratorOptions) { o.Rate = math.Inf(1) },
		"rate next to none": func(o *GeneratorOptions) { o.Rate = 1e-9 },
		"batch 65":          func(o *GeneratorOptions) { o.Batch = 65 },
		"catch-up below 1":  func(o *GeneratorOptions) { o.CatchUp = 0.5 },
		"catch-up NaN":      func(o *GeneratorOptions) { o.CatchUp = math.NaN() },
		"negative burst":    func(o *GeneratorOptions) { o.Burst = -1 },
		"negative lag":      func(o *GeneratorOptions) { o.MaxLag = -1 },
		"41-bit count":      func(o *GeneratorOptions) { o.Count = 1 << 40 },
	} {
		o := optionsOf(frame4())
		change(&o)
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestImix(t *testing.T) {
	n := map[int]int{}
	for _, s := range Imix() {
		n[s]++
	}
	if len(Imix()) != 16 || n[64] != 9 || n[594] != 5 || n[1518] != 2 {
		t.Errorf("imix %v", n)
	}
}
