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
		"kernel:recvmmsg+dev_weight=4096":   {"they would hold for all arms", "set it on the host"},
		"kernel:nosocket+batch=3":           {"not an option of kernel:nosocket"},
		"kernel:nosocket+dev_weight=3":      {"they would hold for all arms"},
		"kernel:nosocket+foo=3":             {"takes no options"},
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

// A host knob becomes an option by one more entry in the grammar.
func TestGrammarCanGrow(t *testing.T) {
	g := DefaultGrammar()
	g.Options = append(g.Options, ArmOption{Name: "dev_weight", Kind: Number, Min: 1, Max: 65536, For: []string{"kernel:epoll"}})
	g.Reserved = slices.DeleteFunc(g.Reserved, func(s string) bool { return s == "dev_weight" })
	a, err := g.Parse("kernel:epoll+dev_weight=4096+rcvbuf=1M")
	if err != nil {
		t.Fatal(err)
	}
	if got := g.Format(a); got != "kernel:epoll+rcvbuf=1M+dev_weight=4096" {
		t.Errorf("canonical %s", got)
	}
	if _, err := ParseArm("kernel:epoll+dev_weight=4096"); err == nil {
		t.Error("the default grammar changed too")
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
	for _, s := range []string{"kernel:recvmmsg+batch=64+rcvbuf=8M", "xdp:auto+wait=poll+ring=64", "xdp:", "kernel:epoll+reuseport+gro", "a+b=c:d", "+", ":"} {
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
