// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"

	"golang.org/x/sys/unix"
)

// TCPClientOptions are the options of a [TCPClient].
type TCPClientOptions struct {
	Messages
	Remote netip.AddrPort
	Local  netip.Addr // source address; zero leaves it to the kernel
	// Requests is how many go over a connection, with Keep; 0 is 1.
	Requests int
	// MaxOpen is how many connections may be open; 0 is 1024.
	MaxOpen int
	// ResponseTimeout in ns gives up a connection whose response does not come; 0 is 10 s.
	ResponseTimeout int64
	// Observe (optional) gets the time in ns from connect to established, and from a request's start to its response.
	Observe TCPObserver
}

// TCPObserver takes latencies.
type TCPObserver interface {
	Connected(ns int64)
	Responded(ns int64)
}

// TCPClient is one worker of the kernel's side of a TCP test: non-blocking connects, an epoll set, one registration for a
// connection. The handshake's last ACK waits for the request (TCP_DEFER_ACCEPT on a connecting socket, net/ipv4/tcp_input.c:
// tcp_rcv_synsent_state_process).
type TCPClient struct {
	o      TCPClientOptions
	p      *poller
	remote []byte
	local  []byte
	conns  []clientConn // by descriptor
	buf    []byte
	n      TCPCounts
	one    int32
	now    int64
	closed bool
}

// clientConn is one connection.
type clientConn struct {
	start int64 // ns: intended start of the connection, or of the request under way
	asked int64 // ns: when the request was sent, for the timeout
	got   int   // bytes of the response
	left  int   // requests to come
	state uint8
}

const (
	connFree uint8 = iota
	connConnecting
	connWaiting // for the response
	connClosing // for the server's FIN
)

// OpenTCPClient prepares a worker in the network namespace of the calling thread.
func OpenTCPClient(o TCPClientOptions) (c *TCPClient, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Requests > 1 && !o.Keep {
		return nil, errors.New("several requests on a connection need Keep")
	}
	o.Requests = max(o.Requests, 1)
	if o.MaxOpen <= 0 {
		o.MaxOpen = 1024
	}
	if o.ResponseTimeout <= 0 {
		o.ResponseTimeout = 10e9
	}
	files, err := fileLimit()
	if err != nil {
		return nil, err
	}
	if o.MaxOpen+64 > files {
		return nil, fmt.Errorf("%d connections need %d open files, and the limit is %d (ulimit -Hn)", o.MaxOpen, o.MaxOpen+64, files)
	}
	c = &TCPClient{o: o, remote: rawAddress(o.Remote), conns: make([]clientConn, files), buf: make([]byte, 256<<10), one: 1}
	if o.Local.IsValid() {
		c.local = rawAddress(netip.AddrPortFrom(o.Local, 0))
	}
	if c.p, err = newPoller(); err != nil {
		return nil, err
	}
	return c, nil
}

// Open starts a connection that was meant to start at the given time. It is false when as many as may be are open, or no
// port or descriptor is left, which is counted.
func (c *TCPClient) Open(intended, now int64) bool {
	c.now = now
	if int(c.n.Open) >= c.o.MaxOpen {
		return false
	}
	fd, e := nowSocket(family(c.o.Remote.Addr()), unix.SOCK_STREAM|unix.SOCK_NONBLOCK)
	if e != 0 || fd >= len(c.conns) {
		c.n.Skipped++
		return false
	}
	nowSetsockopt(fd, unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, &c.one)
	nowSetsockopt(fd, unix.IPPROTO_TCP, unix.TCP_NODELAY, &c.one)
	if c.local != nil {
		nowSetsockopt(fd, unix.SOL_IP, unix.IP_BIND_ADDRESS_NO_PORT, &c.one)
		if e := nowBind(fd, c.local); e != 0 {
			c.n.Skipped++
			nowClose(fd)
			return false
		}
	}
	e = nowConnect(fd, c.remote)
	c.n.Connects++
	if e == unix.EADDRNOTAVAIL { // no port is left
		c.n.Skipped++
		nowClose(fd)
		return false
	}
	k := &c.conns[fd]
	*k = clientConn{start: intended, left: c.o.Requests - 1, state: connConnecting, asked: now}
	c.n.Opened++
	c.n.Open++
	if e != 0 && e != unix.EINPROGRESS {
		c.end(fd, e)
		return true
	}
	if e := c.p.add(fd, unix.EPOLLIN|unix.EPOLLOUT|unix.EPOLLRDHUP|epollET); e != 0 {
		c.end(fd, e)
	}
	return true
}

// Turn waits at most ms milliseconds and handles what came. now is the time in ns of the clock that Open was given.
func (c *TCPClient) Turn(now int64, ms int) error {
	if c.closed {
		return ErrClosed
	}
	n, e := waitEpoll(c.p.epfd, c.p.events, ms)
	c.n.EpollWaits++
	if e != 0 && e != unix.EINTR {
		return fmt.Errorf("epoll_wait: %w", e)
	}
	c.now = now
	for i := range max(n, 0) {
		fd, events := int(c.p.events[i].Fd), c.p.events[i].Events
		if fd == c.p.waker.fd {
			c.p.waker.reset()
			continue
		}
		c.event(fd, events)
	}
	return nil
}

func (c *TCPClient) event(fd int, events uint32) {
	k := &c.conns[fd]
	if k.state == connConnecting && events&(unix.EPOLLOUT|unix.EPOLLERR|unix.EPOLLHUP) != 0 {
		if !c.ask(fd, k) {
			return
		}
		c.n.Established++
		if c.o.Observe != nil {
			c.o.Observe.Connected(c.now - k.start)
		}
	}
	if events&(unix.EPOLLIN|unix.EPOLLRDHUP|unix.EPOLLHUP|unix.EPOLLERR) != 0 && k.state != connFree {
		c.read(fd, k, events&unix.EPOLLRDHUP != 0)
	}
}

// ask sends a request, whole: it is far below a socket's buffer. False means that the connection is over.
func (c *TCPClient) ask(fd int, k *clientConn) bool {
	n, e := nowSend(fd, c.o.Request, unix.MSG_NOSIGNAL)
	c.n.Writes++
	switch {
	case e == unix.EAGAIN && k.state == connConnecting:
		return false // not yet connected
	case e != 0:
		c.end(fd, e)
		return false
	case n != len(c.o.Request):
		c.n.Other++
		c.close(fd, k)
		return false
	}
	k.state, k.got, k.asked = connWaiting, 0, c.now
	c.n.Requests++
	c.n.BytesOut += uint64(n)
	return true
}

func (c *TCPClient) read(fd int, k *clientConn, fin bool) {
	for {
		n, e := nowRead(fd, c.buf)
		c.n.Reads++
		switch {
		case e == unix.EAGAIN:
			return
		case e == unix.EINTR:
			continue
		case e != 0:
			c.end(fd, e)
			return
		case n == 0:
			if k.state == connClosing {
				c.n.Completed++
			} else {
				c.n.EarlyClose++
			}
			c.close(fd, k)
			return
		}
		c.n.BytesIn += uint64(n)
		if k.state != connWaiting || k.got+n > len(c.o.Response) || !bytes.Equal(c.buf[:n], c.o.Response[k.got:k.got+n]) {
			c.n.BadResponse++
			c.close(fd, k)
			return
		}
		if k.got += n; k.got < len(c.o.Response) {
			if n < len(c.buf) && !fin {
				return
			}
			continue
		}
		c.n.Responses++
		if c.o.Observe != nil {
			c.o.Observe.Responded(c.now - k.start)
		}
		switch {
		case k.left > 0:
			k.left--
			k.start = c.now
			if !c.ask(fd, k) {
				return
			}
			if !fin {
				return
			}
		case c.o.Keep: // as planned, the client closes
			c.n.Completed++
			c.close(fd, k)
			return
		case fin: // and here the server has
			c.n.Completed++
			c.close(fd, k)
			return
		default:
			k.state = connClosing
			return
		}
	}
}

// Expire gives up the connections that have waited too long. It looks at every descriptor, so it is for once a second or so.
func (c *TCPClient) Expire(now int64) {
	c.now = now
	for fd := range c.conns {
		if k := &c.conns[fd]; k.state != connFree && now-k.asked > c.o.ResponseTimeout {
			if k.state == connConnecting {
				c.n.TimedOut++
			} else {
				c.n.ResponseTimeout++
			}
			c.close(fd, k)
		}
	}
}

func (c *TCPClient) end(fd int, e unix.Errno) {
	c.n.failed(e)
	c.close(fd, &c.conns[fd])
}

func (c *TCPClient) close(fd int, k *clientConn) {
	k.state = connFree
	c.n.Open--
	c.n.Closes++
	nowClose(fd)
}

// Counts returns the running totals.
func (c *TCPClient) Counts() TCPCounts { return c.n }

// Wake ends the wait in progress, or the next one. It may be called from any goroutine until Close.
func (c *TCPClient) Wake() error { return c.p.waker.wake() }

// Close closes all connections. It must not run beside Turn.
func (c *TCPClient) Close() error {
	if c.closed {
		return nil
	}
	c.closed = true
	var errs []error
	for fd := range c.conns {
		if c.conns[fd].state != connFree {
			errs = append(errs, unix.Close(fd))
		}
	}
	return errors.Join(append(errs, c.p.close())...)
}
