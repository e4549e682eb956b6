// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"twopath/internal/report"
)

func (a *app) diffCommand() *cobra.Command {
	var limit string
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Two records: what became faster or slower, and whether the machines were alike",
		Example: `  twopath diff before.json after.json
  twopath diff before.json after.json --max-regress 5%     # exit 1 when an arm got worse by more`,
		Args: exactly(2, 2, "two record files"),
	}
	c.Flags().StringVar(&limit, "max-regress", "", "exit 1 when an arm's figure got worse by more than this `SHARE`, as 5%")
	c.Flags().BoolVar(&asJSON, "json", false, "JSON on stdout")
	c.RunE = func(_ *cobra.Command, files []string) error {
		most, err := parseRegress(limit)
		if err != nil {
			return err
		}
		before, err := a.readRecords(files[:1])
		if err != nil {
			return err
		}
		after, err := a.readRecords(files[1:])
		if err != nil {
			return err
		}
		r := report.Diff(before, after, most)
		_, width := terminal(a.stdout)
		if asJSON {
			err = report.DiffJSON(a.stdout, r)
		} else {
			err = report.DiffText(a.stdout, r, report.TextOptions{Color: colours(a.stdout), Width: width})
		}
		if err != nil {
			return err
		}
		if code := r.ExitCode(); code != exitDone {
			return told(code)
		}
		return nil
	}
	return c
}

// parseRegress reads 5% or 0.05; nothing is no limit, which Diff is told by a negative number.
func parseRegress(s string) (float64, error) {
	if s == "" {
		return -1, nil
	}
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(digits, 64)
	if percent {
		v /= 100
	}
	if err != nil || !(v >= 0 && v < 1) {
		return 0, fail(exitUsage, "--max-regress %q: not a share from 0 to 100 %%; as in 5%%", s)
	}
	return v, nil
}
