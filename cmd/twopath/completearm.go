// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"

	"github.com/spf13/cobra"

	"twopath/compare"
)

// completePlan offers the tests, then the arms of the test, and after a "+" what options the arm takes.
func completePlan(_ *cobra.Command, args []string, word string) (out []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) == 0 {
		for _, t := range compare.Tests() {
			out = append(out, cobra.CompletionWithDesc(t.Name, t.About))
		}
		return out, cobra.ShellCompDirectiveNoFileComp
	}
	arm, rest, hasOptions := strings.Cut(word, "+")
	if !hasOptions {
		t, _ := compare.LookupTest(args[0])
		for _, engine := range []string{compare.Kernel, compare.XDP} {
			for _, v := range t.Variants(engine) {
				out = append(out, engine+":"+v)
			}
		}
		return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	}
	begin := arm + "+"
	if i := strings.LastIndex(rest, "+"); i >= 0 {
		begin += rest[:i+1]
	}
	for _, o := range compare.OptionsOf(arm) {
		name := o.Name
		if o.Kind != compare.Flag && o.Kind != compare.AutoNumber {
			name += "="
		}
		out = append(out, cobra.CompletionWithDesc(begin+name, o.Help))
	}
	return out, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}
