// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"path"
	"regexp"
	"strings"
	"testing"
)

// elsewhere are folders of a developer's machine, which mean nothing to anybody else. A folder of that name further
// down a path is not meant. The brackets keep these lines from finding themselves.
var elsewhere = regexp.MustCompile(`(?:^|[^\w./-])(?:/wor[k]/|/tm[p]/team|/hom[e]/\w+/|/roo[t]/\w)`)

// download are the ways to the network that a script has, other than the distribution's packages and Go modules, and
// the registries' hosts, which are the user's choice.
var download = regexp.MustCompile(`\b(?:curl|wge[t]|aria2c)\b|https?://|\bproxy\.golang\b|\bsum\.golang\b|\bdebian\.org\b|\bubuntu\.com\b`)

func strayPaths(name string, content []byte) []string {
	if m := elsewhere.Find(content); m != nil {
		return []string{name + ": names a place on somebody's machine: " + strings.TrimSpace(string(m))}
	}
	return nil
}

func downloads(name string, content []byte) []string {
	if path.Base(name) != "Makefile" && !strings.HasPrefix(name, "scripts/") && !strings.HasPrefix(name, ".ci/") {
		return nil
	}
	if m := download.Find(content); m != nil {
		return []string{name + ": names a way to the network: " + string(m)}
	}
	return nil
}

func TestPlaces(t *testing.T) {
	walk(t, func(name string, content []byte) {
		for _, rule := range []func(string, []byte) []string{strayPaths, downloads} {
			for _, fault := range rule(name, content) {
				t.Error(fault)
			}
		}
	})
}

func TestPlacesRule(t *testing.T) {
	for text, want := range map[string]int{
		"cd /wor" + "k/main":               1,
		"(/tm" + "p/team/x)":               1,
		"see /hom" + "e/someone/x":         1,
		"\"/roo" + "t/go\"":                1,
		"internal/wor" + "k/load.go":       0,
		"/tmp/twopath /root\n":             0,
		"../wor" + "k/x and a/roo" + "t/x": 0,
	} {
		if got := strayPaths("x.md", []byte(text)); len(got) != want {
			t.Errorf("%q: %q, want %d faults", text, got, want)
		}
	}
	for _, text := range []string{"curl -O x", "wget x", "https://example.org"} {
		if len(downloads("scripts/x", []byte(text))) != 1 {
			t.Errorf("%q is let through", text)
		}
		if len(downloads("README.md", []byte(text))) != 0 {
			t.Errorf("%q is not allowed in a text", text)
		}
	}
}
