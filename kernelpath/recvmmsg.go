// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Recvmmsg receives batches of datagrams from one UDP socket.
type Recvmmsg struct {
	o        RecvmmsgOptions
	s        *socket
	waker    *waker
	slots    [][]byte
	messages []unix.Mmsghdr
	vectors  []unix.Iovec
	control  [][]byte   // with GRO, one control buffer per message
	from     []peerName // of RecvmmsgEcho: where each message came from; nil otherwise
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
	waitCounts
	datagrams, bytes, calls, again, icmp, truncated, aggregates uint64
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
		if r.from != nil {
			r.messages[i].Hdr.Name = r.from[i].pointer()
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

// Calls are the waits and the calls of recvmmsg, those that found nothing included. It belongs to the goroutine that
// receives.
func (r *Recvmmsg) Calls() (waits, reads uint64) { return r.count.waits, r.count.calls }

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
