// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const (
	nstest   = "internal/nstest"
	archtest = "internal/archtest"
)

// forbiddenImports finds imports that no row allows. Tests may import what they need.
func forbiddenImports(rows []row) func(*goFile) []string {
	return func(f *goFile) []string {
		i := slices.IndexFunc(rows, func(r row) bool { return r.pkg == f.pkg })
		if i < 0 {
			return []string{f.path + ": package " + f.pkg + " has no row in ARCHITECTURE.md"}
		}
		if f.test {
			return nil
		}
		var faults []string
		for _, p := range f.imports() {
			if !rows[i].allows(p) {
				faults = append(faults, fmt.Sprintf("%s: %s may not import %s", f.path, f.pkg, p))
			}
		}
		return faults
	}
}

func (r row) allows(importPath string) bool {
	if own, is := strings.CutPrefix(importPath, module+"/"); is {
		return own != nstest && own != archtest && (r.any || slices.Contains(r.own, own))
	}
	if importPath == "testing" || strings.HasPrefix(importPath, "testing/") {
		return r.pkg == nstest
	}
	if importPath == "C" { // builds must do without a C compiler
		return false
	}
	first, _, _ := strings.Cut(importPath, "/")
	if !strings.Contains(first, ".") { // standard library
		return true
	}
	return r.any || slices.ContainsFunc(r.others, func(o string) bool {
		return importPath == o || strings.HasPrefix(importPath, o+"/")
	})
}

func TestImports(t *testing.T) {
	rows, files := table(t), goFiles(t)
	each(t, files, forbiddenImports(rows))

	// Rows that are ahead of the tree, or behind it, are no fault but worth a look.
	used := map[string]bool{}
	for _, f := range files {
		used[f.pkg] = true
		for _, p := range f.imports() {
			if !f.test {
				used[f.pkg+" "+p] = true
			}
		}
	}
	for _, r := range rows {
		if !used[r.pkg] {
			t.Logf("note: there is no package %s yet", r.pkg)
			continue
		}
		for _, p := range r.own {
			if !used[r.pkg+" "+module+"/"+p] {
				t.Logf("note: %s may import %s but does not", r.pkg, p)
			}
		}
	}
}

func TestImportsRule(t *testing.T) {
	rule := forbiddenImports([]row{
		{pkg: "a"}, {pkg: "b", own: []string{"a"}, others: []string{"e.org/m/sub"}}, {pkg: "c", any: true}, {pkg: nstest},
	})
	file := func(name, imports string) *goFile {
		return source(t, name, "package p\nimport (\n"+imports+"\n)\n")
	}
	breaks(t, rule, 0, file("b/x.go", `"fmt"; "os/exec"; "twopath/a"; "e.org/m/sub"; "e.org/m/sub/deep"`))
	breaks(t, rule, 4, file("b/x.go", `"twopath/c"; "e.org/m"; "e.org/m/subway"; "twopath/internal/nstest"`))
	breaks(t, rule, 3, file("a/x.go", `"twopath/b"; "testing"; "C"`))
	breaks(t, rule, 0, file("a/x_test.go", `"twopath/b"; "testing"; "twopath/internal/nstest"; "e.org/other"`))
	breaks(t, rule, 0, file("c/x.go", `"twopath/b"; "e.org/other"`))
	breaks(t, rule, 1, file("c/x.go", `"twopath/internal/nstest"`))
	breaks(t, rule, 0, file(nstest+"/x.go", `"testing"`))
	breaks(t, rule, 1, file("unknown/x_test.go", `"fmt"`))
}
