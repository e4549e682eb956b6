// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"twopath/internal/measure"
)

// Server is the serving half of an engine's TCP, for one worker on one thread.
type Server interface {
	// Serve handles what has come, and waits at most some milliseconds when nothing has.
	Serve(now int64) error
}

// Dialer is the opening half.
type Dialer interface {
	// Open starts a connection that was meant to start at intended (ns). It is false when none can be opened now.
	Open(intended, now int64) bool
	// Turn handles what has come. With idle it may wait for it, a millisecond at most: nothing is due before.
	Turn(now int64, idle bool) error
	// Over is how many connections have ended, and Opened how many were started.
	Opened() uint64
	Over() uint64
}

// ServeLoop runs a server until Stop.
type ServeLoop struct {
	S    Server
	stop atomic.Bool
}

// Stop ends Run within one wait of the server.
func (l *ServeLoop) Stop() { l.stop.Store(true) }

// Run serves. The caller has locked the goroutine to a thread and placed it.
func (l *ServeLoop) Run() error {
	for !l.stop.Load() {
		if err := l.S.Serve(measure.Monotonic()); err != nil {
			return fmt.Errorf("serve: %w", err)
		}
	}
	return nil
}

// DialOptions is one worker's part in a connection test.
type DialOptions struct {
	Dialer Dialer
	// Concurrent is how many connections a closed loop holds open. With Rate it bounds the open loop.
	Concurrent int
	// Rate in connections/s makes an open loop on an absolute schedule; 0 is a closed loop.
	Rate  float64
	Count uint64 // connections; 0 is no limit
	// Drain bounds the wait for the last connections.
	Drain time.Duration
}

// DialLoop opens connections as its options say.
type DialLoop struct {
	o    DialOptions
	stop atomic.Bool
	live atomic.Uint64

	Start, End int64 // ns: first open, last open
	Finish     int64 // ns: when all was over
	Late       uint64
	MaxLate    int64 // ns
	Drained    bool  // all that was opened has ended
}

// NewDialLoop checks the options.
func NewDialLoop(o DialOptions) (*DialLoop, error) {
	if o.Dialer == nil {
		return nil, errors.New("dial options: Dialer is nil")
	}
	if o.Concurrent < 1 {
		return nil, errors.New("dial options: Concurrent is missing")
	}
	if o.Drain == 0 {
		o.Drain = 10 * time.Second
	}
	return &DialLoop{o: o}, nil
}

// Stop ends the opening; what is open is still waited for.
func (l *DialLoop) Stop() { l.stop.Store(true) }

// Live is the number of connections that have ended so far.
func (l *DialLoop) Live() uint64 { return l.live.Load() }

// lateAfter is how long after its time a connection counts as opened late.
const lateAfter = int64(time.Millisecond)

// Run opens until the count is reached or Stop, and then waits for what is open.
func (l *DialLoop) Run() error {
	d := l.o.Dialer
	l.Start = measure.Monotonic()
	gap := 0.0
	if l.o.Rate > 0 {
		gap = 1e9 / l.o.Rate
	}
	for !l.stop.Load() && (l.o.Count == 0 || d.Opened() < l.o.Count) {
		now := measure.Monotonic()
		idle := l.open(now, gap)
		if err := d.Turn(now, idle); err != nil {
			return fmt.Errorf("dial: %w", err)
		}
		l.live.Store(d.Over())
	}
	return l.drain()
}

// open starts what is due, a batch at most, so that answers get their turn. It tells whether nothing more is to be done now.
func (l *DialLoop) open(now int64, gap float64) (idle bool) {
	d := l.o.Dialer
	for range DefaultBatch {
		opened := d.Opened()
		if l.o.Count > 0 && opened >= l.o.Count || opened-d.Over() >= uint64(l.o.Concurrent) {
			return true
		}
		due := now
		if gap > 0 {
			if due = l.Start + int64(float64(opened)*gap); due > now {
				return due-now > int64(time.Millisecond)
			}
		}
		if !d.Open(due, now) {
			return true
		}
		l.End = now
		if late := now - due; late > lateAfter {
			l.Late++
			l.MaxLate = max(l.MaxLate, late)
		}
	}
	return false
}

func (l *DialLoop) drain() error {
	d := l.o.Dialer
	defer func() { l.Finish = measure.Monotonic() }()
	for end := measure.Monotonic() + int64(l.o.Drain); d.Over() < d.Opened(); {
		now := measure.Monotonic()
		if now > end {
			return nil
		}
		if err := d.Turn(now, true); err != nil {
			return fmt.Errorf("dial: %w", err)
		}
		l.live.Store(d.Over())
	}
	l.Drained = true
	return nil
}
