// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// DefaultBusyPoll is how long one call polls the device before it sleeps (SO_BUSY_POLL).
const DefaultBusyPoll = 50 * time.Microsecond

// RecvmmsgOptions are the options of a [Recvmmsg] receiver.
type RecvmmsgOptions struct {
	Socket
	Wait           Wait          // 0 means WaitBlock
	BusyPoll       time.Duration // WaitBusyPoll only: SO_BUSY_POLL, whole microseconds; 0 means DefaultBusyPoll
	BusyPollBudget int           // WaitBusyPoll only: packets per poll, SO_BUSY_POLL_BUDGET; 0 means 64
	GRO            bool          // take aggregates from the kernel and split them here (UDP_GRO)
}

func (o *RecvmmsgOptions) complete() error {
	if err := o.Socket.complete(); err != nil {
		return err
	}
	if o.Wait == WaitDefault {
		o.Wait = WaitBlock
	}
	if o.Wait < WaitBlock || o.Wait > WaitSpin {
		return fmt.Errorf("options: Wait: %v is not a policy", o.Wait)
	}
	if o.Wait != WaitBusyPoll {
		if o.BusyPoll != 0 {
			return fmt.Errorf("options: BusyPoll: has no meaning with Wait %v", o.Wait)
		}
		if o.BusyPollBudget != 0 {
			return fmt.Errorf("options: BusyPollBudget: has no meaning with Wait %v", o.Wait)
		}
	} else {
		if o.BusyPoll == 0 {
			o.BusyPoll = DefaultBusyPoll
		}
		if o.BusyPollBudget == 0 {
			o.BusyPollBudget = 64
		}
		if o.BusyPoll < time.Microsecond || o.BusyPoll > time.Second || o.BusyPoll%time.Microsecond != 0 {
			return fmt.Errorf("options: BusyPoll: %v is not a whole number of microseconds within 1us..1s", o.BusyPoll)
		}
		if o.BusyPollBudget < 1 || o.BusyPollBudget > 1<<16-1 {
			return fmt.Errorf("options: BusyPollBudget: %d packets is not within 1..65535", o.BusyPollBudget)
		}
	}
	if o.GRO {
		o.Buffer = 1 << 16 // an aggregate is at most 64 KiB; a smaller buffer would cut it
	}
	return nil
}

// Recvmmsg receives batches of datagrams from one UDP socket.
type Recvmmsg struct {
	o        RecvmmsgOptions
	s        *socket
	waker    *waker
	slots    [][]byte
	messages []unix.Mmsghdr
	vectors  []unix.Iovec
	control  [][]byte // with GRO, one control buffer per message
	poll     [2]unix.PollFd
	timeout  unix.Timespec

	filled int    // messages of the last call
	next   int    // the first of them not lent yet
	rest   []byte // what is left of an aggregate cut by a full b; nil if nothing
	size   int    // segment size of rest

	slice  time.Duration // SO_RCVTIMEO, WaitBusyPoll only
	empty  bool          // the last call took all there was: wait before the next one
	count  recvmmsgCounts
	queued uint64
	closed bool
}

type recvmmsgCounts struct {
	datagrams, bytes, calls, again, waits, wakeups, timeouts, interrupts, icmp, truncated, aggregates uint64
}

// OpenRecvmmsg opens the socket in the network namespace of the calling thread.
func OpenRecvmmsg(o RecvmmsgOptions) (r *Recvmmsg, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r = &Recvmmsg{o: o}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
			r = nil
		}
	}()
	if r.s, err = openSocket(&o.Socket, 0); err != nil { // blocking, for WaitBusyPoll; all other calls say MSG_DONTWAIT
		return r, err
	}
	if r.waker, err = newWaker(); err != nil {
		return r, err
	}
	if o.Wait == WaitBusyPoll {
		if err = setBusyPoll(r.s.fd, o.BusyPoll, o.BusyPollBudget); err != nil {
			return r, err
		}
		r.slice = min(o.Timeout, busyPollSlice)
		tv := unix.NsecToTimeval(r.slice.Nanoseconds())
		if err = unix.SetsockoptTimeval(r.s.fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &tv); err != nil {
			return r, explain("set SO_RCVTIMEO", err)
		}
	}
	if o.GRO {
		if err = unix.SetsockoptInt(r.s.fd, unix.SOL_UDP, unix.UDP_GRO, 1); err != nil {
			return r, explain("set UDP_GRO (Linux 5.0)", err)
		}
	}
	r.prepare()
	return r, nil
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

// prepare builds the message vector once; the kernel writes lengths and flags into it, never the pointers.
func (r *Recvmmsg) prepare() {
	n := r.o.Batch
	r.slots = slots(n, r.o.Buffer)
	r.messages = make([]unix.Mmsghdr, n)
	r.vectors = make([]unix.Iovec, n)
	if r.o.GRO {
		r.control = slots(n, unix.CmsgSpace(4))
	}
	for i := range r.messages {
		r.vectors[i].Base = &r.slots[i][0]
		r.vectors[i].SetLen(len(r.slots[i]))
		r.messages[i].Hdr.Iov = &r.vectors[i]
		r.messages[i].Hdr.SetIovlen(1)
		if r.o.GRO {
			r.messages[i].Hdr.Control = &r.control[i][0]
		}
	}
	r.poll[0] = unix.PollFd{Fd: int32(r.s.fd), Events: unix.POLLIN}
	r.poll[1] = unix.PollFd{Fd: int32(r.waker.fd), Events: unix.POLLIN}
}

// Receive waits for datagrams at most the timeout and lends up to len(b) of them, until Release. 0, nil means that
// nothing came, or that a signal or Wake ended the wait.
func (r *Recvmmsg) Receive(b [][]byte) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	if len(b) == 0 {
		return 0, nil
	}
	if r.next == r.filled && r.rest == nil {
		if err := r.fill(len(b)); err != nil {
			return 0, err
		}
	}
	if !r.o.GRO {
		n := min(len(b), r.filled-r.next)
		for i := range n {
			length := int(r.messages[r.next+i].Len)
			r.count.bytes += uint64(length)
			b[i] = r.slots[r.next+i][:length]
		}
		r.next += n
		r.count.datagrams += uint64(n)
		return n, nil
	}
	return r.lendSegments(b), nil
}

func (r *Recvmmsg) lendSegments(b [][]byte) (n int) {
	if r.rest != nil {
		n, r.rest = split(b, r.rest, r.size)
	}
	for n < len(b) && r.next < r.filled {
		m := &r.messages[r.next]
		r.size = 0
		if m.Hdr.Controllen > 0 {
			r.size = groSegment(r.control[r.next][:m.Hdr.Controllen])
		}
		if r.size > 0 && int(m.Len) > r.size {
			r.count.aggregates++
		}
		var k int
		k, r.rest = split(b[n:], r.slots[r.next][:m.Len], r.size)
		r.count.bytes += uint64(m.Len)
		n += k
		r.next++
	}
	if len(r.rest) == 0 {
		r.rest = nil
	}
	r.count.datagrams += uint64(n)
	return n
}

// fill takes what the socket has, waiting for it at most the timeout. It asks for no more than want messages, so that
// nothing is held back from the caller but the segments of one aggregate.
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
	r.timeout = unix.NsecToTimespec(r.o.Timeout.Nanoseconds())
	n, errno := waitPoll(r.poll[:], &r.timeout)
	r.count.waits++
	switch {
	case errno == unix.EINTR:
		r.count.interrupts++
		return false, nil
	case errno != 0:
		return false, fmt.Errorf("ppoll: %w", errno)
	case n == 0:
		r.count.timeouts++
		return false, nil
	}
	if r.poll[1].Revents != 0 {
		r.waker.reset()
	}
	if r.poll[0].Revents != 0 {
		r.count.wakeups++
		return true, nil
	}
	return false, nil
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

// Release ends the loan of the last Receive.
func (r *Recvmmsg) Release() error { return nil }

// Queued counts, and throws away, what is left in the socket and in aggregates not lent to the end. Call it when no more
// is sent.
func (r *Recvmmsg) Queued() (uint64, error) {
	if r.closed {
		return 0, ErrClosed
	}
	if r.rest != nil {
		r.queued += segments(len(r.rest), r.size)
		r.rest = nil
	}
	r.countUnlent()
	for {
		r.filled, r.next = 0, 0
		nothing, err := r.take(len(r.messages))
		if err != nil {
			return r.queued, fmt.Errorf("drain: %w", err)
		}
		if nothing && r.empty {
			return r.queued, nil
		}
		r.countUnlent()
	}
}

func (r *Recvmmsg) countUnlent() {
	for ; r.next < r.filled; r.next++ {
		size := 0
		if r.o.GRO {
			size = groSegment(r.control[r.next][:r.messages[r.next].Hdr.Controllen])
		}
		r.queued += segments(int(r.messages[r.next].Len), size)
	}
}

// Counters returns the witnesses by their ledger names. A witness that could not be read is absent. With GRO one dropped
// aggregate is one drop, however many datagrams it held.
func (r *Recvmmsg) Counters() map[string]uint64 {
	m := map[string]uint64{
		"sock.queued":          r.queued,
		"sock.received":        r.count.datagrams,
		"sock.received_bytes":  r.count.bytes,
		"sock.truncated":       r.count.truncated,
		"sock.aggregates":      r.count.aggregates,
		"syscalls.recvmmsg":    r.count.calls,
		"syscalls.eagain":      r.count.again,
		"syscalls.poll":        r.count.waits,
		"syscalls.wakeups":     r.count.wakeups,
		"syscalls.timeouts":    r.count.timeouts,
		"syscalls.interrupted": r.count.interrupts,
		"syscalls.icmp_errors": r.count.icmp,
	}
	if !r.closed {
		if d, err := r.s.drops(); err == nil {
			m["sock.drops"] = d
		}
	}
	return m
}

// Effective returns what was obtained.
func (r *Recvmmsg) Effective() Effective {
	return r.s.effective(Effective{Receiver: "recvmmsg", Wait: r.o.Wait, Timeout: r.o.Timeout, Batch: r.o.Batch, BufferBytes: r.o.Buffer,
		BusyPoll: r.o.BusyPoll, PreferBusyPoll: r.o.Wait == WaitBusyPoll, BusyPollBudget: r.o.BusyPollBudget, GRO: r.o.GRO})
}

// Wake ends the wait in progress, or the next one. It may be called from any goroutine until Close.
func (r *Recvmmsg) Wake() error { return r.waker.wake() }

// Close gives everything back. It must not run beside Receive: Wake first, and wait for Receive to return.
func (r *Recvmmsg) Close() (err error) {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.waker != nil {
		err = errors.Join(err, r.waker.close())
	}
	if r.s != nil {
		err = errors.Join(err, unix.Close(r.s.fd))
	}
	return err
}
