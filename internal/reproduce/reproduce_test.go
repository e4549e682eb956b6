// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"errors"
	"strings"
	"testing"

	"twopath/compare"
)

// Every step is a plan that can be run, or says why not; every row of a source has a step of ours beside it.
func TestSteps(t *testing.T) {
	for _, s := range Sources() {
		for _, quick := range []bool{true, false} {
			for _, cpus := range []int{2, 8} {
				steps := s.Steps(Scale{Quick: quick, CPUs: cpus, Base: compare.DefaultPlan("udp-rx")})
				if len(steps) < 2 || len(StepsOf(steps)) != len(steps) {
					t.Errorf("%s: steps %v", s.Name, StepsOf(steps))
				}
				total := 0.0
				for _, st := range steps {
					if st.Skip == "" && st.Plan.Validate() != nil {
						t.Errorf("%s %s: %v", s.Name, st.ID, st.Plan.Validate())
					}
					if st.Skip == "" && !(st.Seconds() > 0) {
						t.Errorf("%s %s takes %v s", s.Name, st.ID, st.Seconds())
					}
					total += st.Seconds()
				}
				if quick && total > 240 {
					t.Errorf("%s --quick takes about %.0f s", s.Name, total)
				}
			}
		}
	}
	steps := lineRate64().Steps(Scale{CPUs: 2, Base: compare.DefaultPlan("udp-rx")})
	for _, r := range LineRateRows() {
		if !strings.Contains(" "+strings.Join(StepsOf(steps), " ")+" ", " "+r.Step+" ") {
			t.Errorf("row of %d bytes stands beside step %q, which is not there", r.Bytes, r.Step)
		}
	}
}

// The figures are the source's: the losses it states follow from its own counts.
func TestLineRateRows(t *testing.T) {
	rows := LineRateRows()
	if len(rows) != 15 {
		t.Fatalf("%d rows", len(rows))
	}
	least, most := 1.0, 0.0
	for _, r := range rows {
		if r.Got > r.Sent || r.Mbps > 1000 || (r.Bytes >= 100) != (r.Loss() == 0) {
			t.Errorf("%+v", r)
		}
		if wire := r.PPS * float64(r.Bytes+compare.WireOverhead) * 8 / 1e6; wire < r.Mbps*0.98 || wire > r.Mbps*1.02 {
			t.Errorf("%d bytes at %.0f pps are %.0f Mb/s on the wire, not %.0f", r.Bytes, r.PPS, wire, r.Mbps)
		}
		if r.Bytes == 64 {
			least, most = min(least, r.Loss()), max(most, r.Loss())
		}
	}
	if least < 0.0032 || least > 0.0034 || most < 0.0104 || most > 0.0106 {
		t.Errorf("losses %v .. %v, the source says 0.33 %% to 1.05 %%", least, most)
	}
}

func TestLookup(t *testing.T) {
	if s, err := Lookup("line-rate-64"); err != nil || s.Name != LineRate64 {
		t.Errorf("%v, %v", s.Name, err)
	}
	_, err := Lookup("line-rate-46")
	var usage *compare.UsageError
	if !errors.As(err, &usage) || usage.Nearest != "line-rate-64" {
		t.Errorf("%v", err)
	}
}

// The base says where, the steps say what.
func TestBase(t *testing.T) {
	base := compare.DefaultPlan("udp-rx")
	base.NIC, base.Peer, base.Placement = "eth8", ":eth9", compare.PlaceSplit
	for _, s := range Sources() {
		for _, st := range s.Steps(Scale{Quick: true, CPUs: 2, Base: base}) {
			if st.Skip == "" && (st.Plan.NIC != "eth8" || st.Plan.Placement != compare.PlaceSplit) {
				t.Errorf("%s %s runs on %q, placement %q", s.Name, st.ID, st.Plan.NIC, st.Plan.Placement)
			}
		}
	}
}
