// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"math"

	"golang.org/x/sys/unix"
)

// EpollOptions are the options of an [Epoll] receiver.
type EpollOptions struct {
	Socket
}

// Epoll is the textbook receiver, and that of "How fast can the Linux stack receive?" (S1): one non-blocking UDP socket,
// edge-triggered epoll, and on an event one read per datagram until EAGAIN.
type Epoll struct {
	o      EpollOptions
	s      *socket
	epfd   int
	waker  *waker
	slots  [][]byte
	from   []peerName // of EpollEcho: where each datagram came from; nil otherwise
	events [2]unix.EpollEvent
	ready  bool // an edge was seen and no EAGAIN since: reading goes on without waiting
	count  EpollCounts
	queued uint64
	closed bool
}

// EpollCounts are running totals, cheap to read every million datagrams as S1 does.
type EpollCounts struct {
	Datagrams  uint64
	Bytes      uint64 // of payload
	EpollWaits uint64 // returns of epoll_wait, time-outs and interruptions included
	Reads      uint64 // calls of read, those that found nothing included
	Again      uint64 // reads that found nothing (EAGAIN)
	Wakeups    uint64 // returns of epoll_wait with data to read
	Timeouts   uint64
	Interrupts uint64 // calls ended by a signal (EINTR)
	ICMPErrors uint64 // reads that returned an earlier ICMP error instead of data (ECONNREFUSED ...)
}

// OpenEpoll opens the socket in the network namespace of the calling thread. Datagrams longer than Buffer are cut without
// notice: read cannot tell.
func OpenEpoll(o EpollOptions) (r *Epoll, err error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r = &Epoll{o: o, epfd: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
			r = nil
		}
	}()
	if r.s, err = openSocket(&o.Socket, unix.SOCK_NONBLOCK); err != nil {
		return r, err
	}
	if r.waker, err = newWaker(); err != nil {
		return r, err
	}
	if r.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return r, explain("create epoll", err)
	}
	for _, fd := range []int{r.s.fd, r.waker.fd} {
		ev := unix.EpollEvent{Events: unix.EPOLLIN | unix.EPOLLET&math.MaxUint32, Fd: int32(fd)}
		if err := unix.EpollCtl(r.epfd, unix.EPOLL_CTL_ADD, fd, &ev); err != nil {
			return r, explain("add to epoll", err)
		}
	}
	r.slots = slots(o.Batch, o.Buffer)
	return r, nil
}

// Receive waits for datagrams at most the timeout and lends up to len(b) of them, until Release. 0, nil means that
// nothing came, or that a signal or Wake ended the wait.
func (r *Epoll) Receive(b [][]byte) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	if !r.ready {
		if err := r.wait(); err != nil || !r.ready {
			return 0, err
		}
	}
	n := 0
	for n < len(b) && n < len(r.slots) {
		slot := r.slots[n]
		got, errno := r.read(n, slot)
		r.count.Reads++
		switch {
		case errno == 0:
			r.count.Datagrams++
			r.count.Bytes += uint64(got)
			b[n] = slot[:got]
			n++
		case errno == unix.EAGAIN:
			r.count.Again++
			r.ready = false
			return n, nil
		case errno == unix.EINTR:
			r.count.Interrupts++
		case icmpError(errno):
			r.count.ICMPErrors++
		default:
			return n, fmt.Errorf("read: %w", errno)
		}
	}
	return n, nil
}

// read takes one datagram, and for an answer its sender too.
func (r *Epoll) read(i int, slot []byte) (int, unix.Errno) {
	if r.from == nil {
		return nowRead(r.s.fd, slot)
	}
	return nowRecvfrom(r.s.fd, slot, &r.from[i])
}

// wait sets ready when the socket has something to read.
func (r *Epoll) wait() error {
	n, errno := waitEpoll(r.epfd, r.events[:], int(r.o.Timeout.Milliseconds()))
	r.count.EpollWaits++
	switch {
	case errno == unix.EINTR:
		r.count.Interrupts++
		return nil
	case errno != 0:
		return fmt.Errorf("epoll_wait: %w", errno)
	case n == 0:
		r.count.Timeouts++
	}
	for _, ev := range r.events[:n] {
		if ev.Fd == int32(r.waker.fd) {
			r.waker.reset()
			continue
		}
		r.ready = true
		r.count.Wakeups++
	}
	return nil
}

// Release ends the loan of the last Receive.
func (r *Epoll) Release() error { return nil }

// Counts returns the running totals.
func (r *Epoll) Counts() EpollCounts { return r.count }

// Calls are the returns of epoll_wait and the calls of read, those that found nothing included. It belongs to the
// goroutine that receives.
func (r *Epoll) Calls() (waits, reads uint64) { return r.count.EpollWaits, r.count.Reads }

// Queued counts, and throws away, what is left in the socket. Call it when no more is sent.
func (r *Epoll) Queued() (uint64, error) {
	if r.closed {
		return 0, ErrClosed
	}
	for {
		_, errno := nowRead(r.s.fd, r.slots[0])
		switch {
		case errno == 0:
			r.queued++
		case errno == unix.EAGAIN:
			return r.queued, nil
		case errno == unix.EINTR || icmpError(errno):
		default:
			return r.queued, fmt.Errorf("drain: %w", errno)
		}
	}
}

// Counters returns the witnesses by their ledger names. A witness that could not be read is absent.
func (r *Epoll) Counters() map[string]uint64 {
	m := map[string]uint64{
		"sock.queued":          r.queued,
		"syscalls.epoll_wait":  r.count.EpollWaits,
		"syscalls.read":        r.count.Reads,
		"syscalls.eagain":      r.count.Again,
		"syscalls.wakeups":     r.count.Wakeups,
		"syscalls.timeouts":    r.count.Timeouts,
		"syscalls.interrupted": r.count.Interrupts,
		"syscalls.icmp_errors": r.count.ICMPErrors,
		"sock.received":        r.count.Datagrams,
		"sock.received_bytes":  r.count.Bytes,
	}
	if !r.closed {
		if d, err := r.s.drops(); err == nil {
			m["sock.drops"] = d
		}
	}
	return m
}

// Effective returns what was obtained.
func (r *Epoll) Effective() Effective {
	return r.s.effective(Effective{Receiver: "epoll", Wait: WaitBlock, Timeout: r.o.Timeout, Batch: r.o.Batch, BufferBytes: r.o.Buffer})
}

// Wake ends the wait in progress, or the next one. It may be called from any goroutine until Close.
func (r *Epoll) Wake() error { return r.waker.wake() }

// Close gives everything back. It must not run beside Receive: Wake first, and wait for Receive to return.
func (r *Epoll) Close() (err error) {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.epfd >= 0 {
		err = errors.Join(err, unix.Close(r.epfd))
	}
	if r.waker != nil {
		err = errors.Join(err, r.waker.close())
	}
	if r.s != nil {
		err = errors.Join(err, unix.Close(r.s.fd))
	}
	return err
}
