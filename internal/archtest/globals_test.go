// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// global is a variable at package level.
type global struct {
	file  *goFile
	name  *ast.Ident
	value ast.Expr // nil: none
	typ   ast.Expr // nil: that of value
	embed bool
}

func globals(f *goFile) []global {
	var list []global
	for _, d := range f.ast.Decls {
		decl, ok := d.(*ast.GenDecl)
		if !ok || decl.Tok != token.VAR {
			continue
		}
		for _, s := range decl.Specs {
			spec, ok := s.(*ast.ValueSpec)
			if !ok {
				continue
			}
			for i, name := range spec.Names {
				g := global{file: f, name: name, typ: spec.Type, embed: embedded(decl.Doc) || embedded(spec.Doc)}
				if len(spec.Values) == len(spec.Names) {
					g.value = spec.Values[i]
				} else if len(spec.Values) == 1 {
					g.value = spec.Values[0]
				}
				if name.Name != "_" {
					list = append(list, g)
				}
			}
		}
	}
	return list
}

func embedded(doc *ast.CommentGroup) bool {
	return doc != nil && slices.ContainsFunc(doc.List, func(c *ast.Comment) bool { return strings.HasPrefix(c.Text, "//go:embed ") })
}

// constant says whether a variable of this form can only ever be what it was set to, if nothing assigns to it.
func (g global) constant() bool {
	if g.embed {
		return true
	}
	switch v := g.value.(type) {
	case *ast.CallExpr:
		pkg, name := selected(v.Fun)
		use := pkg + "." + name
		return use == "errors.New" || use == "fmt.Errorf" || use == "regexp.MustCompile" || use == "strings.NewReplacer"
	case *ast.SelectorExpr: // an error under the name it has here
		return strings.HasPrefix(g.name.Name, "Err")
	case *ast.CompositeLit: // a table; nobody outside may get at it
		return !g.name.IsExported()
	}
	// The linker writes the version, and nothing else: -X main.version.
	return g.file.pkg == "cmd/twopath" && g.name.Name == "version"
}

// mutableState finds package-level variables that can change, in the files of one package.
func mutableState(files []*goFile) []string {
	var faults []string
	names := map[string]bool{}
	for _, f := range files {
		if f.generated || f.test {
			continue
		}
		for _, g := range globals(f) {
			names[g.name.Name] = true
			if !g.constant() {
				faults = append(faults, fmt.Sprintf("%s: %s is mutable state at package level", f.at(g.name), g.name.Name))
			}
		}
	}
	for _, f := range files {
		if f.test {
			continue
		}
		ours := func(e ast.Expr) bool { // e is, or is part of, one of names
			for {
				switch x := e.(type) {
				case *ast.IndexExpr:
					e = x.X
				case *ast.SelectorExpr:
					e = x.X
				case *ast.ParenExpr:
					e = x.X
				case *ast.StarExpr:
					e = x.X
				case *ast.Ident:
					return names[x.Name] && (x.Obj == nil || atPackageLevel(f, x.Obj.Pos()))
				default:
					return false
				}
			}
		}
		report := func(n ast.Node, what string) {
			faults = append(faults, f.at(n)+": "+what+" a variable at package level")
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.AssignStmt:
				if n.Tok != token.DEFINE && slices.ContainsFunc(n.Lhs, ours) {
					report(n, "assigns to")
				}
			case *ast.IncDecStmt:
				if ours(n.X) {
					report(n, "counts")
				}
			case *ast.UnaryExpr:
				if n.Op == token.AND && ours(n.X) {
					report(n, "takes the address of")
				}
			case *ast.CallExpr:
				if id, ok := n.Fun.(*ast.Ident); ok && len(n.Args) > 0 && (id.Name == "delete" || id.Name == "clear" || id.Name == "copy") && ours(n.Args[0]) {
					report(n, "changes")
				}
			}
			return true
		})
	}
	return faults
}

// atPackageLevel says whether what is declared at pos is declared outside functions.
func atPackageLevel(f *goFile, pos token.Pos) bool {
	for _, d := range f.ast.Decls {
		if d.Pos() <= pos && pos < d.End() {
			_, isVar := d.(*ast.GenDecl)
			return isVar
		}
	}
	return false
}

func TestNoMutableState(t *testing.T) {
	packages := map[string][]*goFile{}
	for _, f := range goFiles(t) {
		packages[f.pkg] = append(packages[f.pkg], f)
	}
	for _, files := range packages {
		for _, fault := range mutableState(files) {
			t.Error(fault)
		}
	}
}

func TestMutableStateRule(t *testing.T) {
	for src, want := range map[string]int{
		"var ErrX = errors.New(`x`)":                                     0,
		"var ErrX = fmt.Errorf(`x: %w`, os.ErrClosed)":                   0,
		"var ErrClosed = os.ErrClosed":                                   0,
		"var _ io.Reader = (*T)(nil)":                                    0,
		"var re = regexp.MustCompile(`x`)":                               0,
		"//go:embed x\nvar x []byte":                                     0,
		"var (\n//go:embed x\nx []byte\n)":                               0,
		"var t = [...]string{`a`}; func f(i int) string { return t[i] }": 0,
		"var t = [...]string{`a`}; func f() { t := 1; t++; _ = t }":      0,
		"var t = [...]string{`a`}; func f(t []int) { t[0] = 1 }":         0,
		"var n int":                    1,
		"var n, m = 1, 2":              2,
		"var once sync.Once":           1,
		"var a, b = f()":               2,
		"var Table = map[string]int{}": 1,
		"var t = map[string]int{}; func f() { t[`a`] = 1; t[`b`]++; delete(t, `a`) }": 3,
		"var t = T{}; func f() { t.x = 1; g(&t) }":                                    2,
		"var version = `x`": 1,
	} {
		f := source(t, "a/x.go", "package p\n"+src+"\n")
		breaks(t, func(f *goFile) []string { return mutableState([]*goFile{f}) }, want, f)
	}
	other := source(t, "a/y.go", "package p\nfunc g() { t[0] = 1 }\n")
	table := source(t, "a/x.go", "package p\nvar t = [...]int{1}\n")
	if got := mutableState([]*goFile{other, table}); len(got) != 1 {
		t.Errorf("a write from another file: %q, want 1 fault", got)
	}
	version := source(t, "cmd/twopath/x.go", "package main\nvar version = `x`\n")
	breaks(t, func(f *goFile) []string { return mutableState([]*goFile{f}) }, 0, version)
}
