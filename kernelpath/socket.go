// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"golang.org/x/sys/unix"
)

// Limits and defaults of all receivers.
const (
	DefaultTimeout = 10 * time.Millisecond
	DefaultBatch   = 64       // recvmmsg gains little beyond: the call's own cost is 1/64 of a few hundred ns
	DefaultRcvbuf  = 64 << 20 // bytes asked for, and twice that granted: about 30,000 datagrams that came as XDP frames, each charged a page and more
	MaxBatch       = 1024     // UIO_MAXIOV, the kernel's limit for one recvmmsg
)

// Socket says how a UDP socket is opened. It is part of the options of every UDP receiver.
type Socket struct {
	Local     netip.AddrPort // address and port to bind, IPv4 or IPv6; required
	Timeout   time.Duration  // the longest one Receive waits, whole milliseconds; 0 means DefaultTimeout
	Batch     int            // packets one Receive lends at most; 0 means DefaultBatch
	Buffer    int            // bytes of one receive buffer; longer datagrams are cut and counted; 0 means 4096
	Rcvbuf    int            // SO_RCVBUF to ask for, bytes; 0 means DefaultRcvbuf
	ReusePort bool           // share the port with other sockets of the same user (SO_REUSEPORT)
}

func (o *Socket) complete() error {
	if !o.Local.IsValid() {
		return errors.New("options: Local: an address and port to bind is required")
	}
	if o.Local.Addr().Is4In6() {
		return fmt.Errorf("options: Local: %s is IPv4 in IPv6 form: use plain IPv4", o.Local)
	}
	if o.Batch == 0 {
		o.Batch = DefaultBatch
	}
	if o.Buffer == 0 {
		o.Buffer = 4096
	}
	if o.Rcvbuf == 0 {
		o.Rcvbuf = DefaultRcvbuf
	}
	if err := completeTimeout(&o.Timeout); err != nil {
		return err
	}
	switch {
	case o.Batch < 1 || o.Batch > MaxBatch:
		return fmt.Errorf("options: Batch: %d is not within 1..%d", o.Batch, MaxBatch)
	case o.Buffer < 1 || o.Buffer > 1<<16:
		return fmt.Errorf("options: Buffer: %d bytes is not within 1..65536", o.Buffer)
	case o.Rcvbuf < 1 || o.Rcvbuf > 1<<30:
		return fmt.Errorf("options: Rcvbuf: %d bytes is not within 1..%d", o.Rcvbuf, 1<<30)
	}
	return nil
}

func completeTimeout(d *time.Duration) error {
	if *d == 0 {
		*d = DefaultTimeout
	}
	if *d < time.Millisecond || *d > time.Hour || *d%time.Millisecond != 0 {
		return fmt.Errorf("options: Timeout: %v is not a whole number of milliseconds within 1ms..1h", *d)
	}
	return nil
}

// socket is a bound UDP socket and the witness of what it dropped.
type socket struct {
	fd      int
	local   netip.AddrPort
	asked   int // SO_RCVBUF, bytes
	rcvbuf  int
	forced  bool
	dropped wrapping
}

func openSocket(o *Socket, flags int) (s *socket, err error) {
	family := unix.AF_INET
	if o.Local.Addr().Is6() {
		family = unix.AF_INET6
	}
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|flags, unix.IPPROTO_UDP)
	if err != nil {
		return nil, explain("open UDP socket", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, unix.Close(fd))
		}
	}()
	s = &socket{fd: fd, asked: o.Rcvbuf}
	if family == unix.AF_INET6 {
		if err := unix.SetsockoptInt(fd, unix.SOL_IPV6, unix.IPV6_V6ONLY, 1); err != nil {
			return nil, explain("set IPV6_V6ONLY", err)
		}
	}
	if o.ReusePort {
		if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
			return nil, explain("set SO_REUSEPORT", err)
		}
	}
	if err := s.setRcvbuf(o.Rcvbuf); err != nil {
		return nil, err
	}
	sa, err := sockaddr(o.Local)
	if err != nil {
		return nil, err
	}
	if err := unix.Bind(fd, sa); err != nil {
		return nil, explain(fmt.Sprintf("bind UDP %s", o.Local), err)
	}
	if s.local, err = localAddr(fd, o.Local); err != nil {
		return nil, err
	}
	return s, nil
}

// setRcvbuf asks for n bytes past rmem_max, which needs CAP_NET_ADMIN, then within it; what came of it is in rcvbuf.
func (s *socket) setRcvbuf(n int) (err error) {
	s.forced = unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, n) == nil
	if !s.forced {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF, n); err != nil {
			return explain("set SO_RCVBUF", err)
		}
	}
	if s.rcvbuf, err = unix.GetsockoptInt(s.fd, unix.SOL_SOCKET, unix.SO_RCVBUF); err != nil {
		return explain("get SO_RCVBUF", err)
	}
	return nil
}

// drops returns the datagrams this socket refused so far, mostly for want of buffer space. SO_RXQ_OVFL is no substitute:
// it travels with datagrams and so misses every drop after the last one delivered.
func (s *socket) drops() (uint64, error) {
	info, err := meminfo(s.fd)
	if err != nil {
		return 0, explain("get SO_MEMINFO", err)
	}
	return s.dropped.see(info[unix.SK_MEMINFO_DROPS]), nil
}

func (s *socket) effective(e Effective) Effective {
	e.Local, e.RcvbufAsked, e.Rcvbuf, e.RcvbufForced = s.local, s.asked, s.rcvbuf, s.forced
	return e
}

// wrapping extends a 32-bit kernel counter to 64 bits. It must be read at least once every 2^32 events.
type wrapping struct {
	total uint64
	last  uint32
}

func (w *wrapping) see(v uint32) uint64 {
	w.total += uint64(v - w.last)
	w.last = v
	return w.total
}

func sockaddr(a netip.AddrPort) (unix.Sockaddr, error) {
	if a.Addr().Is4() {
		return &unix.SockaddrInet4{Port: int(a.Port()), Addr: a.Addr().As4()}, nil
	}
	sa := &unix.SockaddrInet6{Port: int(a.Port()), Addr: a.Addr().As16()}
	if zone := a.Addr().Zone(); zone != "" {
		ifi, err := interfaceIndex(zone)
		if err != nil {
			return nil, err
		}
		sa.ZoneId = uint32(ifi)
	}
	return sa, nil
}

func localAddr(fd int, asked netip.AddrPort) (netip.AddrPort, error) {
	sa, err := unix.Getsockname(fd)
	if err != nil {
		return netip.AddrPort{}, explain("get socket name", err)
	}
	port := asked.Port()
	switch sa := sa.(type) {
	case *unix.SockaddrInet4:
		port = uint16(sa.Port)
	case *unix.SockaddrInet6:
		port = uint16(sa.Port)
	}
	return netip.AddrPortFrom(asked.Addr(), port), nil
}
