// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// enumOf returns an enum of a program as C has it.
func enumOf(t *testing.T, load func() (*ebpf.CollectionSpec, error), name string) map[uint64]string {
	t.Helper()
	spec, err := load()
	if err != nil {
		t.Fatal(err)
	}
	var e *btf.Enum
	if err := spec.Types.TypeByName(name, &e); err != nil {
		t.Fatal(err)
	}
	out := make(map[uint64]string)
	for _, v := range e.Values {
		out[v.Value] = v.Name
	}
	return out
}

// The names in Go are those in C, in all three programs, and none is missing.
func TestReasonNames(t *testing.T) {
	for what, load := range map[string]func() (*ebpf.CollectionSpec, error){"redirect": loadRedirect, "drop": loadDrop, "sink": loadSink} {
		c := enumOf(t, load, "reason")
		if len(c) != int(redirectReasonREASONS)+1 {
			t.Errorf("%s: %d reasons in C, %d in Go", what, len(c)-1, redirectReasonREASONS)
		}
		for v, name := range c {
			want := strings.ToLower(strings.TrimPrefix(name, "REASON_"))
			if name == "REASONS" {
				want = ""
			}
			if got := reasonName(redirectReason(v)); got != want {
				t.Errorf("%s: reason %d is %q in Go, %s in C", what, v, got, name)
			}
		}
	}
}

// Sizes that Go repeats by hand.
func TestConstantsAgreeWithC(t *testing.T) {
	redirect, err := loadRedirect()
	if err != nil {
		t.Fatal(err)
	}
	sink, err := loadSink()
	if err != nil {
		t.Fatal(err)
	}
	if n := redirect.Maps[redirectMapQueues].MaxEntries; n != MaxQueues {
		t.Errorf("%d queues in C, %d in Go", n, MaxQueues)
	}
	if n := redirect.Maps[redirectMapReasons].MaxEntries; n != uint32(redirectReasonREASONS) {
		t.Errorf("%d counters for %d reasons", n, redirectReasonREASONS)
	}
	if n := sink.Maps[sinkMapSeen].MaxEntries; n != streamWords {
		t.Errorf("%d words per stream in C, %d in Go", n, streamWords)
	}
	if n := accountWords * 8; n != 512 {
		t.Errorf("a CPU's account has %d bytes, not whole cache lines", n)
	}
	if got := enumOf(t, loadCpumeter, "cpu_class"); got[uint64(ClassIdle)] != "CLASS_IDLE" || got[uint64(ClassOther)] != "CLASS_OTHER" ||
		got[uint64(ClassFirst)] != "CLASS_FIRST" || got[uint64(Classes)] != "CLASS_COUNT" {
		t.Errorf("classes in C: %v", got)
	}
	if got := enumOf(t, loadCpumeter, "cpu_vector"); got[uint64(VectorNetRX)] != "VECTOR_NET_RX" || got[uint64(VectorNetTX)] != "VECTOR_NET_TX" ||
		got[uint64(VectorTimer)] != "VECTOR_TIMER" || got[uint64(VectorOther)] != "VECTOR_OTHER" {
		t.Errorf("vectors in C: %v", got)
	}
}

// Every program carries the license its helpers need.
func TestLicense(t *testing.T) {
	for what, load := range map[string]func() (*ebpf.CollectionSpec, error){"redirect": loadRedirect, "drop": loadDrop, "pass": loadPass,
		"sink": loadSink, "generate": loadGenerate, "cpumeter": loadCpumeter, "attacherror": loadAttacherror} {
		spec, err := load()
		if err != nil {
			t.Fatal(err)
		}
		for name, p := range spec.Programs {
			if p.License != "Dual BSD/GPL" {
				t.Errorf("%s: %s: license %q", what, name, p.License)
			}
		}
	}
}
