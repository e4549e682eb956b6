// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"twopath/compare"
)

// scaled is the normal fixture with B's received rate multiplied.
func scaled(t *testing.T, factor float64) *compare.Document {
	t.Helper()
	k, x := recvmmsg(), xdpAuto()
	x.received = uint64(float64(x.sent) * factor)
	if lost := x.sent - x.received; lost > 0 {
		x.losses = []loss{{"xsk.rx_ring_full", "sut XDP_STATISTICS rx_ring_full", "", lost, compare.Exact}}
	}
	doc := compared(fixture(line1g, 6, k, x), faster())
	if err := assertFixture(doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

func TestDiffOutcomes(t *testing.T) {
	base := scaled(t, 1)
	noCPU := scaled(t, 1)
	for i := range noCPU.Arms {
		noCPU.Arms[i].CPU = compare.CPU{}
	}
	noisy := scaled(t, 0.9)
	for i := range noisy.Trials {
		if tr := &noisy.Trials[i]; tr.Arm == "xdp:auto" && i%2 == 0 {
			tr.Seconds *= 2 // half the rate in every other trial
		}
	}
	other := scaled(t, 1)
	other.Traffic.Size.Bytes = 128
	for _, c := range []struct {
		name    string
		old     *compare.Document
		new     *compare.Document
		limit   float64
		outcome DiffOutcome
		exit    int
	}{
		{"the same", base, base, 0.05, DiffOK, 0},
		{"a little worse", base, scaled(t, 0.97), 0.05, DiffOK, 0},
		{"worse", base, scaled(t, 0.9), 0.05, DiffRegressed, 1},
		{"better", scaled(t, 0.9), base, 0.05, DiffOK, 0},
		{"no limit at all", base, scaled(t, 0.999), 0, DiffRegressed, 1},
		{"a metric is gone", base, noCPU, 0.05, DiffNothing, 4},
		{"other size", base, other, 0.05, DiffNothing, 4},
		{"nothing", &compare.Document{}, &compare.Document{}, 0.05, DiffNothing, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Diff([]compare.Document{*c.old}, []compare.Document{*c.new}, c.limit)
			if got := r.Outcome(); got != c.outcome {
				t.Errorf("outcome %q, want %q; rows %+v", got, c.outcome, r.Rows)
			}
			if got := r.ExitCode(); got != c.exit {
				t.Errorf("exit %d, want %d", got, c.exit)
			}
		})
	}
	t.Run("scatter hides the change", func(t *testing.T) {
		r := Diff([]compare.Document{*base}, []compare.Document{*noisy}, 0.05)
		for _, row := range r.Rows {
			if row.Arm == "xdp:auto" && row.Metric == compare.MetricReceived && row.Word != Unclear {
				t.Errorf("received: %+v, want unclear", row)
			}
		}
	})
}

// A closed loop's loss means nothing, so it cannot be a regression.
func TestDiffIgnoresLossInClosedLoop(t *testing.T) {
	before, after := *scaled(t, 1), *scaled(t, 0.5)
	before.Rig.Placement, after.Rig.Placement = compare.PlaceSender, compare.PlaceSender
	before.Traffic.Rate, after.Traffic.Rate = compare.Rate{Unit: compare.MaxRate}, compare.Rate{Unit: compare.MaxRate}
	for _, row := range Diff([]compare.Document{before}, []compare.Document{after}, 0.05).Rows {
		if row.Metric == compare.MetricLoss {
			t.Errorf("loss judged in a closed loop: %+v", row)
		}
	}
}

func TestDiffGolden(t *testing.T) {
	before, after := scaled(t, 1), scaled(t, 0.88)
	after.Host.Kernel = "6.19"
	after.Arms[1].Effective.Attach = "generic"
	after.Arms = append(after.Arms, compare.Arm{Name: "kernel:packet", Engine: "kernel"})
	r := Diff([]compare.Document{*before}, []compare.Document{*after}, 0.05)
	var b bytes.Buffer
	if err := DiffText(&b, r, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff", b.Bytes())

	b.Reset()
	if err := DiffJSON(&b, r); err != nil {
		t.Fatal(err)
	}
	var back struct {
		Outcome     string
		Environment []string
		Rows        []DiffRow
	}
	if err := json.Unmarshal(b.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if back.Outcome != "regressed" || len(back.Rows) != len(r.Rows) || !strings.Contains(strings.Join(back.Environment, "\n"), "6.18 -> 6.19") {
		t.Errorf("JSON of a diff: %+v", back)
	}
}
