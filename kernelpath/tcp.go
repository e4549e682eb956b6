// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// Messages is what the two ends of a TCP test say to each other. Both ends know both messages: a server answers what it
// takes for a whole request, a client compares what it gets.
type Messages struct {
	Request, Response []byte
	// Keep leaves a connection open for more requests, until the client closes it. Otherwise the server closes after its
	// response, and so is the end that owns TIME_WAIT.
	Keep bool
}

func (m Messages) check() error {
	if len(m.Request) == 0 || len(m.Response) == 0 {
		return errors.New("messages: request or response is empty")
	}
	return nil
}

// TCPCounts are a TCP worker's counts, of connections or messages.
type TCPCounts struct {
	Opened      uint64 // connect called (client), accepted (server)
	Established uint64
	Completed   uint64 // ended as planned
	Open        uint64 // now
	Skipped     uint64 // opens for which there was no port or no descriptor

	Requests, Responses uint64
	BytesIn, BytesOut   uint64

	// Connections that ended otherwise, each in one.
	Refused, Reset, TimedOut, ResponseTimeout, BadResponse, EarlyClose, Other uint64

	EpollWaits, Accepts, Reads, Writes, Connects, Closes uint64 // system calls
}

// Errors is how many connections ended otherwise than by plan.
func (c *TCPCounts) Errors() uint64 {
	return c.Refused + c.Reset + c.TimedOut + c.ResponseTimeout + c.BadResponse + c.EarlyClose + c.Other
}

// failed counts the errno that a call on a connection ended with.
func (c *TCPCounts) failed(e unix.Errno) {
	switch e {
	case unix.ECONNREFUSED:
		c.Refused++
	case unix.ECONNRESET, unix.EPIPE:
		c.Reset++
	case unix.ETIMEDOUT:
		c.TimedOut++
	default:
		c.Other++
	}
}

func family(a netip.Addr) int {
	if a.Unmap().Is4() {
		return unix.AF_INET
	}
	return unix.AF_INET6
}

// fileLimit raises the soft limit of open files to the hard one and returns it: a connection is a descriptor.
func fileLimit() (int, error) {
	var r unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	if r.Cur < r.Max {
		r.Cur = r.Max
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &r); err != nil {
			return 0, fmt.Errorf("raise the limit of open files to %d: %w", r.Max, err)
		}
	}
	return int(min(r.Cur, 1<<24)), nil
}

// poller is an epoll set with a waker in it.
type poller struct {
	epfd   int
	waker  *waker
	events []unix.EpollEvent
	ev     unix.EpollEvent
}

func newPoller() (p *poller, err error) {
	p = &poller{epfd: -1, events: make([]unix.EpollEvent, 512)}
	if p.waker, err = newWaker(); err != nil {
		return nil, err
	}
	if p.epfd, err = unix.EpollCreate1(unix.EPOLL_CLOEXEC); err != nil {
		return nil, errors.Join(explain("create epoll", err), p.close())
	}
	if e := p.add(p.waker.fd, unix.EPOLLIN); e != 0 {
		return nil, errors.Join(explain("add to epoll", e), p.close())
	}
	return p, nil
}

func (p *poller) add(fd int, events uint32) unix.Errno { return nowEpollAdd(p.epfd, fd, events, &p.ev) }

func (p *poller) close() error {
	var errs []error
	if p.epfd >= 0 {
		errs = append(errs, unix.Close(p.epfd))
	}
	if p.waker != nil {
		errs = append(errs, p.waker.close())
	}
	return errors.Join(errs...)
}
