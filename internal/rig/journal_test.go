// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"twopath/internal/process"
)

func TestOwnerIsAliveWhileItRuns(t *testing.T) {
	me, err := thisProcess()
	if err != nil || !me.Alive() {
		t.Fatalf("this process: %+v, %v, alive %t", me, err, me.Alive())
	}
	for what, o := range map[string]owner{
		"earlier process of this id": {PID: me.PID, Start: me.Start - 1, Boot: me.Boot},
		"before a reboot":            {PID: me.PID, Start: me.Start, Boot: "other"},
	} {
		if o.Alive() {
			t.Errorf("%s is said to be alive", what)
		}
	}
	c := exec.Command("sleep", "60")
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	child := owner{PID: c.Process.Pid, Boot: me.Boot}
	if child.Start, err = process.StartTime(child.PID); err != nil || !child.Alive() {
		t.Fatalf("child: %+v, %v", child, err)
	}
	c.Process.Kill()
	for deadline := time.Now().Add(2 * time.Second); child.Alive() && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if child.Alive() {
		t.Error("a killed child that nobody waited for is said to be alive")
	}
	c.Wait()
	if child.Alive() {
		t.Error("a reaped child is said to be alive")
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("12 (a) b) (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20")
	f.Add("1 (x")
	f.Add(")")
	f.Fuzz(func(t *testing.T, s string) {
		state, start, err := process.ParseStat(s)
		if err == nil && state == "" {
			t.Errorf("%q: no state, start %d", s, start)
		}
	})
}

func TestParseStat(t *testing.T) {
	state, start, err := process.ParseStat("12 (a) b) (c)) S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 77 20")
	if state != "S" || start != 77 || err != nil {
		t.Errorf("got %s, %d, %v, want S, 77", state, start, err)
	}
}

func testJournal() *journal {
	gro := true
	return &journal{Kind: "pair", Owner: owner{PID: 1, Start: 2, Boot: "boot"}, Namespaces: []string{"a", "b"},
		Devices: []device{{Name: "nic0", MAC: "02:00:00:00:00:01", Home: nsID{Dev: 3, Ino: 4}, GRO: &gro, Up: true,
			Addresses: []address{{IPNet: "10.0.0.1/8", Scope: 3}}, Sysctls: map[string]string{"ipv4/conf/nic0/x": "1"}}}}
}

func TestJournalRoundTrip(t *testing.T) {
	dir := t.TempDir()
	j := testJournal()
	if err := j.create(dir, "nic0"); err != nil {
		t.Fatal(err)
	}
	if err := testJournal().create(dir, "nic0"); err == nil {
		t.Error("a journal was overwritten")
	}
	got, err := journals(dir)
	if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], j) {
		t.Errorf("got %+v, %v, want %+v", got, err, j)
	}
	if err := os.WriteFile(dir+"/journal-9-bad.json", []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := journals(dir); len(got) != 1 || err == nil || !strings.Contains(err.Error(), "journal-9-bad.json") {
		t.Errorf("beside a bad file: %v, %v, want the good one and an error that names the bad one", got, err)
	}
}

// Whatever is in a journal, no path made from it leads out of where it should.
func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(`{"schema":"twopath-journal/1","namespaces":["../x"]}`))
	f.Add([]byte(`{"schema":"twopath-journal/1","devices":[{"name":"a","sysctls":{"../../x":"1"}}]}`))
	f.Add([]byte(`{"schema":"twopath-journal/2"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := parseJournal(b)
		if err != nil {
			return
		}
		for _, n := range j.Namespaces {
			if strings.Contains(n, "/") || n == ".." {
				t.Errorf("namespace %q", n)
			}
		}
		for _, d := range j.Devices {
			for k := range d.Sysctls {
				if !strings.HasPrefix(filepath.Clean("/proc/sys/net/"+k)+"/", "/proc/sys/net/") {
					t.Errorf("sysctl %q", k)
				}
			}
		}
	})
}

func TestLockExcludesAndCleansUp(t *testing.T) {
	dir := t.TempDir() + "/state"
	var wg sync.WaitGroup
	var inside, overlaps atomic.Int32
	for range 8 {
		wg.Go(func() {
			for range 50 {
				unlock, err := lock(dir)
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) != 1 {
					overlaps.Add(1)
				}
				runtime.Gosched()
				inside.Add(-1)
				if err := unlock(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if n := overlaps.Load(); n != 0 {
		t.Errorf("the lock was entered %d times while it was held", n)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory is left")
	}
}
