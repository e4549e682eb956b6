// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"slices"
	"testing"
)

func cpus(n int) []int {
	var c []int
	for i := range n {
		c = append(c, i)
	}
	return c
}

func TestPlanCPUs(t *testing.T) {
	for _, c := range []struct {
		o    PlanOptions
		want string // placement readers napi gen others live warnings
	}{
		{PlanOptions{CPUs: cpus(2)}, "shared [0] [0] [1] [1] true 1"},
		{PlanOptions{CPUs: []int{1, 0, 1}}, "shared [0] [0] [1] [1] true 1"},
		{PlanOptions{CPUs: cpus(2), Placement: Sender}, "sender [0] [] [1] [1] true 1"},
		{PlanOptions{CPUs: cpus(3)}, "split [0] [1] [2] [2] true 1"},
		{PlanOptions{CPUs: cpus(3), Placement: Shared}, "shared [0] [0] [2] [1] true 0"},
		{PlanOptions{CPUs: cpus(4)}, "split [0] [1] [3] [2] true 0"},
		{PlanOptions{CPUs: cpus(4), Placement: Shared, Queues: 2}, "shared [0 1] [0 1] [2 3] [3] true 1"},
		{PlanOptions{CPUs: cpus(8), Queues: 2}, "split [0 1] [2 3] [4 5] [6 7] true 0"},
		{PlanOptions{CPUs: cpus(2), Queues: 2}, "shared [0] [0] [1] [1] false 2"},
		{PlanOptions{CPUs: []int{4, 6, 8}}, "split [4] [6] [8] [8] true 1"},
		{PlanOptions{CPUs: cpus(4), SUT: []int{2}}, "shared [2] [2] [3] [0 1] true 0"},
		{PlanOptions{CPUs: cpus(4), SUT: []int{2, 3}}, "split [2] [3] [1] [0] true 0"},
		{PlanOptions{CPUs: cpus(4), Peer: []int{0}}, "split [1] [2] [0] [3] true 0"},
		{PlanOptions{CPUs: cpus(2), Peer: []int{0}}, "shared [1] [1] [0] [0] true 1"},
		{PlanOptions{CPUs: cpus(4), SUT: []int{3}, Peer: []int{1}}, "shared [3] [3] [1] [0 2] true 0"},
		{PlanOptions{CPUs: cpus(2), OneSided: true}, "split [0] [1] [] [0] false 1"},
	} {
		p, err := PlanCPUs(c.o)
		if err != nil {
			t.Errorf("%+v: %v", c.o, err)
			continue
		}
		got := fmt.Sprintf("%s %v %v %v %v %t %d", p.Placement, p.Readers, p.NAPI, p.Gen, p.Others, p.LiveQ, len(p.Warnings))
		if got != c.want {
			t.Errorf("%+v:\n got %s %q\nwant %s", c.o, got, p.Warnings, c.want)
		}
	}
}

func TestPlanCPUsRefuses(t *testing.T) {
	for _, c := range []struct {
		o     PlanOptions
		id    string
		usage bool
	}{
		{PlanOptions{CPUs: cpus(1)}, "cpus", false},
		{PlanOptions{CPUs: nil}, "cpus", false},
		{PlanOptions{CPUs: cpus(1), Placement: Split}, "cpus", false},
		{PlanOptions{CPUs: cpus(2), Placement: Split}, "cpus", true},
		{PlanOptions{CPUs: cpus(4), Placement: "corner"}, "placement", true},
		{PlanOptions{CPUs: cpus(4), Placement: Sender, OneSided: true}, "placement", true},
		{PlanOptions{CPUs: cpus(4), SUT: []int{9}}, "cpus", true},
		{PlanOptions{CPUs: cpus(4), SUT: []int{1, 1}}, "cpus", true},
		{PlanOptions{CPUs: cpus(4), SUT: []int{1}, Peer: []int{1}}, "cpus", true},
		{PlanOptions{CPUs: cpus(4), SUT: []int{1}, Placement: Split}, "cpus", true},
		{PlanOptions{CPUs: cpus(2), SUT: []int{0, 1}}, "cpus", true},
		{PlanOptions{CPUs: cpus(2), Peer: []int{0, 1}}, "cpus", true},
		{PlanOptions{CPUs: cpus(4), Queues: -1}, "queues", true},
	} {
		p, err := PlanCPUs(c.o)
		var r *Refusal
		if !errors.As(err, &r) {
			t.Errorf("%+v: got plan %+v, error %v, want a refusal", c.o, p, err)
			continue
		}
		if r.ID != c.id || r.Usage != c.usage || r.Cure == "" {
			t.Errorf("%+v: got %s usage %t %q, want %s usage %t and a cure", c.o, r.ID, r.Usage, r, c.id, c.usage)
		}
	}
}

// Whatever is asked, sides never share a CPU, every CPU is one of those given, and nothing is empty.
func FuzzPlanCPUs(f *testing.F) {
	f.Add(uint8(3), uint8(1), uint8(0), uint8(0), uint8(0), false)
	f.Add(uint8(255), uint8(4), uint8(1), uint8(0xc0), uint8(3), true)
	f.Fuzz(func(t *testing.T, have, queues, placement, sut, peer uint8, one bool) {
		bits := func(m uint8) (c []int) {
			for i := range 8 {
				if m>>i&1 == 1 {
					c = append(c, i)
				}
			}
			return c
		}
		o := PlanOptions{CPUs: bits(have), Queues: int(queues % 9), SUT: bits(sut), Peer: bits(peer), OneSided: one,
			Placement: []Placement{"", Shared, Split, Sender}[placement%4]}
		p, err := PlanCPUs(o)
		if err != nil {
			return
		}
		mine := slices.Concat(p.Readers, p.NAPI)
		for _, c := range slices.Concat(mine, p.Gen, p.Others) {
			if !slices.Contains(o.CPUs, c) {
				t.Fatalf("%+v: %+v uses CPU %d", o, p, c)
			}
		}
		for _, c := range slices.Concat(p.Gen) {
			if slices.Contains(mine, c) {
				t.Fatalf("%+v: %+v: sides share CPU %d", o, p, c)
			}
		}
		if !one {
			for _, c := range p.Others {
				if slices.Contains(mine, c) {
					t.Fatalf("%+v: %+v: other threads on the SUT's CPU %d", o, p, c)
				}
			}
		}
		if len(p.Readers) == 0 || len(p.Others) == 0 || (len(p.Gen) == 0) != one || (len(p.NAPI) == 0) != (p.Placement == Sender) {
			t.Fatalf("%+v: %+v lacks a role", o, p)
		}
		if p.Placement == Split && slices.ContainsFunc(p.NAPI, func(c int) bool { return slices.Contains(p.Readers, c) }) {
			t.Fatalf("%+v: %+v: split, but NAPI on a reader's CPU", o, p)
		}
		for i, c := range p.Gen {
			if q := max(o.Queues, 1); p.LiveQ && c%q != i {
				t.Fatalf("%+v: %+v: generator %d feeds queue %d", o, p, i, c%q)
			}
		}
	})
}
