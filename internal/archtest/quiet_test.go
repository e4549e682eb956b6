// SPDX-License-Identifier: Apache-2.0

package archtest

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// forMainOnly are the names that only cmd may use.
var forMainOnly = [...]string{
	"os.Exit", "os.Stdin", "os.Stdout", "os.Stderr", "os.Args",
	"os.Getenv", "os.LookupEnv", "os.Environ", "os.ExpandEnv", "os.Setenv", "os.Unsetenv", "os.Clearenv",
	"syscall.Exit", "syscall.Getenv", "syscall.Environ", "unix.Exit", "unix.Getenv", "unix.Environ", "runtime.Goexit",
	"fmt.Print", "fmt.Printf", "fmt.Println",
	"log.Print", "log.Printf", "log.Println", "log.Output", "log.Default", "log.SetOutput", "log.Writer",
	"slog.Default", "slog.Debug", "slog.Info", "slog.Warn", "slog.Error", "slog.SetDefault",
}

// exempt are uses below cmd that have a reason.
var exempt = [...]string{
	// Only tests import it. The environment is where a test run says that it must not skip, and a test binary that runs
	// itself again, in other namespaces, passes on all that it was given.
	"internal/nstest os.Getenv", "internal/nstest os.Unsetenv", "internal/nstest os.Environ", "internal/nstest os.Args",
	"internal/nstest os.Stdin", "internal/nstest os.Stdout", "internal/nstest os.Stderr",
}

// loud finds code below cmd that prints, exits, panics, or reads flags, arguments or the environment; and panics in cmd.
func loud(f *goFile) []string {
	if f.test {
		return nil
	}
	inMain := strings.HasPrefix(f.pkg, "cmd/")
	var faults []string
	for _, p := range f.imports() {
		if (p == "flag" || p == "github.com/spf13/pflag" || p == "github.com/spf13/cobra") && !inMain {
			faults = append(faults, f.path+": only cmd may import "+p)
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.SelectorExpr:
			pkg, name := selected(n)
			use := pkg + "." + name
			if pkg == "log" && (strings.HasPrefix(name, "Fatal") || strings.HasPrefix(name, "Panic")) {
				faults = append(faults, f.at(n)+": "+use)
			}
			if !inMain && slices.Contains(forMainOnly[:], use) && !slices.Contains(exempt[:], f.pkg+" "+use) {
				faults = append(faults, f.at(n)+": only cmd may use "+use)
			}
		case *ast.CallExpr:
			id, ok := n.Fun.(*ast.Ident)
			if ok && id.Obj == nil && (id.Name == "panic" || id.Name == "print" || id.Name == "println") {
				faults = append(faults, f.at(n)+": calls "+id.Name)
			}
		}
		return true
	})
	return faults
}

func TestNothingBelowMainPrintsOrExits(t *testing.T) { each(t, goFiles(t), loud) }

func TestQuietRule(t *testing.T) {
	const bad = `package p
import ("flag"; "log"; "fmt"; "os")
func f() {
	fmt.Println("x")
	fmt.Fprintln(os.Stderr, "x")
	if os.Getenv("X") == "" { os.Exit(1) }
	log.Fatalf("x")
	panic("x")
}
`
	breaks(t, loud, 7, source(t, "xsk/x.go", bad))
	breaks(t, loud, 2, source(t, "cmd/twopath/x.go", bad))
	breaks(t, loud, 0, source(t, "xsk/x_test.go", bad))
	breaks(t, loud, 0, source(t, "xsk/x.go", "package p\nfunc f(fmt printer, err error) { fmt.Println(err.Error()) }\n"))
	breaks(t, loud, 0, source(t, "internal/nstest/x.go", "package p\nfunc f() { os.Getenv(\"X\") }\n"))
	breaks(t, loud, 1, source(t, "internal/nstest/x.go", "package p\nfunc f() { os.Exit(1) }\n"))
}
