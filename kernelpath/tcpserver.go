// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// TCPServerOptions are the options of a [TCPServer].
type TCPServerOptions struct {
	Messages
	Local netip.AddrPort
	// HTTP says that a request ends with an empty line, or with the body its Content-Length tells; else each read is one.
	HTTP bool
}

// TCPServer is one worker of the kernel's side of a TCP test: a listener of its own on a port shared by SO_REUSEPORT, an
// epoll set, no allocation for a connection. What it does to be fast: it accepts a connection when its request is there
// (TCP_DEFER_ACCEPT), reads and answers it before it waits again, and lets the FIN ride on the response (MSG_MORE before
// close).
type TCPServer struct {
	o        TCPServerOptions
	p        *poller
	listener int
	conns    []serverConn // by descriptor
	buf      []byte
	n        TCPCounts
	closed   bool
}

// serverConn is a connection that did not end within one turn.
type serverConn struct {
	open    bool
	partial []byte // of a request that came in pieces
	sent    int    // of the response, when it did not fit the socket; -1 when none is under way
}

// OpenTCPServer opens the listener in the network namespace of the calling thread.
func OpenTCPServer(o TCPServerOptions) (s *TCPServer, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	s = &TCPServer{o: o, listener: -1, buf: make([]byte, 64<<10)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
			s = nil
		}
	}()
	files, err := fileLimit()
	if err != nil {
		return s, err
	}
	s.conns = make([]serverConn, files)
	fd, err := unix.Socket(family(o.Local.Addr()), unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return s, explain("open TCP socket", err)
	}
	s.listener = fd
	for _, opt := range []struct{ level, name, value int }{{unix.SOL_SOCKET, unix.SO_REUSEADDR, 1}, {unix.SOL_SOCKET, unix.SO_REUSEPORT, 1},
		{unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 5}, {unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}} {
		if err := unix.SetsockoptInt(fd, opt.level, opt.name, opt.value); err != nil {
			return s, fmt.Errorf("set option %d of the listener: %w", opt.name, err)
		}
	}
	if e := nowBind(fd, rawAddress(o.Local)); e != 0 {
		return s, explain("bind "+o.Local.String(), e)
	}
	if err := unix.Listen(fd, 1<<16-1); err != nil { // cut by net.core.somaxconn
		return s, explain("listen on "+o.Local.String(), err)
	}
	if s.p, err = newPoller(); err != nil {
		return s, err
	}
	if e := s.p.add(fd, unix.EPOLLIN); e != 0 {
		return s, explain("add the listener to epoll", e)
	}
	return s, nil
}

// Turn waits for connections and requests at most ms milliseconds, and serves those that came.
func (s *TCPServer) Turn(ms int) error {
	if s.closed {
		return ErrClosed
	}
	n, e := waitEpoll(s.p.epfd, s.p.events, ms)
	s.n.EpollWaits++
	if e != 0 && e != unix.EINTR {
		return fmt.Errorf("epoll_wait: %w", e)
	}
	for i := range max(n, 0) {
		switch fd := int(s.p.events[i].Fd); fd {
		case s.p.waker.fd:
			s.p.waker.reset()
		case s.listener:
			if err := s.accept(); err != nil {
				return err
			}
		default:
			s.serve(fd, s.p.events[i].Events)
		}
	}
	return nil
}

// acceptBatch bounds how many connections are taken before those that are open get their turn.
const acceptBatch = 128

func (s *TCPServer) accept() error {
	for range acceptBatch {
		fd, e := nowAccept(s.listener)
		s.n.Accepts++
		switch e {
		case 0:
		case unix.EAGAIN:
			return nil
		case unix.ECONNABORTED, unix.EINTR:
			continue
		case unix.EMFILE, unix.ENFILE:
			s.n.Skipped++
			return nil
		default:
			return fmt.Errorf("accept: %w", e)
		}
		if fd >= len(s.conns) {
			s.n.Skipped++
			nowClose(fd)
			continue
		}
		s.n.Opened++
		s.n.Established++
		s.n.Open++
		s.conns[fd] = serverConn{open: true, partial: s.conns[fd].partial[:0], sent: -1}
		if s.read(fd) { // still open: it must be watched
			if e := s.p.add(fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|epollET); e != 0 {
				s.end(fd, e)
			} else if s.conns[fd].open {
				s.read(fd) // what came before it was watched makes no edge
			}
		}
	}
	return nil
}

const epollET = 1 << 31 // unix.EPOLLET is a negative number

func (s *TCPServer) serve(fd int, events uint32) {
	c := &s.conns[fd]
	if !c.open {
		return
	}
	if c.sent >= 0 && events&unix.EPOLLOUT != 0 && !s.write(fd) {
		return
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 {
		s.read(fd)
	}
}

// read takes requests until there are no more; false means that the connection is closed.
func (s *TCPServer) read(fd int) bool {
	c := &s.conns[fd]
	for c.sent < 0 { // one request at a time
		n, e := nowRead(fd, s.buf)
		s.n.Reads++
		switch {
		case e == unix.EAGAIN:
			return true
		case e == unix.EINTR:
			continue
		case e != 0:
			s.end(fd, e)
			return false
		case n == 0: // the client closed: as planned when it may, and has no request under way
			if s.o.Keep && len(c.partial) == 0 {
				s.n.Completed++
			} else {
				s.n.EarlyClose++
			}
			s.close(fd)
			return false
		}
		s.n.BytesIn += uint64(n)
		data := s.buf[:n]
		if len(c.partial) > 0 {
			c.partial = append(c.partial, data...)
			data = c.partial
		}
		if !s.whole(data) {
			if len(data) > maxRequest {
				s.n.BadResponse++
				s.close(fd)
				return false
			}
			if len(c.partial) == 0 {
				c.partial = append(c.partial[:0], data...)
			}
			continue
		}
		c.partial = c.partial[:0]
		s.n.Requests++
		c.sent = 0
		if !s.write(fd) {
			return false
		}
		if n < len(s.buf) && c.sent < 0 {
			return true // the socket was emptied: what comes now makes an edge
		}
	}
	return true
}

const maxRequest = 64 << 10

// whole tells whether a request has come to its end.
func (s *TCPServer) whole(b []byte) bool {
	if bytes.Equal(b, s.o.Request) || !s.o.HTTP {
		return true
	}
	return bytes.HasSuffix(b, []byte("\r\n\r\n")) // of a stranger: GET and the like
}

// write sends what is left of the response; false means that the connection is closed.
func (s *TCPServer) write(fd int) bool {
	c := &s.conns[fd]
	for c.sent < len(s.o.Response) {
		flags := unix.MSG_NOSIGNAL
		if !s.o.Keep {
			flags |= unix.MSG_MORE // the close that follows sends it, with FIN
		}
		n, e := nowSend(fd, s.o.Response[c.sent:], flags)
		s.n.Writes++
		switch e {
		case 0:
			c.sent += n
			s.n.BytesOut += uint64(n)
		case unix.EAGAIN:
			return true
		case unix.EINTR:
		default:
			s.end(fd, e)
			return false
		}
	}
	s.n.Responses++
	c.sent = -1
	if s.o.Keep {
		return true
	}
	s.n.Completed++
	s.close(fd)
	return false
}

func (s *TCPServer) end(fd int, e unix.Errno) {
	s.n.failed(e)
	s.close(fd)
}

func (s *TCPServer) close(fd int) {
	s.conns[fd].open = false
	s.n.Open--
	s.n.Closes++
	nowClose(fd)
}

// Counts returns the running totals.
func (s *TCPServer) Counts() TCPCounts { return s.n }

// Wake ends the wait in progress, or the next one. It may be called from any goroutine until Close.
func (s *TCPServer) Wake() error { return s.p.waker.wake() }

// Close closes the listener and all connections. It must not run beside Turn.
func (s *TCPServer) Close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	var errs []error
	for fd := range s.conns {
		if s.conns[fd].open {
			errs = append(errs, unix.Close(fd))
		}
	}
	if s.listener >= 0 {
		errs = append(errs, unix.Close(s.listener))
	}
	if s.p != nil {
		errs = append(errs, s.p.close())
	}
	return errors.Join(errs...)
}
