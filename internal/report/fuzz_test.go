// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"twopath/compare"
	"twopath/internal/reproduce"
)

// fill sets every field below v to something a record could hold, or should
// not hold but might.
func fill(r *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Pointer:
		if r.IntN(3) == 0 || depth > 8 {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		fill(r, v.Elem(), depth+1)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fill(r, v.Field(i), depth+1)
			}
		}
	case reflect.Slice:
		n := r.IntN(5)
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Array:
		for i := range v.Len() {
			fill(r, v.Index(i), depth+1)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range r.IntN(3) {
			key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
			fill(r, key, depth+1)
			fill(r, value, depth+1)
			v.SetMapIndex(key, value)
		}
	case reflect.String:
		words := []string{"", "kernel:recvmmsg", "xdp:auto", "xdp:auto#2", "kernel", "xdp", "veth", "shared", "sender", "split", "spin", "generic", "copy", "zerocopy", "off", "verified",
			"veth.ring_full", "xsk.rx_ring_full", "received_pps", "cpu.work_ns_per_packet", "latency_p99_ns", "lower_pps", "b/a", "lower", "faster", "slower", "equivalent", "not comparable",
			"measured", "aa", "exact", "bounded", "a\nb\tc", "\x1b[31m", strings.Repeat("long ", 60), strings.Repeat("y", 300), "<script>", "größe", "\xff\xfe"}
		v.SetString(words[r.IntN(len(words))])
	case reflect.Bool:
		v.SetBool(r.IntN(2) == 0)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if k := r.IntN(4); k < 3 {
			v.SetInt([]int64{0, 1, int64(r.IntN(100))}[k])
		} else if v.Type().String() != "compare.Duration" {
			v.SetInt(int64(r.Uint64()))
		}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint([]uint64{0, 1, uint64(r.IntN(1e7)), r.Uint64(), math.MaxUint64}[r.IntN(5)])
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, r.Float64(), r.Float64() * 1e7, math.NaN(), math.Inf(1), math.Inf(-1), -3, 1e300, 1e-300}[r.IntN(10)])
	}
}

// No record, however odd, makes a renderer fail, print NaN, or draw outside HTML.
func FuzzRenderers(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(seed, 120, true)
	}
	f.Add(uint64(7), -5, false)
	f.Fuzz(func(t *testing.T, seed uint64, width int, wide bool) {
		r := rand.New(rand.NewPCG(seed, 1))
		docs := make([]compare.Document, 1+r.IntN(3))
		for i := range docs {
			fill(r, reflect.ValueOf(&docs[i]).Elem(), 0)
			if i > 0 && r.IntN(2) == 0 { // make it a sweep
				docs[i].Test, docs[i].Rig.Kind, docs[i].Rig.Placement, docs[i].Host.Name, docs[i].Argv = docs[0].Test, docs[0].Rig.Kind, docs[0].Rig.Placement, docs[0].Host.Name, docs[0].Argv
			}
			if len(docs[i].Comparisons) > 0 && r.IntN(2) == 0 {
				docs[i].Verdict = &docs[i].Comparisons[0]
			}
		}
		if r.IntN(3) == 0 { // or a published measurement
			source := []string{reproduce.UDPReceive, reproduce.LineRate64, "another"}[r.IntN(3)]
			steps := []string{reproduce.StepSweep, reproduce.StepFlood, reproduce.StepOneCore, reproduce.StepReusePort, reproduce.StepQueues, "fragments"}
			for i := range docs {
				docs[i].Reproduces = &compare.Reproduction{Source: source, Step: steps[r.IntN(len(steps))]}
				for k := range docs[i].Arms {
					docs[i].Arms[k].Name = []string{"kernel:epoll+rcvbuf=104k", "kernel:nosocket", "xdp:auto"}[r.IntN(3)]
				}
			}
		}
		o := TextOptions{Width: width % 400, Wide: wide, Color: seed%2 == 0, Saved: "x.json"}
		var text, page bytes.Buffer
		if err := TextAll(&text, docs, o); err != nil {
			t.Fatal(err)
		}
		if err := HTML(&page, docs); err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{text.String(), page.String()} {
			for _, bad := range []string{"NaN", "Inf", "%!"} {
				if strings.Contains(s, bad) {
					at := strings.Index(s, bad)
					t.Fatalf("%q in a report: ...%q", bad, s[max(0, at-80):min(len(s), at+80)])
				}
			}
		}
		if strings.Contains(page.String(), "<script") {
			t.Fatal("markup from a record")
		}
		for i := range docs {
			if err := Text(io.Discard, &docs[i], o); err != nil {
				t.Fatal(err)
			}
		}
		for _, write := range []func(io.Writer, []compare.Document) error{CSV, CSVArms, CSVComparisons} {
			if err := write(io.Discard, docs); err != nil {
				t.Fatal(err)
			}
		}
		result := Diff(docs[:1], docs, 0.05)
		if err := DiffText(io.Discard, result, o); err != nil {
			t.Fatal(err)
		}
		if code := result.ExitCode(); code != 0 && code != 1 && code != 4 {
			t.Fatalf("exit code %d", code)
		}
	})
}
