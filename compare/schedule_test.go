// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"reflect"
	"strings"
	"testing"
)

func arms(tb testing.TB, names ...string) []ArmSpec {
	tb.Helper()
	var out []ArmSpec
	for _, n := range names {
		a, err := ParseArm(n)
		if err != nil {
			tb.Fatal(err)
		}
		out = append(out, a)
	}
	return out
}

// letters spells each block with A for the first arm, B for the second, ...
func letters(s *Schedule) []string {
	var blocks []string
	for _, t := range s.Trials {
		for i, label := range s.Labels {
			if label != t.Label || t.Block == 0 {
				continue
			}
			for len(blocks) < t.Block {
				blocks = append(blocks, "")
			}
			blocks[t.Block-1] += string(rune('A' + i))
		}
	}
	return blocks
}

func TestScheduleGolden(t *testing.T) {
	two := arms(t, "kernel:recvmmsg", "xdp:auto")
	s, err := NewSchedule(two, ScheduleOptions{Blocks: 6, Warmup: 1, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	// A change here changes what a recorded seed reproduces: say so in the release notes.
	const want = "BAAB ABBA ABBA BAAB BAAB ABBA"
	if got := strings.Join(letters(s), " "); got != want {
		t.Errorf("seed 1 gives %s, want %s", got, want)
	}
	if len(s.Trials) != 2+24 || s.Trials[0].Kind != Warmup || s.Trials[1].Label != "xdp:auto" || s.Trials[0].Block != 0 || s.Trials[2].Position != 1 {
		t.Errorf("trials %v", s.Trials)
	}
	again, _ := NewSchedule(two, ScheduleOptions{Blocks: 6, Warmup: 1, Seed: 1})
	if !reflect.DeepEqual(s, again) {
		t.Error("the same seed gave another schedule")
	}
	different := false
	for seed := range uint64(8) {
		other, _ := NewSchedule(two, ScheduleOptions{Blocks: 6, Warmup: 1, Seed: seed + 2})
		different = different || !reflect.DeepEqual(letters(s), letters(other))
	}
	if !different {
		t.Error("eight other seeds gave the same schedule")
	}
}

// Whatever the number of arms, blocks and seed: every block is its own mirror
// image and holds each arm twice; over k blocks each arm is in each place
// equally often, so a drift falls on all alike.
func TestScheduleIsBalanced(t *testing.T) {
	names := []string{"kernel:recvmmsg", "xdp:auto", "kernel:epoll", "xdp:copy", "xdp:generic"}
	for k := 1; k <= len(names); k++ {
		for seed := range uint64(20) {
			s, err := NewSchedule(arms(t, names[:k]...), ScheduleOptions{Blocks: 3 * k, Seed: seed})
			if err != nil {
				t.Fatal(err)
			}
			blocks := letters(s)
			places := map[[2]int]int{} // arm, place -> times
			for _, b := range blocks {
				seen := map[byte]int{}
				for i := range b {
					seen[b[i]]++
					if b[i] != b[len(b)-1-i] {
						t.Fatalf("%d arms: block %s is not mirrored", k, b)
					}
					if i < k {
						places[[2]int{int(b[i]), i}]++
					}
				}
				if len(b) != 2*k || len(seen) != k {
					t.Fatalf("%d arms: block %s", k, b)
				}
			}
			for p, n := range places {
				if n != 3 {
					t.Fatalf("%d arms, seed %d: arm %c is %d times in place %d of %v", k, seed, p[0], n, p[1], blocks)
				}
			}
		}
	}
}

func TestScheduleTwins(t *testing.T) {
	s, err := NewSchedule(arms(t, "xdp:auto", "xdp:auto", "kernel:epoll"), ScheduleOptions{Blocks: 1, Warmup: 1})
	if err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(s.Labels, []string{"xdp:auto", "xdp:auto#2", "kernel:epoll"}) {
		t.Errorf("labels %v", s.Labels)
	}
	for _, spec := range s.Trials {
		want := Measured
		switch {
		case spec.Block == 0:
			want = Warmup
		case spec.Label == "xdp:auto#2":
			want = AA
		}
		if spec.Kind != want || spec.Attempt != 1 {
			t.Errorf("%v is %s", spec, spec.Kind)
		}
	}
	p := DefaultPlan("udp-rx")
	p.AA = true
	s, err = p.Schedule()
	if err != nil || !reflect.DeepEqual(s.Labels, []string{"kernel:recvmmsg", "xdp:auto", "kernel:recvmmsg#2"}) {
		t.Errorf("labels %v, %v", s.Labels, err)
	}
}

func TestScheduleRefuses(t *testing.T) {
	if _, err := NewSchedule(nil, ScheduleOptions{Blocks: 6}); err == nil {
		t.Error("no arms")
	}
	if _, err := NewSchedule(arms(t, "xdp:auto"), ScheduleOptions{}); err == nil {
		t.Error("no blocks")
	}
	p := Plan{Arms: []string{"xdp:no"}, Blocks: 1}
	if _, err := p.Schedule(); err == nil {
		t.Error("a bad arm")
	}
}

// A machine that gets 1 % faster with every trial makes no difference between equal arms.
func TestMirrorCancelsDrift(t *testing.T) {
	for _, drift := range []float64{0.01, -0.01} {
		m := &machine{offered: 1e6, capacity: map[string]float64{"kernel:recvmmsg": 3e5, "xdp:auto": 3e5}, drift: drift}
		d := m.measure(t, 6, 3, "kernel:recvmmsg", "xdp:auto")
		for _, log := range pairBlocks(d.Trials, "kernel:recvmmsg", "xdp:auto", mustMetric(t, MetricReceived)).logs {
			if math.Abs(log) > 3e-4 {
				t.Errorf("drift %v leaves a log-ratio of %v in a block", drift, log)
			}
		}
		if d.Verdict.Word != Equivalent {
			t.Error(describe(d.Verdict))
		}
	}
}

func mustMetric(tb testing.TB, name string) Metric {
	m, ok := LookupMetric(name)
	if !ok {
		tb.Fatalf("no metric %s", name)
	}
	return m
}
