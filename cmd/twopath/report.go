// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"twopath/compare"
	"twopath/internal/report"
)

func (a *app) reportCommand() *cobra.Command {
	var format, rows, to string
	c := &cobra.Command{
		Use:   "report FILE...",
		Short: "Text, JSON, CSV or a page from records",
		Long:  `report reads records ("-" is stdin) and writes them in another form. Nothing is measured, no root is needed.`,
		Example: `  twopath report result.json
  twopath report --format html --output result.html result.json
  twopath report --format csv --rows arms *.json`,
		Args: exactly(1, -1, "record files"),
	}
	c.Flags().StringVar(&format, "format", "text", "text, json, csv or html")
	c.Flags().StringVar(&rows, "rows", "trials", "of csv: trials, arms, goals (of a search) or comparisons")
	c.Flags().StringVarP(&to, "output", "o", "-", "`FILE` to write to, - is stdout")
	wide := c.Flags().Bool("wide", false, "of text: every trial, witness and setting")
	c.RunE = func(_ *cobra.Command, files []string) error {
		write, err := a.renderer(format, rows, *wide)
		if err != nil {
			return err
		}
		docs, err := a.readRecords(files)
		if err != nil {
			return err
		}
		if to == "-" {
			return write(a.stdout, docs)
		}
		if slices.ContainsFunc(files, func(f string) bool { return format != "json" && sameFile(f, to) }) {
			return fail(exitUsage, "--output %s is a record to be read, and a %s in its place would destroy it; name another file", to, format)
		}
		if err := writable(to); err != nil {
			return fail(exitUsage, "cannot write %s: %w; name a file in a directory that you may write to", to, err)
		}
		return writeFile(to, func(w io.Writer) error { return write(w, docs) })
	}
	return c
}

type render func(io.Writer, []compare.Document) error

func (a *app) renderer(format, rows string, wide bool) (render, error) {
	tables := map[string]render{"trials": report.CSV, "arms": report.CSVArms, "goals": report.CSVGoals, "comparisons": report.CSVComparisons}
	switch format {
	case "text":
		return func(w io.Writer, docs []compare.Document) error {
			_, width := terminal(w)
			return report.TextAll(w, docs, report.TextOptions{Wide: wide, Color: colours(w), Width: width})
		}, nil
	case "json":
		return report.JSON, nil
	case "html":
		return report.HTML, nil
	case "csv":
		if t, ok := tables[rows]; ok {
			return t, nil
		}
		return nil, compare.Unknown("rows", rows, "no such table", []string{"trials", "arms", "goals", "comparisons"})
	}
	return nil, compare.Unknown("format", format, "no such format", []string{"text", "json", "csv", "html"})
}

// readRecords reads the documents of all files.
func (a *app) readRecords(files []string) ([]compare.Document, error) {
	var docs []compare.Document
	for _, name := range files {
		d, err := a.readRecord(name)
		if err != nil {
			return nil, fail(exitUsage, "%s: %w", name, err)
		}
		docs = append(docs, d...)
	}
	return docs, nil
}

func (a *app) readRecord(name string) ([]compare.Document, error) {
	if name == "-" {
		return compare.Read(a.stdin)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	defer f.Close()
	return compare.Read(f)
}
