// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// ProgressMode says how progress is shown.
type ProgressMode uint8

const (
	ProgressQuiet ProgressMode = iota // nothing at all
	ProgressLine                      // one line, redrawn: for a terminal
	ProgressPlain                     // whole lines, rarely: for a file or a pipe
)

// ProgressState is where a run is. Zero values are left out of the line.
type ProgressState struct {
	Block, Blocks int     // from 1
	Trial, Trials int     // from 1
	Arm           string  // the arm being measured
	Phase         string  // what is done when no packets flow: "headroom", "settle", "A/A control"
	PPS           float64 // packets per second received just now; 0 is not shown
	ETA           time.Duration
}

// plainEvery is how often at most a line is printed when the output is not a
// terminal and the block did not change.
const plainEvery = 30 * time.Second

// Progress renders the progress of a run to a writer (stderr, by custom). It
// is used by one goroutine. The caller gives the time with each update, so the
// renderer reads no clock and a test can replay it.
type Progress struct {
	w     io.Writer
	mode  ProgressMode
	width int
	drawn int // columns of the line on the screen
	last  time.Time
	block int
	phase string
	some  bool
}

// NewProgress returns a renderer. Width is the terminal's number of columns;
// 0 means 80.
func NewProgress(w io.Writer, mode ProgressMode, width int) *Progress {
	if width <= 0 {
		width = 80
	}
	return &Progress{w: w, mode: mode, width: width}
}

// Update shows the state. Errors of the writer are returned, not kept.
func (p *Progress) Update(now time.Time, s ProgressState) error {
	switch p.mode {
	case ProgressLine:
		return p.redraw(progressText(s))
	case ProgressPlain:
		if p.some && s.Block == p.block && s.Phase == p.phase && now.Sub(p.last) < plainEvery {
			return nil
		}
		p.some, p.block, p.phase, p.last = true, s.Block, s.Phase, now
		return p.write(progressText(s) + "\n")
	}
	return nil
}

// Print writes a message between updates without leaving pieces of the
// progress line on the screen. A quiet Progress prints it too: a message is a
// diagnostic, not progress.
func (p *Progress) Print(message string) error {
	if err := p.Clear(); err != nil {
		return err
	}
	return p.write(strings.TrimRight(message, "\n") + "\n")
}

// Clear takes the line off the screen. It may be called at any time, and again.
func (p *Progress) Clear() error {
	if p.mode != ProgressLine || p.drawn == 0 {
		return nil
	}
	p.drawn = 0
	return p.write("\r\x1b[K")
}

func (p *Progress) redraw(s string) error {
	// A line as wide as the terminal would wrap and could not be redrawn.
	r := []rune(s)
	if len(r) > p.width-1 {
		r = r[:max(p.width-1, 0)]
	}
	p.drawn = len(r)
	return p.write("\r" + string(r) + "\x1b[K")
}

func (p *Progress) write(s string) error {
	if _, err := io.WriteString(p.w, s); err != nil {
		return fmt.Errorf("write progress: %w", err)
	}
	return nil
}

func progressText(s ProgressState) string {
	var parts []string
	if s.Blocks > 0 {
		parts = append(parts, fmt.Sprintf("block %d/%d", s.Block, s.Blocks))
	}
	if s.Arm != "" {
		parts = append(parts, oneLine(s.Arm))
	}
	if s.Trials > 0 {
		parts = append(parts, fmt.Sprintf("trial %d/%d", s.Trial, s.Trials))
	}
	if s.Phase != "" {
		parts = append(parts, oneLine(s.Phase))
	}
	if s.PPS > 0 {
		parts = append(parts, pps(s.PPS)+" pps")
	}
	if s.ETA > 0 {
		parts = append(parts, "ETA "+secondsText(s.ETA.Round(time.Second).Seconds()))
	}
	return strings.Join(parts, "  ")
}
