// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"twopath/compare"
	"twopath/internal/nstest"
)

// untilStderr starts the program, and interrupts it when it has written want to standard error.
func untilStderr(t *testing.T, line, want string) (code int, stdout string) {
	t.Helper()
	c := program(strings.Fields(line)...)
	c.Dir = t.TempDir()
	var out bytes.Buffer
	c.Stdout = &out
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Process.Kill() })
	watchdog := time.AfterFunc(4*time.Minute, func() { c.Process.Kill() })
	defer watchdog.Stop()
	seen := false
	for lines := bufio.NewScanner(pipe); lines.Scan(); {
		if !seen && strings.Contains(lines.Text(), want) {
			seen = true
			if err := c.Process.Signal(syscall.SIGINT); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.Wait() // its code is looked at below
	if !seen {
		t.Fatalf("%q was never written: exit %d, %s", want, c.ProcessState.ExitCode(), out.String())
	}
	return c.ProcessState.ExitCode(), out.String()
}

// Ctrl-C in a sweep keeps the rows that are done; the one under way is marked incomplete, those to come are not there.
func TestInterruptedSweepKeepsRows(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	record := filepath.Join(t.TempDir(), "sweep.json")
	code, stdout := untilStderr(t, "compare udp-rx kernel:epoll xdp:auto+ring=1024+wait=poll --size 64,200,1518 --rate 20k --count 1000 --blocks 1 --warmup 0 --placement sender --json "+record, "size 200 (2 of 3)")
	if code != exitInterrupted {
		t.Errorf("exit %d", code)
	}
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := compare.Read(bytes.NewReader(b))
	if err != nil || len(docs) != 2 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	validate(t, b)
	if d := docs[0]; d.Incomplete || d.Traffic.Size.Bytes != 64 || d.Arms[0].Trials == 0 {
		t.Errorf("the row that was done: incomplete %v, %d trials", d.Incomplete, d.Arms[0].Trials)
	}
	if d := docs[1]; !d.Incomplete || d.Reason == "" || d.Traffic.Size.Bytes != 200 {
		t.Errorf("the row under way: incomplete %v, %q", d.Incomplete, d.Reason)
	}
	for _, want := range []string{"INCOMPLETE  at 200 B", "\n     64 "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not on the screen:\n%s", want, stdout)
		}
	}
	sameHost(t, before)
}

// Several numbers of queues are cells of one record, each with as many workers, whose counts add up.
func TestQueuesListOnRig(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	p := start(t, "compare udp-rx kernel:epoll xdp:auto+ring=1024+wait=poll --workers 1,2 --rate 20k --count 1000 --blocks 1 --warmup 0 --placement sender --json -")
	code := p.wait(t, 4*time.Minute)
	docs, err := compare.Read(bytes.NewReader(p.out.Bytes()))
	if err != nil || len(docs) != 2 {
		t.Fatalf("exit %d, %d documents, %v: %s", code, len(docs), err, p.err.String())
	}
	validate(t, p.out.Bytes())
	if a, b := docs[0].Rig.Generator.Method, docs[1].Rig.Generator.Method; a != b {
		t.Errorf("the cells were fed with %s and with %s", a, b)
	}
	for i, d := range docs {
		if d.Traffic.Queues != i+1 || d.Traffic.Flows != compare.SpreadFlows || d.Plan.Queues.String() != "1,2" {
			t.Errorf("cell %d: %d queues, %d flows, plan %v", i, d.Traffic.Queues, d.Traffic.Flows, d.Plan.Queues)
		}
		for _, tr := range d.Trials {
			var sum uint64
			for _, n := range tr.PerWorker {
				sum += n
			}
			if i == 1 && tr.Kind == compare.Measured && (len(tr.PerWorker) != 2 || sum != tr.Received+tr.Duplicate || slices.Min(tr.PerWorker) == 0) {
				t.Errorf("%s %s: received %d, by worker %v (%s)", tr.Kind, tr.Arm, tr.Received, tr.PerWorker, tr.InvalidBecause)
			}
		}
	}
	sameHost(t, before)
}

// A published measurement that is interrupted keeps what it has, says which steps did not run, and can be printed again.
func TestInterruptedReproduction(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	record := filepath.Join(t.TempDir(), "line.json")
	code, stdout := untilStderr(t, "reproduce line-rate-64 --quick --placement sender --json "+record, "size 400 (2 of 6)")
	if code != exitInterrupted {
		t.Errorf("exit %d: %s", code, stdout)
	}
	b, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	validate(t, b)
	docs, err := compare.Read(bytes.NewReader(b))
	if err != nil || len(docs) < 1 || docs[0].Reproduces == nil || docs[0].Reproduces.Step != "sweep" {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for _, want := range []string{"theirs", "DPDK", "CUT", "not run: cut short"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is not on the screen:\n%s", want, stdout)
		}
	}
	if code, again, complaint := call("report", record); code != 0 || !strings.Contains(again, "Lost, theirs and ours") {
		t.Errorf("report: exit %d, %s\n%s", code, complaint, again)
	}
	sameHost(t, before)
}

func TestReproduceLists(t *testing.T) {
	code, out, _ := call("reproduce")
	if code != 0 || !strings.Contains(out, "udp-receive") || !strings.Contains(out, "line-rate-64") || !strings.Contains(out, "next: sudo twopath reproduce") {
		t.Errorf("exit %d: %s", code, out)
	}
}
