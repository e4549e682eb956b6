// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"math/rand/v2"
	"testing"
)

// Ranges of frames given to sockets never overlap, gaps are used again, and nothing is refused that fits.
func TestUMEMRangesAreDisjoint(t *testing.T) {
	const frames = 64
	u, err := NewUMEM(UMEMOptions{Frames: frames, ChunkSize: 2048, HugePages: HugeNever})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	var held []*member
	for step := range 3000 {
		if rng.IntN(3) > 0 || len(held) == 0 {
			count := 1 + rng.IntN(20)
			m, err := u.take(count)
			if err == nil {
				held = append(held, m)
			} else if gap := largestGap(held, frames); gap >= count {
				t.Fatalf("step %d: %d frames refused, %d neighbouring ones are free: %v", step, count, gap, err)
			}
		} else {
			i := rng.IntN(len(held))
			u.giveBack(held[i])
			held = append(held[:i], held[i+1:]...)
		}
		var owner [frames]int
		for i, m := range held {
			for f := m.first; f < m.first+m.count; f++ {
				if owner[f] != 0 {
					t.Fatalf("step %d: frame %d has two owners", step, f)
				}
				owner[f] = i + 1
			}
		}
	}
	for _, m := range held {
		u.giveBack(m)
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
}

func largestGap(held []*member, frames int) int {
	used := make([]bool, frames)
	for _, m := range held {
		for f := m.first; f < m.first+m.count; f++ {
			used[f] = true
		}
	}
	largest, run := 0, 0
	for _, u := range used {
		if run++; u {
			run = 0
		}
		largest = max(largest, run)
	}
	return largest
}

func TestOpenQueuesChecksItsArguments(t *testing.T) {
	var oe *OptionError
	for _, c := range []struct {
		o      Options
		queues []int
	}{{Options{Device: "lo", Queue: 1}, []int{0}}, {Options{Device: "lo"}, nil}, {Options{Device: "lo", UMEM: &UMEM{}}, []int{0}}, {Options{Device: "lo", RxRing: 3}, []int{0}}} {
		if _, err := OpenQueues(c.o, c.queues...); !errors.As(err, &oe) {
			t.Errorf("%+v %v: %v", c.o, c.queues, err)
		}
	}
}
