// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"twopath/internal/report"
	"twopath/internal/session"
	"twopath/internal/trial"
)

// display keeps the progress line of a session up to date: at every trial, and each second with the live rate.
type display struct {
	mu    sync.Mutex
	line  *report.Progress
	state report.ProgressState
	bench *trial.Bench
	seen  uint64 // packets at the last tick
	at    time.Time
	eta   time.Time
	cells cellClock
	done  chan struct{}
	once  sync.Once
}

// cellClock tells from the cells that are done how long those to come will take.
type cellClock struct {
	began time.Time
	index int
	each  time.Duration
}

// left is the time of the cells after p's; 0 while none is done.
func (c *cellClock) left(now time.Time, p session.Progress) time.Duration {
	if p.Index != c.index {
		if c.index == 0 {
			c.began = now
		} else {
			c.each = now.Sub(c.began) / time.Duration(c.index)
		}
		c.index = p.Index
	}
	return c.each * time.Duration(max(p.Cells-p.Index, 0))
}

func isTerminal(w io.Writer) bool {
	is, _ := terminal(w)
	return is
}

func (a *app) newDisplay(quiet bool, b *trial.Bench) *display {
	mode, width := report.ProgressPlain, 0
	if is, w := terminal(a.stderr); is && os.Getenv("TERM") != "dumb" {
		mode, width = report.ProgressLine, w
	}
	if quiet {
		mode = report.ProgressQuiet
	}
	d := &display{line: report.NewProgress(a.stderr, mode, width), bench: b, done: make(chan struct{})}
	if mode == report.ProgressLine {
		go d.tick()
	}
	return d
}

// progress is told by the session before and after each trial.
func (d *display) progress(p session.Progress) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = report.ProgressState{Block: p.Block, Blocks: p.Blocks, Arm: p.What}
	later := d.cells.left(time.Now(), p)
	if p.Cells > 1 {
		d.state.Arm = fmt.Sprintf("size %s (%d of %d)  %s", p.Cell.Size, p.Index, p.Cells, p.What)
	}
	if p.Block == 0 {
		d.state.Blocks = 0
	}
	switch p.Phase {
	case session.PhaseLimit:
		d.state.Phase = "limit"
	case session.PhasePilot:
		d.state.Phase = "choosing a setting"
	case session.PhaseSearch:
		d.state.Phase = "search"
	case session.PhaseTrial:
		d.state.Trial, d.state.Trials = min(p.Done+1, p.Total), p.Total
		if p.Left > 0 {
			d.eta = time.Now().Add(p.Left + later)
		}
	}
	if p.Search != nil {
		d.state.Arm = p.What + "  " + searchText(p.Search)
	}
	d.seen, d.at = 0, time.Time{}
	d.draw()
}

// draw needs mu.
func (d *display) draw() {
	now := time.Now()
	if left := d.eta.Sub(now); left > 0 {
		d.state.ETA = left
	}
	// A progress line that cannot be written is no reason to stop measuring.
	_ = d.line.Update(now, d.state)
}

func (d *display) tick() {
	t := time.NewTicker(time.Second)
	defer t.Stop()
	for {
		select {
		case <-d.done:
			return
		case <-t.C:
		}
		d.mu.Lock()
		n, now := d.bench.Live().Received, time.Now()
		if !d.at.IsZero() && n > d.seen {
			d.state.PPS = float64(n-d.seen) / now.Sub(d.at).Seconds()
		}
		d.seen, d.at = n, now
		d.draw()
		d.mu.Unlock()
	}
}

func (d *display) close() {
	d.once.Do(func() {
		close(d.done)
		d.mu.Lock()
		defer d.mu.Unlock()
		_ = d.line.Clear()
	})
}
