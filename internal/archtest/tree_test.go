// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

const module = "twopath"

// goFile is one parsed Go file of the tree.
type goFile struct {
	path      string // from the root of the tree, with slashes
	pkg       string // folder of path: the import path without the module's name
	src       []byte
	ast       *ast.File
	fset      *token.FileSet
	test      bool // ends in _test.go
	generated bool
}

// at says where in the file a node is.
func (f *goFile) at(n ast.Node) string {
	return fmt.Sprintf("%s:%d", f.path, f.fset.Position(n.Pos()).Line)
}

// imports gives the import paths of the file.
func (f *goFile) imports() []string {
	var list []string
	for _, spec := range f.ast.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err == nil {
			list = append(list, p)
		}
	}
	return list
}

func parse(name string, src []byte) (*goFile, error) {
	f := &goFile{path: name, pkg: path.Dir(name), src: src, fset: token.NewFileSet(), test: strings.HasSuffix(name, "_test.go")}
	var err error
	f.ast, err = parser.ParseFile(f.fset, name, src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	f.generated = ast.IsGenerated(f.ast)
	return f, nil
}

// source parses a file written in a test, as if it lay at name.
func source(t *testing.T, name, src string) *goFile {
	t.Helper()
	f, err := parse(name, []byte(src))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// root is the top folder of the tree.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil || !strings.HasPrefix(string(mod), "module "+module+"\n") {
		t.Fatalf("%s is not the root of %s: %v", dir, module, err)
	}
	return dir
}

// walk calls fn with every file of the tree that belongs to it: not with git's, and not with what was built.
func walk(t *testing.T, fn func(name string, content []byte)) {
	t.Helper()
	top := os.DirFS(root(t))
	err := fs.WalkDir(top, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == ".git" || name == "bin"):
			return fs.SkipDir
		case name == ".git": // the file that a worktree of git has in its place
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		content, err := fs.ReadFile(top, name)
		if err != nil {
			return err
		}
		fn(name, content)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// goFiles parses all Go files of the main module.
func goFiles(t *testing.T) []*goFile {
	t.Helper()
	var list []*goFile
	walk(t, func(name string, content []byte) {
		if path.Ext(name) != ".go" || strings.HasPrefix(name, "tools/") || strings.Contains(name, "/testdata/") {
			return
		}
		f, err := parse(name, content)
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		list = append(list, f)
	})
	if len(list) < 20 {
		t.Fatalf("only %d Go files found", len(list))
	}
	return list
}

// each applies a rule to all files and reports what it finds.
func each(t *testing.T, files []*goFile, rule func(*goFile) []string) {
	t.Helper()
	for _, f := range files {
		for _, v := range rule(f) {
			t.Error(v)
		}
	}
}

// breaks fails unless the rule finds exactly n faults in the file.
func breaks(t *testing.T, rule func(*goFile) []string, n int, f *goFile) {
	t.Helper()
	if got := rule(f); len(got) != n {
		t.Errorf("%s: the rule finds %d faults, want %d: %q\n%s", f.path, len(got), n, got, f.src)
	}
}
