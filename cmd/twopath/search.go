// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"twopath/compare"
)

func (a *app) searchCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "search TEST [ARM..]",
		Short: "The highest rate each arm bears, by RFC 9971 (MLRsearch)",
		Long: `search looks for the highest load that each arm bears: a lower bound, which upheld the goal, an upper bound, which did not, and the
conditional throughput, which is what was forwarded at the lower bound. The arms take turns, trial by trial. Without arms the best of
both engines is searched for.

A goal says what is borne. --goal may be given several times; all goals are met in one search, and the first is the headline. It is
the name of a preset, attributes that replace those of quick, or both, as rfc2544,width=2%. The presets:
` + goalHelp() + `

The attributes:
  loss     loss ratio up to which a trial is good                exceed   share of the time in which trials may be worse
  final    length of the trials that count                       sum      time of trials that decides a load for certain
  initial  length of the first trials                            width    how far apart the bounds may be, of the upper one

The highest load is what the generator can offer, less 5 %, and no more than the line carries. An arm that bears even that has a lower
bound only, and the result says so.

Exit codes: 0 done, 1 a --require failed, 2 usage, 3 this machine cannot do it, 4 an arm has no lower bound, 130 interrupted.`,
		Example: `  sudo twopath search udp-rx
  sudo twopath search udp-rx kernel:recvmmsg xdp:auto --size 64 --goal loss=0.1%,width=1% --goal quick
  sudo twopath search udp-rx xdp:auto --goal rfc2544 --max-time 2h
  sudo twopath search udp-rx --require 'xdp:auto.lower_pps>=1.4M' --json result.json`,
		Args: exactly(0, -1, "a test and arms"),
		RunE: func(c *cobra.Command, args []string) error { return a.runSearch(c, args) },
	}
	var names []string
	for _, f := range planFlags() {
		if !slices.Contains(notOfSearch(), f.name) {
			names = append(names, f.name)
		}
	}
	addFlags(c, names...)
	c.Flags().String("plan", "", "`FILE` (YAML) with any of these settings; flags override it")
	addSearchFlags(c)
	addOutputFlags(c)
	c.ValidArgsFunction = completePlan
	var goals []string
	for _, g := range compare.GoalPresets() {
		goals = append(goals, g.Name)
	}
	_ = c.RegisterFlagCompletionFunc("goal", cobra.FixedCompletions(goals, cobra.ShellCompDirectiveNoFileComp))
	return c
}

// goalHelp lists the presets with what they stand for.
func goalHelp() string {
	var b strings.Builder
	for _, g := range compare.GoalPresets() {
		fmt.Fprintf(&b, "\n  %-8s %s", g.Name, g.Attributes(","))
	}
	return b.String()
}

// notOfSearch are the settings of a comparison that a search has no use for: its goals say how long trials are and how often.
func notOfSearch() []string {
	return []string{"rate", "count", "duration", "blocks", "warmup", "aa"}
}

func searchFlags() []planFlag {
	return []planFlag{
		{"goal", "GOAL", "what a load must uphold; repeatable (default quick)"},
		{"max-load", "RATE", "highest load to try, as 2M, line:10g or 80%limit (default what the generator can offer)"},
		{"min-load", "RATE", "lowest load to try (default 1k)"},
		{"max-trials", "N", "trials of each arm at most; 0 is no limit (default)"},
		{"max-time", "TIME", "end after this time with what was found by then, as 10m"},
	}
}

func addSearchFlags(c *cobra.Command) {
	for _, f := range searchFlags() {
		v := &planValue{typ: f.value}
		if f.name == "goal" {
			v.many, v.sep = true, compare.GoalSeparator
		}
		c.Flags().Var(v, f.name, f.about)
	}
}

func (a *app) runSearch(c *cobra.Command, args []string) error {
	test, arms := "", []string(nil)
	if len(args) > 0 {
		test, arms = args[0], args[1:]
	}
	if test == "" && !c.Flags().Changed("plan") {
		return fail(exitUsage, "%s: which test? there is %s; usage: %s", c.CommandPath(), testNames(), c.UseLine())
	}
	p, err := readPlan(c, test, arms)
	if err != nil {
		return err
	}
	if t, _ := compare.LookupTest(p.Test); t.Connects {
		return fail(exitUsage, "search %s: a search paces packets, and this test's load is connections, which wait for their answers; use twopath compare %s", p.Test, p.Test)
	}
	p.Rates = []compare.Rate{{Unit: compare.MaxRate}}
	for i, arm := range p.Arms {
		if slices.Contains(p.Arms[:i], arm) {
			return fail(exitUsage, "%s is given twice, and a search of it twice says nothing more; drop one", arm)
		}
	}
	if p.Placement == compare.PlaceSender {
		return fail(exitUsage, "--placement sender: there the receiver's kernel work is done on the sending core, so a slow receiver slows the sender, and there is no load of "+
			"its own to search for; use --placement shared or split, or compare service rates: twopath compare %s --rate max --placement sender", p.Test)
	}
	if p.Mode == compare.ModePingPong {
		return fail(exitUsage, "--mode pingpong: requests that wait for the answer before set their own rate, so there is no load to search for; use --mode open")
	}
	if p.Test == compare.TestFragments {
		return fail(exitUsage, "search has no test fragments: its frames are prepared, and a trial of a search takes more than can be; compare rates: twopath compare fragments --rate 5k,10k,20k")
	}
	o, err := readOutput(c)
	if err != nil {
		return err
	}
	o.keep = true
	goals, err := p.SearchGoals()
	if err != nil {
		return err
	}
	run := runOptions{search: true}
	for _, r := range compare.GoalRemarks(goals) {
		run.warnings = append(run.warnings, compare.Warning{ID: "goal", Text: r})
	}
	docs, err := a.carryOut(p, o, run)
	if err != nil {
		return err
	}
	return searchOutcome(docs)
}

// searchOutcome is the exit code of finished searches: requirements first, then whether every arm has a lower bound.
func searchOutcome(docs []compare.Document) error {
	code := exitDone
	for _, d := range docs {
		for _, arm := range d.Arms {
			if arm.LowerPPS == nil {
				code = exitInconclusive
			}
		}
	}
	return exitOf(docs, code)
}

// searchText is where a search is, for the progress line.
func searchText(p *compare.SearchProgress) string {
	rate := func(v float64) string {
		if v == 0 {
			return "?"
		}
		return fmt.Sprintf("%.0fk", v/1e3)
	}
	s := fmt.Sprintf("at %s pps", rate(p.Trial.Input.Load))
	switch {
	case p.Result == nil:
	case !p.Result.Valid:
		s += ", invalid"
	default:
		s += fmt.Sprintf(", lost %.2f %%", 100*p.Loss)
	}
	return s + fmt.Sprintf("  bounds %s .. %s", rate(p.Lower), rate(p.Upper))
}
