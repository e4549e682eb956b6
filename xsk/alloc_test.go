// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
	"time"

	"twopath/internal/nstest"
)

// The packet paths do not allocate, on a real veth pair with real system calls.
func TestNoAllocationOnPacketPaths(t *testing.T) {
	for _, wait := range allWaits {
		p, s := receiver(t, nstest.Options{}, Options{Wait: wait, RxRing: 256, TxRing: 256})
		tx := openAt(t, p.Peer, Options{RxRing: None, TxRing: 256})
		descs := make([]Desc, 32)
		sent, received, sum := 0, 0, 0
		send := func() {
			n := tx.Reserve(descs)
			for i, d := range descs[:n] {
				copy(tx.Buffer(d), header)
				descs[i].Len = 60
			}
			sent += tx.Submit(descs[:n])
			if err := tx.Kick(); err != nil {
				t.Fatal(err)
			}
			tx.Complete()
		}
		receive := func() {
			for received < sent {
				ev, err := s.Wait(time.Second)
				if ev != Ready || err != nil {
					t.Fatalf("%v, %v", ev, err)
				}
				n := s.Receive(descs)
				for _, d := range descs[:n] {
					sum += len(s.Frame(d))
				}
				received += s.Release(descs[:n])
			}
		}
		if n := testing.AllocsPerRun(100, func() { send(); receive() }); n != 0 {
			t.Errorf("%v: %v allocations for a batch", wait, n)
		}
		if n := testing.AllocsPerRun(10, func() { _, _ = s.Wait(time.Millisecond); s.Receive(descs); _, _ = s.Stats() }); n != 0 {
			t.Errorf("%v: %v allocations for an empty poll", wait, n)
		}
		if received == 0 || sum != received*60 {
			t.Errorf("%v: %d frames, %d bytes", wait, received, sum)
		}
	}
}

var header = frame(0, 60)

// unsafe and raw system calls are in *_unsafe.go only, and the package imports nothing but the standard library and x/sys/unix.
func TestImports(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, f := range files {
		if !strings.HasSuffix(f.Name(), ".go") || strings.HasSuffix(f.Name(), "_test.go") {
			continue
		}
		seen++
		src, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		ast, err := parser.ParseFile(token.NewFileSet(), f.Name(), src, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		allowed := strings.HasSuffix(f.Name(), "_unsafe.go")
		for _, i := range ast.Imports {
			path := strings.Trim(i.Path.Value, `"`)
			if path == "unsafe" && !allowed {
				t.Errorf("%s imports unsafe", f.Name())
			}
			if first, _, _ := strings.Cut(path, "/"); path != "golang.org/x/sys/unix" && (strings.Contains(first, ".") || first == "twopath") {
				t.Errorf("%s imports %s", f.Name(), path)
			}
		}
		if !allowed && strings.Contains(string(src), "unix.Syscall") {
			t.Errorf("%s makes a raw system call", f.Name())
		}
		if !strings.HasPrefix(string(src), "// SPDX-License-Identifier: Apache-2.0\n") {
			t.Errorf("%s has no licence line", f.Name())
		}
	}
	if seen < 10 {
		t.Errorf("only %d files seen", seen)
	}
}
