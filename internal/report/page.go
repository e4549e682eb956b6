// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
)

// TextOptions are the choices the caller made for a text report. The package
// looks at neither environment nor terminal.
type TextOptions struct {
	Wide  bool   // show every trial, every ledger witness and every effective setting
	Color bool   // ANSI colours
	Width int    // columns; 0 means 120, less than 60 is taken as 60
	Saved string // file the record went to, for the SAVED line; empty prints no line
}

const (
	defaultWidth = 120
	minimumWidth = 60
)

func (o TextOptions) withDefaults() TextOptions {
	if o.Width <= 0 {
		o.Width = defaultWidth
	}
	o.Width = max(o.Width, minimumWidth)
	return o
}

type colour string

const (
	red    colour = "31"
	green  colour = "32"
	yellow colour = "33"
	bold   colour = "1"
	dim    colour = "2"
)

// page collects lines; writing is one call at the end, so a report is either
// there or its error is.
type page struct {
	options TextOptions
	b       strings.Builder
}

func (p *page) line(s string) {
	p.b.WriteString(strings.TrimRight(s, " "))
	p.b.WriteByte('\n')
}

func (p *page) lines(ss []string) {
	for _, s := range ss {
		p.line(s)
	}
}

// paint colours s when colours were asked for.
func (p *page) paint(c colour, s string) string {
	if !p.options.Color || s == "" {
		return s
	}
	return "\x1b[" + string(c) + "m" + s + "\x1b[0m"
}

// paintFirst colours the label a line starts with, after layout is done, so
// that escape codes never count as width.
func (p *page) paintFirst(c colour, label string, lines []string) []string {
	if len(lines) > 0 && strings.HasPrefix(lines[0], label) {
		lines[0] = p.paint(c, label) + strings.TrimPrefix(lines[0], label)
	}
	return lines
}

func (p *page) writeTo(w io.Writer) error {
	if _, err := io.WriteString(w, p.b.String()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}
