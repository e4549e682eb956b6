// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// scalingCell is a cell over n queues, with readers on the given CPUs.
func scalingCell(n int, received, tsc float64, lost uint64, cpus ...int) *Document {
	return &Document{Traffic: Traffic{Queues: n, PPS: Num(2e6), Size: Size{Bytes: 64}}, Rig: Rig{Placement: PlaceShared},
		Arms: []Arm{{Name: "xdp:auto", Valid: 6, ReceivedPPS: Num(received), TSCPerPacket: Num(tsc), Lost: lost, Effective: Effective{CPUs: cpus, Queues: n}}}}
}

func TestScaling(t *testing.T) {
	cells := []*Document{scalingCell(4, 1.6e6, 1100, 9, 0, 1, 2, 3), scalingCell(1, 5e5, 1000, 9, 0), scalingCell(2, 9e5, 1000, 9, 0, 1)}
	got := Scaling(cells, "xdp:auto")
	if len(got) != 3 || got[0].Queues != 1 || got[2].Queues != 4 {
		t.Fatalf("%+v", got)
	}
	if got[0].SpeedUp != nil || got[0].TSCGrowth != nil || got[0].Efficiency != nil {
		t.Errorf("the first is compared with itself: %+v", got[0])
	}
	if !near(*got[1].SpeedUp, 1.8) || !near(*got[1].Efficiency, 0.8) || !near(*got[2].SpeedUp, 3.2) || !near(*got[2].Efficiency, 2.2/3) || !near(*got[2].TSCGrowth, 1.1) {
		t.Errorf("%v %v %v %v %v", *got[1].SpeedUp, *got[1].Efficiency, *got[2].SpeedUp, *got[2].Efficiency, *got[2].TSCGrowth)
	}
	for _, p := range got {
		if p.Untold != "" {
			t.Errorf("%d queues: %s", p.Queues, p.Untold)
		}
	}
	if cells[0].Traffic.Queues != 4 {
		t.Error("the caller's cells were sorted")
	}
	if Scaling(cells[:1], "xdp:auto") != nil || Scaling(cells, "kernel:epoll") != nil {
		t.Error("scaling of one point, or of none")
	}
}

// Where workers share CPUs, or the fewest of them took all there was, rates say nothing about scaling.
func TestScalingIsUntold(t *testing.T) {
	shared := scalingCell(2, 9e5, 1000, 9, 0)
	enough := []*Document{scalingCell(1, 5e5, 1000, 0, 0), scalingCell(2, 5e5, 1000, 0, 0, 1)}
	split := scalingCell(2, 9e5, 1000, 9, 0, 1)
	split.Rig.Placement, split.Arms[0].Effective.NAPICPUs = PlaceSplit, []int{3, 3}
	sender := scalingCell(2, 9e5, 1000, 9, 0, 1)
	sender.Rig.Placement, sender.Rig.CPUs = PlaceSender, CPUs{"peer": {3}}
	one := scalingCell(1, 5e5, 1000, 9, 0)
	for name, c := range map[string]struct {
		cells []*Document
		part  string
	}{
		"readers share": {[]*Document{one, shared}, "2 workers on 1 CPU"},
		"all arrived":   {enough, "arrived over 1 already"},
		"NAPI shares":   {[]*Document{one, split}, "NAPI of 2 queues on 1 CPU"},
		"one sends":     {[]*Document{one, sender}, "the 1 CPU that send"},
	} {
		got := Scaling(c.cells, "xdp:auto")
		if len(got) != 2 || !strings.Contains(got[1].Untold, c.part) {
			t.Errorf("%s: %+v, want %q", name, got, c.part)
		}
	}
}

func TestImbalance(t *testing.T) {
	for _, c := range []struct {
		in   []uint64
		want float64
	}{{[]uint64{10, 30}, 3}, {[]uint64{5, 5, 5}, 1}, {[]uint64{0, 7}, math.Inf(1)}, {[]uint64{7}, math.NaN()}, {[]uint64{0, 0}, math.NaN()}, {nil, math.NaN()}} {
		if got := Imbalance(c.in); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%v: %v, want %v", c.in, got, c.want)
		}
	}
	if got := addWorkers(addWorkers(nil, []uint64{1, 2}), []uint64{3, 4, 5}); !slices.Equal(got, []uint64{4, 6, 5}) {
		t.Errorf("sums %v", got)
	}
}
