// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"twopath/compare"
)

// flagError names a misspelt flag and the nearest one there is.
func (a *app) flagError(c *cobra.Command, err error) error {
	text := err.Error()
	name, unknown := strings.CutPrefix(text, "unknown flag: --")
	if !unknown {
		return fail(exitUsage, "%s; see %s --help", text, c.CommandPath())
	}
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	e := compare.Unknown("flag", name, "no such flag of "+c.CommandPath(), names)
	if e.Nearest != "" {
		e.Nearest, e.Allowed = "--"+e.Nearest, nil
	}
	e.Token = "--" + name
	e.Allowed = nil
	e.Hint = fmt.Sprintf("see %s --help", c.CommandPath())
	return e
}

func (a *app) unknownVerb(root *cobra.Command, verb string) error {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	slices.Sort(names)
	return compare.Unknown("verb", verb, "no such verb", names)
}

// exactly refuses a wrong number of arguments in the words of the verb's own usage.
func exactly(least, most int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) >= least && (most < 0 || len(args) <= most) {
			return nil
		}
		return fail(exitUsage, "%s takes %s, not %d arguments; usage: %s", c.CommandPath(), what, len(args), c.UseLine())
	}
}
