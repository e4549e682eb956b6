// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestParseArm(t *testing.T) {
	for in, want := range map[string]string{
		"kernel:epoll":                             "kernel:epoll",
		"kernel:nosocket":                          "kernel:nosocket",
		"xdp:asavie+wait=spin":                     "xdp:asavie+wait=spin",
		"kernel:recvmmsg+rcvbuf=8388608+batch=064": "kernel:recvmmsg+batch=64+rcvbuf=8M",
		"kernel:recvmmsg+gro":                      "kernel:recvmmsg+gro",
		"kernel:recvmmsg+gro=on":                   "kernel:recvmmsg+gro",
		"kernel:recvmmsg+gro=off":                  "kernel:recvmmsg+gro=off",
		"kernel:epoll+reuseport":                   "kernel:epoll+reuseport",
		"kernel:epoll+reuseport=4":                 "kernel:epoll+reuseport=4",
		"xdp:auto+csum=off+ring=4096+wait=poll":    "xdp:auto+wait=poll+ring=4096+csum=off",
		"xdp:asavie+ring=2048":                     "xdp:asavie+ring=2048",
		"kernel:epoll+rcvbuf=5000":                 "kernel:epoll+rcvbuf=5000",
		"kernel:epoll+rcvbuf=260k":                 "kernel:epoll+rcvbuf=260k",
	} {
		a, err := ParseArm(in)
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		if got := a.String(); got != want {
			t.Errorf("%s: canonical %s, want %s", in, got, want)
		}
	}
	a, _ := ParseArm("kernel:recvmmsg+batch=32+rcvbuf=8M+gro=off")
	if a.Int("batch", 64) != 32 || a.Int("rcvbuf", 0) != 8<<20 || a.Int("ring", 7) != 7 || a.On("gro") || a.Option("wait") != "" {
		t.Errorf("accessors of %v", a)
	}
	if r := a.Requested(); r["variant"] != "recvmmsg" || r["batch"] != "32" || len(r) != 4 {
		t.Errorf("requested %v", r)
	}
}

func TestParseArmRefuses(t *testing.T) {
	for in, want := range map[string][]string{
		"kernal:epoll":                      {`arm "kernal"`, `did you mean "kernel"?`, "allowed: kernel, xdp"},
		"recvmmsg":                          {`did you mean "kernel:recvmmsg"?`},
		"zerocopy":                          {`did you mean "xdp:zerocopy"?`},
		"":                                  {"no such engine"},
		"xdp":                               {"no variant", "xdp:auto, xdp:zerocopy"},
		"xdp:":                              {"no variant"},
		"xdp:zero-copy":                     {`did you mean "zerocopy"?`, "auto, zerocopy, copy, generic, asavie"},
		"xdp:recvmmsg":                      {`did you mean "kernel:recvmmsg"?`},
		"kernel:recvmmsg+bacth=64":          {`arm option "bacth"`, `did you mean "batch"?`, "allowed: batch, wait, rcvbuf, gro, reuseport"},
		"kernel:epoll+batch=64":             {"not an option of kernel:epoll, only of kernel:recvmmsg"},
		"kernel:recvmmsg+batch":             {"needs a value", "+batch=64"},
		"kernel:recvmmsg+batch=0":           {"1..1024"},
		"kernel:recvmmsg+batch=-1":          {"1..1024"},
		"kernel:recvmmsg+batch=64+batch=32": {"given twice"},
		"kernel:recvmmsg+wait=poll":         {`"wait=poll"`, "allowed: block, spin, busypoll"},
		"kernel:recvmmsg+wait=blok":         {`did you mean "block"?`},
		"xdp:auto+wait=block":               {"allowed: spin, poll, busypoll"},
		"xdp:auto+wait":                     {"wait=spin, wait=poll"},
		"xdp:auto+ring=1000":                {"power of two"},
		"xdp:auto+ring=32":                  {"64..65536"},
		"kernel:recvmmsg+batch=2048":        {"1..1024"},
		"kernel:recvmmsg+rcvbuf=8MB":        {"4k..1G"},
		"kernel:recvmmsg+rcvbuf=12":         {"4k..1G"},
		"kernel:recvmmsg+gro=maybe":         {"allowed: on, off"},
		"kernel:recvmmsg+dev_weight=0":      {"1..65536"},
		"kernel:recvmmsg+dev_weight":        {"needs a value"},
		"kernel:recvmmsg+dev_wieght=512":    {`did you mean "dev_weight"?`, "twopath tune list"},
		"kernel:recvmmsg+threaded=on":       {"not an option of an arm", "--placement"},
		"xdp:auto+queues=2":                 {"--queues"},
		"xdp:auto+gro_flush_timeout=2s":     {"0..1000000000 ns"},
		"xdp:auto+gro_flush_timeout=-1us":   {"0..1000000000 ns"},
		"xdp:auto+rps_cpus=0,x":             {"0-3,5"},
		"xdp:auto+rps_cpus=1,1":             {"0-3,5"},
		"xdp:auto+governor=fast":            {"performance"},
		"kernel:nosocket+batch=3":           {"not an option of kernel:nosocket"},
		"kernel:nosocket+foo=3":             {"takes no options but host knobs"},
		"kernel:epoll+":                     {`arm option ""`, "no such option"},
	} {
		_, err := ParseArm(in)
		var usage *UsageError
		if !errors.As(err, &usage) {
			t.Errorf("%q: error %v, want a UsageError", in, err)
			continue
		}
		for _, part := range want {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q: %q lacks %q", in, err, part)
			}
		}
	}
}

// Host knobs are options of every arm, after its own.
func TestKnobs(t *testing.T) {
	for in, want := range map[string]string{
		"kernel:nosocket+dev_weight=512":                     "kernel:nosocket+dev_weight=512",
		"kernel:epoll+dev_weight=4096+rcvbuf=1M":             "kernel:epoll+rcvbuf=1M+dev_weight=4096",
		"xdp:auto+gro_flush_timeout=200us":                   "xdp:auto+gro_flush_timeout=200000",
		"xdp:auto+gro_flush_timeout=0+ring=64":               "xdp:auto+ring=64+gro_flush_timeout=0",
		"kernel:epoll+rps_cpus=3,0,1":                        "kernel:epoll+rps_cpus=0-1,3",
		"kernel:epoll+rps_cpus=none":                         "kernel:epoll+rps_cpus=none",
		"kernel:packet+rmem_default=8388608+offload_gro=off": "kernel:packet+rmem_default=8M+offload_gro=off",
	} {
		a, err := ParseArm(in)
		if err != nil || a.String() != want {
			t.Errorf("%s: %s, %v, want %s", in, a, err, want)
		}
		if len(a.Knobs()) == 0 || !a.Headline() && a.Variant != "nosocket" {
			t.Errorf("%s: knobs %v", in, a.Knobs())
		}
	}
	a, err := ParseArm("xdp:auto+ring=64+rx_usecs=0+netdev_budget=600")
	if err != nil {
		t.Fatal(err)
	}
	want := []KnobValue{{"netdev_budget", "600", Machine}, {"rx_usecs", "0", Port}}
	if got := a.Knobs(); !slices.Equal(got, want) {
		t.Errorf("knobs %v, want %v", got, want)
	}
	own := DefaultGrammar()
	for i, o := range own.Options {
		for _, other := range own.Options[:i] {
			if o.Name == other.Name {
				t.Errorf("two options are called %s", o.Name)
			}
		}
		if o.Scope != "" && (o.Help == "" || o.Scope != Machine && o.Scope != Port) {
			t.Errorf("knob %+v", o)
		}
	}
}

func TestHeadlineArms(t *testing.T) {
	for name, want := range map[string]bool{"xdp:auto": true, "xdp:asavie": false, "kernel:epoll": true, "kernel:nosocket": false} {
		if a, _ := ParseArm(name); a.Headline() != want {
			t.Errorf("%s in a headline: %v", name, !want)
		}
	}
	for _, test := range Tests() {
		for _, name := range DefaultArms(test.Name) {
			if a, err := ParseArm(name); err != nil || !a.Headline() || test.check(a) != nil {
				t.Errorf("%s: default arm %s: %v", test.Name, name, err)
			}
		}
	}
}

func FuzzParseArm(f *testing.F) {
	for _, s := range []string{"kernel:recvmmsg+batch=64+rcvbuf=8M", "xdp:auto+wait=poll+ring=64", "xdp:", "kernel:epoll+reuseport+gro", "a+b=c:d", "+", ":",
		"xdp:copy+gro_flush_timeout=200us+rps_cpus=0-3,5+rmem_max=8M", "kernel:epoll+governor=performance+irq_cpus=none"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		a, err := ParseArm(s)
		if err != nil {
			var usage *UsageError
			if !errors.As(err, &usage) || err.Error() == "" {
				t.Fatalf("%q: %v is no UsageError", s, err)
			}
			return
		}
		again, err := ParseArm(a.String())
		if err != nil || again.String() != a.String() {
			t.Fatalf("%q: canonical %q parses to %q, %v", s, a, again, err)
		}
	})
}
