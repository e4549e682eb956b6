// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"twopath/compare"
	"twopath/internal/reproduce"
)

// reproduceFlags are the plan's flags that say where a source is repeated; what is run is the source's.
func reproduceFlags() []string {
	return []string{"nic", "peer", "ip", "cpus", "placement", "softirq-sched", "peer-napi"}
}

func (a *app) reproduceCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "reproduce [NAME]",
		Short: "A published measurement, repeated here: theirs beside ours, for both engines",
		Long: `reproduce runs a published measurement's own sequence on both engines and prints each of its rows with ours beside. Without a
name it lists the sources. --quick takes minutes; without it the source's own counts are sent, which takes a night.

Exit codes: 0 done, 2 usage, 3 this machine cannot do it, 4 a step gave no valid trial, 130 interrupted.`,
		Example: `  twopath reproduce
  sudo twopath reproduce udp-receive --quick
  sudo twopath reproduce line-rate-64 --quick --json line-rate.json`,
		Args: exactly(0, 1, "a source's name"),
	}
	addFlags(c, reproduceFlags()...)
	addOutputFlags(c)
	quick := c.Flags().Bool("quick", false, "some minutes instead of the source's own counts")
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return a.listSources()
		}
		src, err := reproduce.Lookup(args[0])
		if err != nil {
			return err
		}
		base, err := readBase(c)
		if err != nil {
			return err
		}
		o, err := readOutput(c)
		if err != nil {
			return err
		}
		o.keep = true
		return a.reproduce(src, reproduce.Scale{Quick: *quick, CPUs: hostFacts().CPUs, Base: base}, o)
	}
	c.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var names []string
		for _, s := range reproduce.Sources() {
			names = append(names, s.Name+"\t"+s.About)
		}
		return names, cobra.ShellCompDirectiveNoFileComp
	}
	return c
}

func (a *app) listSources() error {
	for _, s := range reproduce.Sources() {
		if _, err := fmt.Fprintf(a.stdout, "%-14s %s\n%-14s %s\n", s.Name, s.Title, "", s.About); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(a.stdout, "\nnext: sudo twopath reproduce "+reproduce.Sources()[0].Name+" --quick")
	return err
}

// readBase reads where to run. The steps bring the rest of their plans.
func readBase(c *cobra.Command) (compare.Plan, error) {
	p := compare.DefaultPlan("udp-rx")
	if err := setFlags(c, &p); err != nil {
		return p, err
	}
	whole := p
	whole.Complete()
	return p, whole.Validate()
}

// reproduce runs the steps one after another. A step that cannot be run leaves its reason in the record; an interruption
// keeps what was finished.
func (a *app) reproduce(src reproduce.Source, sc reproduce.Scale, o output) error {
	ctx, w := a.interruptible()
	defer w.end()
	steps := src.Steps(sc)
	var docs []compare.Document
	var failed error
	for i, st := range steps {
		if ctx.Err() != nil {
			break
		}
		some, err := a.reproduceStep(ctx, w, st, a.stepNote(o, steps, i), o)
		for k := range some {
			some[k].Reproduces = &compare.Reproduction{Source: src.Name, Step: st.ID}
		}
		docs = append(docs, some...)
		if err != nil && failed == nil && ctx.Err() == nil {
			failed = err
			if i == 0 { // what stops the first stops all: no root, no namespaces, no such port
				break
			}
		}
	}
	if measured(docs) || failed == nil && ctx.Err() == nil {
		failed = errors.Join(failed, a.write(o, docs))
	}
	if ctx.Err() != nil {
		return errors.Join(&failure{exitInterrupted, errors.New("interrupted: what was measured until then is marked incomplete")}, failed)
	}
	if failed != nil {
		return failed
	}
	return outcomeOfSteps(docs)
}

// reproduceStep measures one step, once for each of its numbers of queues.
func (a *app) reproduceStep(ctx context.Context, w *watch, st reproduce.Step, note string, o output) ([]compare.Document, error) {
	if st.Skip != "" {
		return []compare.Document{a.notRun(st, st.Skip)}, nil
	}
	if note != "" {
		fmt.Fprintln(a.stderr, note)
	}
	var docs []compare.Document
	for _, n := range st.Plan.Queues {
		p := st.Plan
		p.Queues = compare.Queues{n}
		some, err := a.measureOn(ctx, w, p, o, runOptions{every: st.Every})
		docs = append(docs, some...)
		if err != nil {
			if len(docs) == 0 {
				docs = append(docs, a.notRun(st, strings.TrimSpace(err.Error())))
			}
			return docs, err
		}
	}
	return docs, nil
}

// stepNote says which step begins and how long it and the rest take; "" where nothing is to be said.
func (a *app) stepNote(o output, steps []reproduce.Step, i int) string {
	if o.quiet || o.json == "-" && !isTerminal(a.stderr) {
		return ""
	}
	left := 0.0
	for _, st := range steps[i:] {
		left += st.Seconds()
	}
	about := func(s float64) string { return time.Duration(s * 1e9).Round(time.Second).String() }
	return fmt.Sprintf("step %d of %d  %s: about %s, %s left in all", i+1, len(steps), steps[i].Title, about(steps[i].Seconds()), about(left))
}

// notRun is the record of a step that was not run.
func (a *app) notRun(st reproduce.Step, why string) compare.Document {
	return compare.Document{Schema: compare.SchemaID, Version: programVersion(), Started: time.Now(), Argv: a.argv, Test: st.Plan.Test, Plan: st.Plan,
		Traffic: compare.Traffic{IPVersion: st.Plan.IP, Flows: st.Plan.Flows, Queues: st.Plan.Queues.Most()}, Host: hostFacts(), Incomplete: true, Reason: why}
}

// outcomeOfSteps is the exit code of steps that ran: a step without one valid trial of an arm is not conclusive. That so few
// blocks give no verdict is the source's way, and no fault.
func outcomeOfSteps(docs []compare.Document) error {
	for _, d := range docs {
		for _, arm := range d.Arms {
			if arm.Trials > 0 && arm.Valid == 0 {
				return told(exitInconclusive)
			}
		}
	}
	return nil
}
