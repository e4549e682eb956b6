// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// waker ends a wait from another goroutine: a flag for those who spin, an eventfd for those who sleep.
type waker struct {
	fd  int
	set atomic.Bool
}

func newWaker() (*waker, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, explain("open eventfd", err)
	}
	return &waker{fd: fd}, nil
}

// wake ends the wait in progress, or the next one. It is the only part of a receiver that others may call.
func (w *waker) wake() error {
	w.set.Store(true)
	one := [8]byte{1, 1, 1, 1, 1, 1, 1, 1} // any number but 0 and 2^64-1 will do
	if _, err := unix.Write(w.fd, one[:]); err != nil && err != unix.EAGAIN {
		return fmt.Errorf("write eventfd: %w", err)
	}
	return nil
}

// taken reports whether wake was called since the last time, and resets it.
func (w *waker) taken() bool {
	if !w.set.Load() {
		return false
	}
	w.reset()
	return true
}

// reset takes back a wake. Flag first: a wake that comes in between leaves the eventfd readable, so it ends one more wait
// rather than none.
func (w *waker) reset() {
	w.set.Store(false)
	var b [8]byte
	nowRead(w.fd, b[:])
}

// waitCounts is how waits began and ended.
type waitCounts struct {
	waits, wakeups, timeouts, interrupts uint64
}

// sleep waits until fds[0] has something, at most d, and returns what it has: nothing after a timeout, a signal or a
// wake. fds[1] is the waker's eventfd. fds and limit are the caller's, so that nothing is allocated here; limit is
// written to. Wakeups are for the caller to count.
func (w *waker) sleep(fds *[2]unix.PollFd, limit *unix.Timespec, d time.Duration, c *waitCounts) (events int16, err error) {
	*limit = unix.NsecToTimespec(d.Nanoseconds())
	n, errno := waitPoll(fds[:], limit)
	c.waits++
	switch {
	case errno == unix.EINTR:
		c.interrupts++
		return 0, nil
	case errno != 0:
		return 0, fmt.Errorf("ppoll: %w", errno)
	case n == 0:
		c.timeouts++
		return 0, nil
	}
	if fds[1].Revents != 0 {
		w.reset()
	}
	return fds[0].Revents, nil
}

func (w *waker) close() error { return unix.Close(w.fd) }
