// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/json"
	"testing"
)

func tunePlan() TunePlan {
	return TunePlan{Port: "enp3s0", Driver: "ixgbe", Profile: "throughput", Steps: []TuneStep{
		{Knob: "dev_weight", Action: "keep", Now: "64", Why: "only a CPU's backlog looks at it", Risk: "other packets wait longer"},
		{Knob: "governor", Action: "lacking", Why: "a CPU that changes its frequency makes arms differ", Risk: "power", Note: "the kernel does not set the CPUs' frequency here"},
		{Knob: "rx_ring", Action: "change", Now: "512", Want: "4096", Why: "a larger ring bridges longer stalls, and falls out of the cache sooner", Risk: "the link may go down for a second or two"},
		{Knob: "offload_lro", Action: "keep", Now: "off", Want: "off", Why: "merges packets before anybody counts them", Risk: "bulk TCP costs more", Note: "fixed by driver ixgbe"},
		{Knob: "irq_cpus", Action: "change", Now: "0-3 0-3", Want: "0 1", Why: "an interrupt moves in the middle of a trial", Risk: "irqbalance may move them again"},
	}}
}

func TestTunePlanGolden(t *testing.T) {
	for name, width := range map[string]int{"tune-plan": 100, "tune-plan-narrow": 60} {
		var b bytes.Buffer
		if err := TunePlanText(&b, tunePlan(), TextOptions{Width: width}); err != nil {
			t.Fatal(err)
		}
		golden(t, name, b.Bytes())
	}
}

func TestTuneOutcomeGolden(t *testing.T) {
	var b bytes.Buffer
	out := TuneOutcome{Did: "apply", Port: "enp3s0", Journal: "/run/twopath/tune.json", Settings: []TuneResult{
		{Knob: "rx_ring", Before: "512", Want: "4096", Now: "4032", Note: "asked for 4096: the driver made it 4032"},
		{Knob: "xps_cpus", Before: "0 1", Now: "none", Note: "moved by another knob's change; undo puts it back"}}}
	if err := TuneOutcomeText(&b, out, TextOptions{Width: 100}); err != nil {
		t.Fatal(err)
	}
	golden(t, "tune-outcome", b.Bytes())
}

func TestTuneJSON(t *testing.T) {
	var b bytes.Buffer
	if err := TunePlanJSON(&b, TunePlan{Profile: "latency"}); err != nil {
		t.Fatal(err)
	}
	var p TunePlan
	if err := json.Unmarshal(b.Bytes(), &p); err != nil || p.Schema != "twopath/tune-plan/v1" || p.Steps == nil {
		t.Errorf("%s: %v", b.Bytes(), err)
	}
	b.Reset()
	if err := TuneOutcomeJSON(&b, TuneOutcome{Did: "undo", Rebooted: true}); err != nil {
		t.Fatal(err)
	}
	var o TuneOutcome
	if err := json.Unmarshal(b.Bytes(), &o); err != nil || o.Schema != "twopath/tune/v1" || !o.Rebooted || o.Settings == nil {
		t.Errorf("%s: %v", b.Bytes(), err)
	}
}
