// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Limits and defaults of all senders.
const (
	DefaultSendTimeout = 100 * time.Millisecond // SO_SNDTIMEO: how long one Submit waits for room, so that its caller can be stopped
	MaxFlows           = 4096                   // sockets one sender opens: a flow is a source port, and a connected socket has one
)

// SendSocket says how the UDP sockets of a sender are opened. It is part of the options of every UDP sender.
type SendSocket struct {
	Local   netip.AddrPort // source address and the port of flow 0; flow f sends from port + f
	Remote  netip.AddrPort // destination
	Flows   int            // 0 means 1
	Batch   int            // packets one Reserve lends at most; 0 means DefaultBatch
	Buffer  int            // bytes of one buffer: the longest payload; 0 means 2048
	Sndbuf  int            // SO_SNDBUF to ask for, bytes; 0 leaves the kernel's default
	Timeout time.Duration  // 0 means DefaultSendTimeout
	// ReusePort shares the source ports with other senders of the same user (SO_REUSEPORT).
	ReusePort bool
}

func (o *SendSocket) complete() error {
	if o.Flows == 0 {
		o.Flows = 1
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Buffer == 0 {
		o.Buffer = 2048
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultSendTimeout
	}
	switch {
	case !o.Local.IsValid() || o.Local.Port() == 0:
		return errors.New("options: Local: a source address and port is required")
	case !o.Remote.IsValid() || o.Remote.Port() == 0:
		return errors.New("options: Remote: a destination address and port is required")
	case o.Local.Addr().Is4() != o.Remote.Addr().Is4() || o.Local.Addr().Is4In6() || o.Remote.Addr().Is4In6():
		return fmt.Errorf("options: Local and Remote: %v and %v are not of one plain IP version", o.Local.Addr(), o.Remote.Addr())
	case o.Flows < 1 || o.Flows > MaxFlows:
		return fmt.Errorf("options: Flows: %d is not within 1..%d: each takes a socket", o.Flows, MaxFlows)
	case int(o.Local.Port())+o.Flows > 1<<16:
		return fmt.Errorf("options: Flows: %d source ports from %d do not fit", o.Flows, o.Local.Port())
	case o.Batch < 1 || o.Batch > MaxBatch:
		return fmt.Errorf("options: Batch: %d is not within 1..%d", o.Batch, MaxBatch)
	case o.Buffer < 1 || o.Buffer > 1<<16:
		return fmt.Errorf("options: Buffer: %d bytes is not within 1..65536", o.Buffer)
	case o.Sndbuf < 0 || o.Sndbuf > 1<<30:
		return fmt.Errorf("options: Sndbuf: %d bytes is not within 0..%d", o.Sndbuf, 1<<30)
	case o.Timeout < time.Millisecond || o.Timeout > time.Minute:
		return fmt.Errorf("options: Timeout: %v is not within 1ms..1m", o.Timeout)
	}
	return nil
}

// senders is what all UDP senders have in common: a socket per flow, and buffers to lend.
type senders struct {
	o      SendSocket
	fds    []int
	slots  [][]byte
	sndbuf int // as read back
	forced bool
	lent   int
	count  sendCounts
	closed bool
}

// sendCounts are what senders count. Errors are counted by errno; those that pass with time are no end of sending.
type sendCounts struct {
	packets, bytes, calls uint64
	again                 uint64 // EAGAIN: SO_SNDTIMEO ran out, the socket's buffer stayed full
	nobufs                uint64 // ENOBUFS: no memory, or (AF_PACKET) the device dropped
	icmp                  uint64 // the echo of an ICMP message about something sent earlier
	interrupts            uint64 // EINTR
	failed                uint64 // anything else: Submit returned it
}

func openSenders(o SendSocket, connect bool) (s *senders, err error) {
	s = &senders{o: o, slots: slots(o.Batch, o.Buffer)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	remote, err := sockaddr(o.Remote)
	if err != nil {
		return s, err
	}
	for f := range o.Flows {
		if err := s.open(netip.AddrPortFrom(o.Local.Addr(), o.Local.Port()+uint16(f)), remote, connect); err != nil {
			return s, err
		}
	}
	return s, nil
}

func (s *senders) open(local netip.AddrPort, remote unix.Sockaddr, connect bool) error {
	family := unix.AF_INET
	if local.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_UDP) // blocking: no room means sleep, as S1's write
	if err != nil {
		return explain("open UDP socket", err)
	}
	s.fds = append(s.fds, fd)
	if s.o.Sndbuf > 0 {
		s.forced = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUFFORCE, s.o.Sndbuf) == nil
		if !s.forced {
			if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF, s.o.Sndbuf); err != nil {
				return explain("set SO_SNDBUF", err)
			}
		}
	}
	if s.sndbuf, err = unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_SNDBUF); err != nil {
		return explain("get SO_SNDBUF", err)
	}
	tv := unix.NsecToTimeval(s.o.Timeout.Nanoseconds())
	if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_SNDTIMEO, &tv); err != nil {
		return explain("set SO_SNDTIMEO", err)
	}
	// What comes back is nobody's: the smallest buffer there is.
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1); err != nil {
		return explain("set SO_RCVBUF", err)
	}
	if s.o.ReusePort {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return explain("set SO_REUSEPORT", err)
		}
	}
	sa, err := sockaddr(local)
	if err != nil {
		return err
	}
	if err := unix.Bind(fd, sa); err != nil {
		return explain(fmt.Sprintf("bind UDP %s", local), err)
	}
	if !connect {
		return nil
	}
	if err := unix.Connect(fd, remote); err != nil {
		return explain(fmt.Sprintf("connect UDP to %s", s.o.Remote), err)
	}
	return nil
}

// Buffers are all the buffers that Reserve lends from, for a caller that prepares them once.
func (s *senders) Buffers() [][]byte { return s.slots }

// Reserve lends up to len(b) buffers, until Submit. There are always some: what was submitted has been copied.
func (s *senders) Reserve(b [][]byte) (int, error) {
	if s.closed {
		return 0, ErrClosed
	}
	s.lent = min(len(b), len(s.slots))
	copy(b, s.slots[:s.lent])
	return s.lent, nil
}

// Flush has nothing to do: the kernel has taken what Submit says it took.
func (s *senders) Flush(time.Duration) error {
	if s.closed {
		return ErrClosed
	}
	return nil
}

// transient notes an errno and tells whether sending may go on.
func (c *sendCounts) transient(e unix.Errno) bool {
	switch {
	case e == unix.EAGAIN:
		c.again++
	case e == unix.ENOBUFS || e == unix.ENOMEM:
		c.nobufs++
	case e == unix.EINTR:
		c.interrupts++
	case icmpError(e) && e != unix.ENETUNREACH && e != unix.EHOSTUNREACH: // those two may also be this host's own word, for good
		c.icmp++
	default:
		c.failed++
		return false
	}
	return true
}

func (c *sendCounts) counters(call string) map[string]uint64 {
	return map[string]uint64{
		"send.packets":         c.packets,
		"send.bytes":           c.bytes,
		"syscalls." + call:     c.calls,
		"syscalls.eagain":      c.again,
		"syscalls.enobufs":     c.nobufs,
		"syscalls.interrupted": c.interrupts,
		"syscalls.icmp_errors": c.icmp,
		"syscalls.failed":      c.failed,
	}
}

func (s *senders) effective(name string, batch int) Effective {
	return Effective{Receiver: name, Local: s.o.Local, Batch: batch, BufferBytes: s.o.Buffer, SndbufAsked: s.o.Sndbuf, Sndbuf: s.sndbuf,
		SndbufForced: s.forced, Timeout: s.o.Timeout}
}

// Close gives everything back.
func (s *senders) Close() (err error) {
	if s.closed {
		return nil
	}
	s.closed = true
	for _, fd := range s.fds {
		err = errors.Join(err, unix.Close(fd))
	}
	s.fds = nil
	return err
}
