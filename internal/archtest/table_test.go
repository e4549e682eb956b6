// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// row is one line of the table of packages in ARCHITECTURE.md.
type row struct {
	pkg    string   // folder from the root
	own    []string // packages of this project that it may import
	others []string // packages of others, or modules of which all packages are allowed
	any    bool     // no limits
}

const tableMark = "<!-- archtest: packages -->"

var code = regexp.MustCompile("`([^`]+)`")

// parseTable reads the first table after the mark.
func parseTable(text string) ([]row, error) {
	_, text, found := strings.Cut(text, tableMark+"\n")
	if !found {
		return nil, errors.New("no table is marked with " + tableMark)
	}
	var rows []row
	for i, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "|") {
			break
		}
		if i < 2 { // heading and rule
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 {
			return nil, fmt.Errorf("row %q has %d cells, want 4", line, len(cells))
		}
		name := words(cells[0])
		if len(name) != 1 {
			return nil, fmt.Errorf("row %q names no package", line)
		}
		r := row{pkg: name[0], own: words(cells[2]), others: words(cells[3])}
		if strings.TrimSpace(cells[2]) == "any" && strings.TrimSpace(cells[3]) == "any" {
			r.any = true
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, errors.New("the table has no rows")
	}
	return rows, nil
}

// words gives what is written as code in a cell.
func words(cell string) []string {
	var list []string
	for _, m := range code.FindAllStringSubmatch(cell, -1) {
		list = append(list, m[1])
	}
	return list
}

func table(t *testing.T) []row {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := parseTable(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// disorder finds rows that are there twice, and imports of packages that are not further up: so there are no cycles.
func disorder(rows []row) []string {
	var faults, above []string
	for _, r := range rows {
		if slices.Contains(above, r.pkg) {
			faults = append(faults, r.pkg+" has two rows")
		}
		for _, p := range r.own {
			if !slices.Contains(above, p) {
				faults = append(faults, fmt.Sprintf("%s may import %s, which has no row above it", r.pkg, p))
			}
		}
		above = append(above, r.pkg)
	}
	return faults
}

func TestTableIsInDependencyOrder(t *testing.T) {
	for _, fault := range disorder(table(t)) {
		t.Error(fault)
	}
	bad := []row{{pkg: "a", own: []string{"b"}}, {pkg: "b"}, {pkg: "b"}}
	if got := disorder(bad); len(got) != 2 {
		t.Errorf("found %q in %v, want 2 faults", got, bad)
	}
}

func TestParseTable(t *testing.T) {
	head := tableMark + "\n|a|b|c|d|\n|---|---|---|---|\n"
	rows, err := parseTable(head + "| `x` | text `not a package` | `y` `z` | `e.org/m` |\n| `cmd` | | any | any |\n\n| `later` | | | |\n")
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 2 || rows[0].pkg != "x" || !slices.Equal(rows[0].own, []string{"y", "z"}) ||
		!slices.Equal(rows[0].others, []string{"e.org/m"}) || rows[0].any || !rows[1].any {
		t.Errorf("got %+v", rows)
	}
	for _, text := range []string{"", head, head + "| `x` | | |\n", head + "| x | | | |\n"} {
		if rows, err := parseTable(text); err == nil {
			t.Errorf("parsed %q into %+v, want an error", text, rows)
		}
	}
}

// TestGraphAgrees holds the drawn graph to the table: each arrow is an import the table allows.
func TestGraphAgrees(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, graph, found := strings.Cut(string(text), "flowchart BT\n")
	graph, _, closed := strings.Cut(graph, "```")
	if !found || !closed {
		t.Fatal("no graph of packages")
	}
	names := map[string]string{} // of nodes, to packages
	node := regexp.MustCompile(`^(\w+)(?:\[([^\]]+)\])?$`)
	type arrow struct{ from, to string }
	var arrows []arrow
	for line := range strings.Lines(graph) {
		left, right, hasArrow := strings.Cut(strings.TrimSpace(line), " --> ")
		m := node.FindStringSubmatch(left)
		if m == nil {
			t.Errorf("graph: cannot read %q", line)
			continue
		}
		if m[2] == "" {
			m[2] = m[1]
		}
		names[m[1]] = m[2]
		if hasArrow {
			for to := range strings.SplitSeq(right, " & ") {
				arrows = append(arrows, arrow{m[1], to})
			}
		}
	}
	drawn := map[string]bool{}
	for _, pkg := range names {
		drawn[pkg] = true
	}
	allowed := map[arrow]bool{}
	for _, r := range table(t) {
		for _, p := range r.own {
			allowed[arrow{r.pkg, p}] = true
		}
		if r.any {
			for pkg := range drawn {
				allowed[arrow{r.pkg, pkg}] = true
			}
		} else if !drawn[r.pkg] && r.pkg != "internal/nstest" && r.pkg != "internal/archtest" {
			t.Errorf("%s is in the table but not in the graph", r.pkg)
		}
	}
	seen := map[arrow]bool{}
	for _, a := range arrows {
		a = arrow{names[a.from], names[a.to]}
		seen[a] = true
		if !allowed[a] {
			t.Errorf("the graph has %s --> %s, the table does not allow it", a.from, a.to)
		}
	}
	for _, r := range table(t) {
		for _, p := range r.own {
			if !seen[arrow{r.pkg, p}] {
				t.Errorf("the table has %s --> %s, the graph does not", r.pkg, p)
			}
		}
	}
}
