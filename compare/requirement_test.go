// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"strings"
	"testing"
)

func TestParseRequirement(t *testing.T) {
	for in, want := range map[string]string{
		"xdp:auto.loss_ratio<=1e-4":                              "xdp:auto.loss_ratio<=0.0001",
		"xdp:auto.loss_ratio <= 0.01%":                           "xdp:auto.loss_ratio<=0.0001",
		"kernel.received_pps>1.2M":                               "kernel.received_pps>1.2e+06",
		"xdp:auto+csum=off+wait=poll.cpu.work_ns_per_packet<400": "xdp:auto+wait=poll+csum=off.cpu.work_ns_per_packet<400",
		"verdict.ratio>=2":                                       "verdict.ratio>=2",
		"xdp.unexplained==0":                                     "xdp.unexplained==0",
	} {
		r, err := ParseRequirement(in)
		if err != nil || r.String() != want {
			t.Errorf("%q: %q, %v", in, r, err)
		}
		if back, err := ParseRequirement(r.String()); err != nil || back != r {
			t.Errorf("%q: read back %v, %v", in, back, err)
		}
	}
	for in, parts := range map[string][]string{
		"xdp:auto.loss_ration<=1":  {`did you mean "loss_ratio"?`, "allowed: received_pps"},
		"xdp:atuo.loss_ratio<=1":   {`did you mean "auto"?`},
		"xdp:auto<=1":              {"not ARM.METRIC"},
		"xdp:auto.loss_ratio":      {"no comparison"},
		"xdp:auto.loss_ratio=1":    {"no comparison"},
		"xdp:auto.loss_ratio<=":    {"not a number"},
		"xdp:auto.loss_ratio<=NaN": {"not a number"},
		"verdict.speed>1":          {"allowed: ratio, ci_low"},
		".loss_ratio<1":            {"not ARM.METRIC"},
		"":                         {"no comparison"},
	} {
		_, err := ParseRequirement(in)
		refused(t, in, err, parts...)
	}
}

func TestEvaluateRequirements(t *testing.T) {
	d := richDocument(t)
	for in, want := range map[string]string{ // what Because must have; "" is met
		"xdp:auto.loss_ratio<=1e-4":         "",
		"kernel:recvmmsg.loss_ratio<=1e-4":  "kernel:recvmmsg.loss_ratio<=0.0001: kernel:recvmmsg.loss_ratio is 0.79",
		"kernel.loss_ratio<=0.5":            "kernel:recvmmsg.loss_ratio is 0.79",
		"xdp.received_pps>=1M":              "",
		"xdp:copy.loss_ratio<=1":            "no such arm in this run (kernel:recvmmsg, xdp:auto, kernel:recvmmsg#2)",
		"xdp:auto.latency_p99_ns<5000":      "was not measured",
		"verdict.ratio>4":                   "",
		"verdict.ratio<4":                   "verdict.ratio is 4.8",
		"verdict.ci_low>4":                  "",
		"verdict.ci_high<4":                 "verdict.ci_high is 4.8",
		"verdict.blocks>=6":                 "",
		"verdict.p<0.05":                    "",
		"xdp:auto.unexplained==0":           "",
		"xdp:auto.unexplained!=0":           "unexplained is 0",
		"xdp:auto.cpu.work_ns_per_packet>1": "",
		"kernel:recvmmsg.upper_pps<1":       "upper_pps is 2",
	} {
		r, err := ParseRequirement(in)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Evaluate(d)
		if got.OK != (want == "") || !strings.Contains(got.Because, want) {
			t.Errorf("%s: %v, %q, want %q", in, got.OK, got.Because, want)
		}
	}
	if len(d.Requirements) != 2 || !d.Requirements[0].OK || d.Requirements[1].OK {
		t.Errorf("requirements of the plan: %+v", d.Requirements)
	}
	d.Verdict = nil
	r, _ := ParseRequirement("verdict.ratio>1")
	if r.Evaluate(d).OK {
		t.Error("met without a verdict")
	}
}

func FuzzParseRequirement(f *testing.F) {
	f.Add("xdp:auto+csum=off.cpu.work_ns_per_packet<=1e-4")
	f.Add("verdict.ratio>=2")
	f.Add("a.b==c!=d")
	d := richDocument(f)
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRequirement(s)
		if err != nil {
			var usage *UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("%v is no UsageError", err)
			}
			return
		}
		back, err := ParseRequirement(r.String())
		if err != nil || back != r {
			t.Fatalf("%q: text %q gives %v, %v", s, r, back, err)
		}
		if res := r.Evaluate(d); res.OK == (res.Because != "") {
			t.Fatalf("%q: %+v", s, res)
		}
	})
}
