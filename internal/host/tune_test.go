// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"twopath/compare"
	"twopath/internal/knob"
	"twopath/internal/nstest"
)

// tree makes settings as a machine has them.
func tree(t *testing.T, files map[string]string) TuneOptions {
	t.Helper()
	dir := t.TempDir()
	for path, v := range files {
		if err := os.MkdirAll(filepath.Dir(dir+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+path, []byte(v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return TuneOptions{root: dir, Dir: dir + "/run"}
}

func byName(plan []Step, name string) (out Step) {
	for _, s := range plan {
		if s.Knob == name {
			out = s
		}
	}
	return out
}

func TestTunePlan(t *testing.T) {
	const net = "/proc/sys/net/core/"
	o := tree(t, map[string]string{net + "netdev_budget": "300", net + "netdev_budget_usecs": "8000", net + "rmem_max": "134217728", net + "dev_weight": "64",
		net + "busy_read": "0", "/proc/sys/kernel/numa_balancing": "1", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave"})
	plan, err := TunePlan(o)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]Step{
		"netdev_budget":      {Action: Change, Now: "300", Want: "600"},
		"rmem_max":           {Action: Keep, Now: "134217728"}, // more than enough
		"dev_weight":         {Action: Keep, Now: "64"},
		"busy_read":          {Action: Keep, Now: "0"},
		"numa_balancing":     {Action: Change, Now: "1", Want: "0"},
		"governor":           {Action: Change, Now: "powersave", Want: "performance"},
		"netdev_max_backlog": {Action: Lacking},
	} {
		got := byName(plan, name)
		if got.Action != want.Action || got.Now != want.Now || got.Want != want.Want || got.Why == "" || got.Risk == "" || (got.Note != "") != (want.Action == Lacking) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
	o.Profile = Latency
	if plan, err = TunePlan(o); err != nil || byName(plan, "busy_read").Want != "50" || byName(plan, "netdev_budget").Action != Keep {
		t.Errorf("latency: %+v, %v", plan, err)
	}
	o.Only, o.Set = []string{"governor"}, map[string]string{"dev_weight": "512", "busy_read": "0"}
	if plan, err = TunePlan(o); err != nil || len(plan) != 3 || byName(plan, "dev_weight").Want != "512" || byName(plan, "busy_read").Action != Keep {
		t.Errorf("some of them: %+v, %v", plan, err)
	}
	if n := o.Changes(plan); n != 2 {
		t.Errorf("%d changes", n)
	}
	j, err := TuneApply(o, plan)
	if err != nil || len(j.Settings) != 2 || !j.Settled {
		t.Fatalf("%+v, %v", j, err)
	}
	if again, err := TunePlan(o); err != nil || o.Changes(again) != 0 {
		t.Errorf("after apply: %+v, %v", again, err)
	}
	if c := tunedCheck(o.Dir); c.Status != Pass || !strings.Contains(c.What, "dev_weight 64 -> 512") || !strings.Contains(c.What, "tune undo") {
		t.Errorf("doctor: %+v", c)
	}
	if _, err := j.Undo(); err != nil {
		t.Error(err)
	}
	if got := read(o.root + net + "dev_weight"); got != "64" {
		t.Errorf("dev_weight is %s", got)
	}
	if c := tunedCheck(o.Dir); c.Status != Pass || !strings.Contains(c.What, "nothing") {
		t.Errorf("doctor, afterwards: %+v", c)
	}
}

func TestTuneOptionsRefused(t *testing.T) {
	for what, o := range map[string]TuneOptions{
		"latnecy":  {Profile: "latnecy"},
		"rx_rign":  {Only: []string{"rx_rign"}},
		"rx_ring":  {Only: []string{"rx_ring"}}, // of which port?
		"governer": {Set: map[string]string{"governer": "performance"}},
	} {
		var usage *compare.UsageError
		if _, err := TunePlan(o); !errors.As(err, &usage) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// Of a veth there is little to set, and of the rest the plan says so.
func TestTunePlanOfVeth(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := TuneOptions{Port: p.SUT.Name, Dir: t.TempDir()}
	p.SUT.Do(t, func() {
		plan, err := TunePlan(o)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, s := range plan {
			names = append(names, s.Knob)
		}
		if !slices.Equal(names, knob.Names()) {
			t.Errorf("the plan speaks of %v, want every knob", names)
		}
		for name, why := range map[string]string{"rx_ring": "driver veth", "adaptive_rx": "driver veth", "pause_rx": "driver veth", "irq_cpus": "interrupts", "xps_cpus": "one transmit queue"} {
			if s := byName(plan, name); s.Action != Lacking || !strings.Contains(s.Note, why) {
				t.Errorf("%s: %+v", name, s)
			}
		}
		if s := byName(plan, "offload_lro"); s.Action != Keep || !strings.Contains(s.Note, "fixed") {
			t.Errorf("offload_lro: %+v", s)
		}
		if s := byName(plan, "offload_rxvlan"); s.Action != Change || s.Now != "on" || s.Want != "off" {
			t.Errorf("offload_rxvlan: %+v", s)
		}
		o.Only, o.Set = []string{"offload_rxvlan"}, map[string]string{"rx_ring": "4096"}
		if plan, err = TunePlan(o); err != nil {
			t.Fatal(err)
		}
		var refused *knob.Refused
		if _, err := TuneApply(o, plan); !errors.As(err, &refused) || refused.Knob != "rx_ring" {
			t.Errorf("apply: %v, want rx_ring refused", err)
		}
		if r, err := knob.Read("offload_rxvlan", knob.At{Port: o.Port}); err != nil || r.Value != "on" {
			t.Errorf("offload_rxvlan after the refusal: %+v, %v", r, err)
		}
		facts := map[string]string{}
		if err := PortFacts(facts, "nic.", o.Port); err != nil || facts["nic.offload_rxvlan"] != "on" || facts["nic.rps_cpus"] != "none" || facts["nic.driver"] != "veth" {
			t.Errorf("facts %v, %v", facts, err)
		}
	})
}
