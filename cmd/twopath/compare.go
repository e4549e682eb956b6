// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"twopath/compare"
)

func (a *app) compareCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "compare TEST [ARM ARM..]",
		Short: "Both engines under identical traffic: the gap, the ledger, the verdict",
		Long: `compare runs a test with each arm in turn, in blocks of A B B A, and says what the difference is, where every lost packet went,
and whether the difference is real. An arm is an engine with its settings: engine:variant[+option[=value]...]. Without arms the
best of both is compared: kernel:recvmmsg (or kernel:sendmmsg) and xdp:auto. Host knobs are options of every arm, as in
kernel:recvmmsg+netdev_budget=600: set for that arm's trials, and put back (twopath tune list has them).

Tests: ` + testList() + `

Exit codes: 0 done, 1 a --require failed, 2 usage, 3 this machine cannot do it, 4 measured but not conclusive, 130 interrupted.`,
		Example: `  sudo twopath compare udp-rx
  sudo twopath compare udp-rx kernel:epoll kernel:recvmmsg+gro xdp:auto --rate max --flows 64 --placement sender
  sudo twopath compare udp-rx --size 64,512,1518 --rate line:1g --count 300000
  sudo twopath compare udp-tx kernel:write kernel:sendmmsg kernel:sendmmsg+gso kernel:packet xdp:auto xdp:asavie --size 64 --rate max
  sudo twopath compare udp-echo --rate 1k
  sudo twopath compare udp-echo --mode pingpong kernel:recvmmsg+wait=block kernel:recvmmsg+wait=busypoll xdp:auto+wait=spin
  sudo twopath compare dns --driver dnsperf --rate 20k
  sudo twopath compare replay web.pcapng --workers 1,2 --speed x2
  sudo twopath compare udp-rx --require 'xdp:auto.loss_ratio<=1e-4' --json result.json`,
		Args: exactly(0, -1, "a test and arms"),
		RunE: func(c *cobra.Command, args []string) error { return a.runPlan(c, args, false) },
	}
	addPlanFlags(c)
	addOutputFlags(c)
	c.ValidArgsFunction = completePlan
	return c
}

func (a *app) runCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "run TEST [ARM]",
		Short: "One arm: how much it takes, and where the rest went",
		Example: `  sudo twopath run udp-rx xdp:auto --rate 300k --duration 1s --placement sender
  sudo twopath run udp-tx kernel:sendmmsg+gso --size imix --rate 200k
  sudo twopath run udp-echo kernel:epoll --rate 1k --duration 5s
  sudo twopath run udp-rx kernel:epoll --payload 1024 --rate max`,
		Args: exactly(0, 3, "a test and an arm"),
		RunE: func(c *cobra.Command, args []string) error { return a.runPlan(c, args, true) },
	}
	addPlanFlags(c)
	addOutputFlags(c)
	c.ValidArgsFunction = completePlan
	return c
}

// runPlan is compare and, with single, run: one arm, one trial unless --blocks says otherwise, no verdict.
func (a *app) runPlan(c *cobra.Command, args []string, single bool) error {
	test, arms := "", []string(nil)
	if len(args) > 0 {
		test, arms = args[0], args[1:]
	}
	if test == "" && !c.Flags().Changed("plan") {
		return fail(exitUsage, "%s: which test? there is %s; usage: %s", c.CommandPath(), testNames(), c.UseLine())
	}
	arms, err := captureArgument(c, test, arms)
	if err != nil {
		return err
	}
	if single && len(arms) == 0 && !c.Flags().Changed("plan") {
		arms = []string{"xdp:auto"}
	}
	p, err := readPlan(c, test, arms)
	if err != nil {
		return err
	}
	if single {
		if len(p.Arms) != 1 {
			return fail(exitUsage, "run takes one arm, and %d are given; use twopath compare", len(p.Arms))
		}
		p.Blocks, p.Warmup = singleBlocks(c, p.Blocks), 0
	}
	if !single && len(p.Arms) == 1 && !p.AA {
		return fail(exitUsage, "compare takes two arms or more, and %s is one; add another, --aa for a twin of it, or use twopath run", p.Arms[0])
	}
	o, err := readOutput(c)
	if err != nil {
		return err
	}
	o.keep = true
	docs, err := a.measure(p, o, single)
	if err != nil {
		return err
	}
	return outcome(docs, single)
}

func singleBlocks(c *cobra.Command, asked int) int {
	if c.Flags().Changed("blocks") {
		return asked
	}
	return 1
}

// testList is every test with a line about it.
func testList() string {
	var lines []string
	for _, t := range compare.Tests() {
		lines = append(lines, fmt.Sprintf("\n  %-8s %s", t.Name, t.About))
	}
	return strings.Join(lines, "")
}

// testNames are those of all tests.
func testNames() string {
	var names []string
	for _, t := range compare.Tests() {
		names = append(names, t.Name)
	}
	return strings.Join(names, ", ")
}
