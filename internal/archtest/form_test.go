// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"bytes"
	"go/format"
	"path"
	"regexp"
	"strings"
	"testing"
)

const goLicence = "// SPDX-License-Identifier: Apache-2.0\n"

// unlicensed finds files without their licence line: Go files start with it, others have it among the first lines.
func unlicensed(name string, content []byte) []string {
	want := ""
	switch base := path.Base(name); {
	case path.Ext(name) == ".go":
		if bytes.HasPrefix(content, []byte(goLicence)) || generated.Match(content) {
			return nil
		}
		return []string{name + ": does not start with " + strings.TrimSpace(goLicence)}
	case path.Ext(name) == ".c" || path.Ext(name) == ".h":
		want = "GPL-2.0 OR BSD-2-Clause"
	case path.Ext(name) == ".s" || base == "Makefile" || path.Ext(name) == ".sh" || bytes.HasPrefix(content, []byte("#!")):
		want = "Apache-2.0"
	default:
		return nil
	}
	head := bytes.Join(bytes.SplitN(content, []byte("\n"), 4)[:min(3, bytes.Count(content, []byte("\n")))], []byte("\n"))
	if !bytes.Contains(head, []byte("SPDX-License-Identifier: "+want)) {
		return []string{name + ": no line SPDX-License-Identifier: " + want + " at its top"}
	}
	return nil
}

var generated = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)

func TestLicences(t *testing.T) {
	walk(t, func(name string, content []byte) {
		for _, fault := range unlicensed(name, content) {
			t.Error(fault)
		}
	})
	for content, name := range map[string]string{
		"package p\n": "a/x.go", "\n" + goLicence: "a/x.go", "int x;\n": "c/x.c", "/* SPDX-License-Identifier: GPL-2.0 */\n": "c/x.h",
		"#!/bin/sh\n": "scripts/x", "all:\n": "Makefile", "": "a/x.s", "\n\n\n// SPDX-License-Identifier: Apache-2.0\n": "a/x.s",
	} {
		if len(unlicensed(name, []byte(content))) != 1 {
			t.Errorf("%s with %q is taken for licensed", name, content)
		}
	}
}

func unformatted(f *goFile) []string {
	want, err := format.Source(f.src)
	if err != nil {
		return []string{f.path + ": " + err.Error()}
	}
	if !bytes.Equal(want, f.src) {
		return []string{f.path + ": not as gofmt writes it"}
	}
	return nil
}

func TestFormat(t *testing.T) {
	each(t, goFiles(t), unformatted)
	breaks(t, unformatted, 1, source(t, "a/x.go", "package p\nfunc  f() {}\n"))
}

// undocumented finds packages without a comment, and with one that does not start as go doc wants it.
func undocumented(files []*goFile) []string {
	docs, faults := map[string]int{}, []string(nil)
	for _, f := range files {
		docs[f.pkg] += 0
		if f.ast.Doc == nil || strings.HasSuffix(f.ast.Name.Name, "_test") {
			continue
		}
		text := f.ast.Doc.Text()
		if strings.TrimSpace(text) == "" { // directives only
			continue
		}
		docs[f.pkg]++
		start := "Package " + f.ast.Name.Name + " "
		if f.ast.Name.Name == "main" {
			start = "Command " + path.Base(f.pkg) + " "
		}
		if !strings.HasPrefix(text, start) {
			faults = append(faults, f.path+": package comment does not start with "+start)
		}
	}
	for pkg, n := range docs {
		if n == 0 {
			faults = append(faults, pkg+": no package comment")
		}
	}
	return faults
}

func TestPackageComments(t *testing.T) {
	for _, fault := range undocumented(goFiles(t)) {
		t.Error(fault)
	}
	bad := []*goFile{
		source(t, "a/x.go", "// SPDX\n\npackage a\n"),
		source(t, "b/x.go", "// This is b.\npackage b\n"),
		source(t, "c/x.go", "// Package c is fine.\npackage c\n"),
		source(t, "c/y.go", "package c\n"),
		source(t, "cmd/d/x.go", "// Command e is not its name.\npackage main\n"),
		source(t, "cmd/e/x.go", "// Command e is.\npackage main\n"),
	}
	if got := undocumented(bad); len(got) != 3 {
		t.Errorf("found %q, want 3 faults", got)
	}
}

// TestLength notes long files. One idea per file has no hard limit.
func TestLength(t *testing.T) {
	for _, f := range goFiles(t) {
		if n := bytes.Count(f.src, []byte("\n")); n > 400 && !f.generated {
			t.Logf("note: %s has %d lines; is it one idea?", f.path, n)
		}
	}
}
