// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"sync"
	"time"
)

// liveRun drives a program that paces itself: system calls of many program runs each, until the program has nothing left
// to send.
type liveRun struct {
	prog      int
	frame     []byte               // what the pages start with
	batch     int                  // frames per flush
	finished  func() bool          // nothing is left to send
	repeat    func() uint32        // program runs of the next system call
	untilDone func() time.Duration // estimate of how long the rest takes
	stop      <-chan struct{}      // closed when it is to end early
}

// drive occupies the calling thread and returns how many system calls it took.
func (l liveRun) drive() (runs int, err error) {
	t, err := newInterruptible()
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, t.restore()) }()

	over := make(chan struct{})
	var watcher sync.WaitGroup
	watcher.Go(func() { l.watch(t, over) })
	defer watcher.Wait()
	defer close(over)

	for !l.finished() {
		runs++
		if err := runLive(l.prog, l.frame, l.repeat(), uint32(l.batch)); err != nil {
			return runs, err
		}
	}
	return runs, nil
}

// watch interrupts the system call when there is nothing left to send. It wakes seldom, so as not to disturb the cores.
func (l liveRun) watch(t *interruptible, over <-chan struct{}) {
	timer := time.NewTimer(l.look())
	defer timer.Stop()
	stop := l.stop
	for {
		select {
		case <-over:
			return
		case <-stop:
			stop = nil
		case <-timer.C:
		}
		if l.finished() {
			// Again and again: the thread may be just before the system call, where a signal has no effect.
			t.interrupt()
			timer.Reset(500 * time.Microsecond)
			continue
		}
		timer.Reset(l.look())
	}
}

// look is when to look again.
func (l liveRun) look() time.Duration {
	const least, most = 500 * time.Microsecond, 100 * time.Millisecond
	return min(max(l.untilDone(), least), most)
}
