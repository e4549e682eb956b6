// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"

	"twopath/compare"
	"twopath/internal/session"
)

// measure carries out a plan of comparison or, with single, of one arm.
func (a *app) measure(p compare.Plan, o output, single bool) ([]compare.Document, error) {
	return a.carryOut(p, o, runOptions{single: single})
}

// carryOut carries out the plan, one number of queues after another, and writes what came of it, also when interrupted.
func (a *app) carryOut(p compare.Plan, o output, run runOptions) ([]compare.Document, error) {
	ctx, w := a.interruptible()
	defer w.end()
	var docs []compare.Document
	var err error
	for _, n := range p.Queues {
		one := p
		one.Queues = compare.Queues{n}
		var some []compare.Document
		run.others = p.Queues
		some, err = a.measureOn(ctx, w, one, o, run)
		for i := range some {
			some[i].Plan.Queues = p.Queues
		}
		docs = append(docs, some...)
		if err != nil || ctx.Err() != nil {
			break
		}
	}
	if len(docs) > 1 {
		compare.AdjustSweep(docs)
	}
	// A record is written whatever became of the run. A screen without one measured trial would only look like a result.
	if len(docs) > 0 && (o.json != "" || err == nil && ctx.Err() == nil || measured(docs)) {
		err = errors.Join(err, a.write(o, docs))
	}
	if ctx.Err() != nil {
		return docs, errors.Join(&failure{exitInterrupted, errors.New("interrupted: what was measured until then is marked incomplete")}, err)
	}
	return docs, err
}

// runOptions are how a plan is carried out, beside what is in it.
type runOptions struct {
	single bool   // arms alone, no comparison
	every  uint64 // packets that make a milestone; 0 is none
	others []int  // numbers of queues that further rigs of the run have
	search bool   // the highest rate of each arm, instead of a comparison
	// warnings are caveats known before the rig is there.
	warnings []compare.Warning
}

// measureOn carries out a plan of one number of queues, on a rig that has as many, and removes everything.
func (a *app) measureOn(ctx context.Context, w *watch, p compare.Plan, o output, run runOptions) ([]compare.Document, error) {
	asked, frames, err := readDNS(p)
	if err != nil {
		return nil, err
	}
	pcap, mtu, remarks, err := readCapture(p)
	if err != nil {
		return nil, err
	}
	b, err := a.setUp(ctx, p, run.others...)
	if err != nil {
		return nil, err
	}
	w.onLeave(b.leave)
	show := a.newDisplay(o.quiet || o.json == "-" && !isTerminal(a.stderr), b.bench)
	docs, err := session.Run(ctx, session.Options{Plan: p, Bench: b.bench, Argv: a.argv, Version: programVersion(), Host: b.host, Rig: b.rig,
		LinkBPS: b.linkBPS, Warnings: append(append(b.warnings, run.warnings...), remarks...), Single: run.single, Every: run.every, Search: run.search,
		DNS: asked, Frames: frames, Capture: pcap, CaptureMTU: mtu, Progress: show.progress})
	show.close()
	// The rig goes before anything is printed: what is on the screen is then all that is left.
	err = errors.Join(err, b.close())
	w.onLeave(nil)
	return docs, err
}

// measured tells whether a trial that counts was run.
func measured(docs []compare.Document) bool {
	for _, d := range docs {
		for _, t := range d.Trials {
			if t.Kind == compare.Measured || t.Kind == compare.SearchRun {
				return true
			}
		}
	}
	return false
}

// outcome turns finished documents into the exit code of the contract: requirements first, then whether anything valid and
// conclusive was measured.
func outcome(docs []compare.Document, single bool) error {
	code := exitDone
	for _, d := range docs {
		if v := d.Verdict; v != nil && !single {
			switch v.Word {
			case compare.Inconclusive, compare.Insufficient, compare.NotComparable:
				code = exitInconclusive
			}
		}
		for _, arm := range d.Arms {
			if arm.Trials > 0 && arm.Valid == 0 {
				code = exitInconclusive
			}
		}
	}
	return exitOf(docs, code)
}

// exitOf is the error of finished documents: a requirement that failed, else the code.
func exitOf(docs []compare.Document, code int) error {
	var failed []string
	for _, d := range docs {
		for _, r := range d.Requirements {
			if !r.OK {
				failed = append(failed, fmt.Sprintf("%s (%s)", r.Text, r.Because))
			}
		}
	}
	if len(failed) > 0 {
		text := failed[0]
		for _, f := range failed[1:] {
			text += ", and " + f
		}
		return fail(exitRequirement, "requirement not met: %s", text)
	}
	if code != exitDone {
		return told(code)
	}
	return nil
}
