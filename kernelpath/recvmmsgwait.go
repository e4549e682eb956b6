// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// fill takes what the socket has, waiting for it at most the timeout. It asks for no more than want messages: what does not
// fit b stays in the socket, where the kernel counts it, except for segments of aggregates already taken.
func (r *Recvmmsg) fill(want int) error {
	r.filled, r.next = 0, 0
	want = min(want, len(r.messages))
	switch {
	case r.o.Wait == WaitSpin:
		return r.spin(want)
	case r.o.Wait == WaitBusyPoll:
		return r.busyPoll(want)
	case r.empty:
		if ready, err := r.wait(); err != nil || !ready {
			return err
		}
		_, err := r.take(want)
		return err
	}
	again, err := r.take(want)
	if err != nil || !again {
		return err
	}
	if ready, err := r.wait(); err != nil || !ready {
		return err
	}
	_, err = r.take(want)
	return err
}

// take calls recvmmsg once without waiting and reports whether it found nothing.
func (r *Recvmmsg) take(want int) (nothing bool, err error) {
	n, errno := nowRecvmmsg(r.s.fd, r.vector(want))
	return r.took(n, want, errno)
}

// vector returns the first n messages, ready for the kernel.
func (r *Recvmmsg) vector(n int) []unix.Mmsghdr {
	v := r.messages[:n]
	if r.o.GRO {
		for i := range v {
			v[i].Hdr.SetControllen(len(r.control[i]))
		}
	}
	if r.from != nil {
		for i := range v {
			v[i].Hdr.Namelen = peerNameLen
		}
	}
	return v
}

// took looks at what a call of recvmmsg returned and reports whether that was nothing.
func (r *Recvmmsg) took(n, want int, errno unix.Errno) (nothing bool, err error) {
	r.count.calls++
	switch {
	case errno == 0:
		r.filled = n
		r.empty = n < want
		for i := range n {
			if r.messages[i].Hdr.Flags&unix.MSG_TRUNC != 0 {
				r.count.truncated++
			}
		}
		return false, nil
	case errno == unix.EAGAIN:
		r.count.again++
		r.empty = true
		return true, nil
	case errno == unix.EINTR:
		r.count.interrupts++
		return true, nil
	case icmpError(errno):
		r.count.icmp++
		r.empty = false // there may be datagrams behind the error
		return true, nil
	}
	return true, fmt.Errorf("recvmmsg: %w", errno)
}

// wait sleeps until the socket has something, at most the timeout. poll, not epoll: a socket in an epoll set pays for a
// callback with every datagram, one that is polled only while the reader sleeps (net/core/sock.c: sock_def_readable).
func (r *Recvmmsg) wait() (ready bool, err error) {
	events, err := r.waker.sleep(&r.poll, &r.timeout, r.o.Timeout, &r.count.waitCounts)
	if err != nil || events == 0 {
		return false, err
	}
	r.count.wakeups++
	return true, nil
}

// spin asks until there is something, looking at the clock only now and then: a look costs a fifth of an empty call.
func (r *Recvmmsg) spin(want int) error {
	var start time.Time
	for i := 0; ; i++ {
		nothing, err := r.take(want)
		if err != nil || !nothing {
			return err
		}
		if r.waker.taken() {
			return nil
		}
		if i == 0 {
			start = time.Now()
		} else if i%16 == 0 && time.Since(start) >= r.o.Timeout {
			r.count.timeouts++
			return nil
		}
	}
}

// busyPollSlice is how long one call may wait, so that Wake is seen.
const busyPollSlice = 10 * time.Millisecond

// busyPoll waits inside recvmmsg: only there does the kernel poll the device for SO_BUSY_POLL before it sleeps. (poll does
// so by leave of the sysctl net.core.busy_poll, for all of the machine.)
func (r *Recvmmsg) busyPoll(want int) error {
	for waited := time.Duration(0); waited < r.o.Timeout; waited += r.slice {
		if r.waker.taken() {
			return nil
		}
		n, errno := waitRecvmmsg(r.s.fd, r.vector(want))
		r.count.waits++
		if errno == unix.EINTR {
			r.count.calls++
			r.count.interrupts++
			return nil
		}
		nothing, err := r.took(n, want, errno)
		if err != nil || !nothing {
			return err
		}
	}
	r.count.timeouts++
	return nil
}

func setBusyPoll(fd int, d time.Duration, budget int) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL, int(d.Microseconds())); err != nil {
		return explain("set SO_BUSY_POLL", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1); err != nil {
		return explain("set SO_PREFER_BUSY_POLL (Linux 5.11)", err)
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BUSY_POLL_BUDGET, budget); err != nil {
		return explain("set SO_BUSY_POLL_BUDGET", err)
	}
	return nil
}
