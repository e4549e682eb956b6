// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"twopath/compare"
	"twopath/internal/nstest"
)

// briefly is a search that a busy machine can carry out too: loads of nothing, trials of a moment, and a goal that bears much.
const briefly = "search udp-rx --softirq-sched fifo --max-load 20k --goal loss=50%,final=100ms,sum=300ms,width=50% --json -"

// TestSearchWritesOneValidDocument: what was borne and what came out valid is the machine's affair here; that the record is
// whole, and says what happened, is not.
func TestSearchWritesOneValidDocument(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	p := start(t, briefly+" --goal loss=0,exceed=0,final=100ms,sum=100ms,width=50% --max-time 60s --require xdp:auto.lower_pps>=0")
	code := p.wait(t, 4*time.Minute)
	d := document(t, p.out.Bytes())
	none := false
	for _, a := range d.Arms {
		none = none || a.LowerPPS == nil
	}
	want := exitDone
	if none {
		want = exitInconclusive
	}
	if len(d.Requirements) != 1 || !d.Requirements[0].OK {
		want = exitRequirement
	}
	if code != want {
		t.Errorf("exit %d, want %d: %s", code, want, p.err.String())
	}
	if d.Search == nil || len(d.Search.Goals) != 2 || compare.Val(d.Search.MaxLoadPPS) != 20_000 || d.Search.MaxLoadIs != "plan" || d.Incomplete {
		t.Fatalf("search %+v, incomplete %v", d.Search, d.Incomplete)
	}
	if len(d.Arms) != 2 {
		t.Fatalf("%d arms", len(d.Arms))
	}
	kinds := map[compare.TrialKind]int{}
	for i := range d.Trials {
		tr := &d.Trials[i]
		kinds[tr.Kind]++
		if err := tr.Check(); err != nil {
			t.Error(err)
		}
		if load := compare.Val(tr.LoadPPS); tr.Kind == compare.SearchRun && !(load >= 1000 && load <= 20_000) {
			t.Errorf("a trial at %v packets/s", load)
		}
	}
	if kinds[compare.Headroom] == 0 || kinds[compare.Pilot] == 0 || kinds[compare.Measured] != 0 {
		t.Errorf("kinds of trials: %v", kinds)
	}
	for _, a := range d.Arms {
		if len(a.Goals) != 2 || len(a.Candidates) == 0 {
			t.Errorf("%s: %d goals, %d settings tried", a.Name, len(a.Goals), len(a.Candidates))
			continue
		}
		for _, g := range a.Goals {
			if !g.Regular && g.Because == "" {
				t.Errorf("%s: irregular without a reason", a.Name)
			}
			if g.LowerPPS != nil && g.UpperPPS != nil && *g.LowerPPS >= *g.UpperPPS {
				t.Errorf("%s: bounds %v..%v", a.Name, *g.LowerPPS, *g.UpperPPS)
			}
		}
	}
	validate(t, p.out.Bytes())
	sameHost(t, before)
}

// TestInterruptedSearchKeepsItsTrials: one SIGINT, exit code 130, and what was found until then.
func TestInterruptedSearchKeepsItsTrials(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	p := start(t, strings.Replace(briefly, "--json -", "--json out.json", 1)+" --goal loss=0,final=20s,sum=1000s,initial=100ms --quiet")
	time.Sleep(4 * time.Second)
	if err := p.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(t, time.Minute); code != exitInterrupted {
		t.Errorf("exit %d, want %d: %s", code, exitInterrupted, p.err.String())
	}
	b, err := os.ReadFile(p.Dir + "/out.json")
	if err != nil {
		t.Fatal(err)
	}
	d := document(t, b)
	if !d.Incomplete || !strings.Contains(d.Reason, "interrupted") || len(d.Arms) != 2 {
		t.Errorf("incomplete %v (%s), %d trials, %d arms", d.Incomplete, d.Reason, len(d.Trials), len(d.Arms))
	}
	for _, a := range d.Arms {
		for _, g := range a.Goals {
			if g.Regular {
				t.Errorf("%s: a goal of 1000 s is reached: %+v", a.Name, g)
			}
		}
	}
	validate(t, b)
	sameHost(t, before)
}
