// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"twopath/compare"
)

// demoCount is how many frames a demo's trial has: 0.4 s at gigabit line rate, so that all is over in a minute or so.
const demoCount = "600000"

func (a *app) demoCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "demo",
		Short: "A minute on the veth rig: kernel and AF_XDP at gigabit line rate with 64-byte frames",
		Long: `demo compares kernel:recvmmsg and xdp:auto at gigabit line rate with 64-byte frames (1,488,095 frames/s) on a veth cable between
two namespaces, in 6 blocks of A B B A. It takes about a minute, needs root, no hardware and no settings, and leaves nothing behind.
It exits 0 when it could show something, whatever that is.`,
		Example: `  sudo twopath demo
  sudo twopath demo --json demo.json --html demo.html`,
		Args: exactly(0, 0, "no arguments"),
	}
	addOutputFlags(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		p := compare.DefaultPlan("udp-rx")
		for key, value := range map[string]string{"rate": "line:1g", "count": demoCount, "size": "64"} {
			if err := p.Set(key, value); err != nil {
				return err
			}
		}
		p.Complete()
		if err := p.Validate(); err != nil {
			return err
		}
		o, err := readOutput(c)
		if err != nil {
			return err
		}
		docs, err := a.measure(p, o, false)
		if err != nil {
			return err
		}
		for _, d := range docs {
			if d.Verdict == nil || d.Verdict.Word == compare.NotComparable {
				return fail(exitInconclusive, "nothing could be shown: %s", because(d))
			}
		}
		fmt.Fprintln(a.stderr, "next: sudo twopath compare udp-rx --help")
		return nil
	}
	return c
}

func because(d compare.Document) string {
	if d.Verdict != nil && d.Verdict.Because != "" {
		return d.Verdict.Because
	}
	return "no valid trials; twopath doctor tells what is wrong with this machine"
}
