// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Side is one end of the cable: a device, its addresses, and the network namespace it lives in.
// Its methods may be called from any goroutine until the rig is closed.
type Side struct {
	Role  string           // "sut" or "peer"
	Name  string           // interface name inside the namespace
	Index int              // interface index inside the namespace
	MAC   net.HardwareAddr // of this end
	IPv4  netip.Prefix     // 198.18.0.1/24 (SUT) or 198.18.0.2/24 (peer): RFC 2544's block
	IPv6  netip.Prefix     // 2001:2::1/64 (SUT) or 2001:2::2/64 (peer): RFC 5180's block

	ns       *os.File
	mu       sync.Mutex
	requests chan launch // nil until the launcher runs; closed by stop
	ended    chan struct{}
	children []int // pidfds of what Start started
	stopped  bool  // no more children
	closed   bool  // no namespace
}

// launch asks the launcher thread to start a command.
type launch struct {
	cmd   *exec.Cmd
	cpus  []int
	reply chan error
}

// ErrClosed is returned by the methods of a side whose rig has been closed.
var ErrClosed = fmt.Errorf("rig: %w", os.ErrClosed)

// newSide returns the side with the addresses of its role; ns becomes the side's.
func newSide(role string, ns *os.File) *Side {
	s := &Side{Role: role, Name: role + "0", ns: ns}
	n := byte(1)
	if role == rolePeer {
		n = 2
	}
	// Locally administered address (bit 1 of the first byte), "tp" for twopath.
	s.MAC = net.HardwareAddr{2, 't', 'p', 0, 0, n}
	s.IPv4 = netip.PrefixFrom(netip.AddrFrom4([4]byte{198, 18, 0, n}), 24)
	s.IPv6 = netip.PrefixFrom(netip.AddrFrom16([16]byte{0x20, 0x01, 0, 2, 15: n}), 64)
	return s
}

// addresses lists the side's test addresses of the families this kernel has.
func (s *Side) addresses() []netip.Prefix {
	if !hasIPv6() {
		return []netip.Prefix{s.IPv4}
	}
	return []netip.Prefix{s.IPv4, s.IPv6}
}

// PeerAddresses are the test addresses of the peer's side, on whichever host it is.
func PeerAddresses() (v4, v6 netip.Addr) {
	s := newSide(rolePeer, nil)
	return s.IPv4.Addr(), s.IPv6.Addr()
}

const (
	roleSUT  = "sut"
	rolePeer = "peer"
)

// Namespace returns the side's network namespace. The file belongs to the side and is closed with the rig.
func (s *Side) Namespace() *os.File { return s.ns }

// Do runs fn in the side's network namespace, on an OS thread that ends afterwards, and returns what fn returns.
// Goroutines that fn starts run elsewhere. /proc/sys/net follows the thread, but /proc/net and /sys do not:
// use /proc/thread-self/net, netlink, or ethtool instead.
func (s *Side) Do(fn func() error) error {
	s.mu.Lock()
	ns, closed := s.ns, s.closed
	s.mu.Unlock()
	if closed {
		return ErrClosed
	}
	return onThreadIn(ns, fn)
}

// Start starts cmd inside the side's network namespace, on the given CPUs (all of the controller's when cpus is empty).
// The child is killed when this process dies, however it dies, and when the rig is closed: it is started from a thread
// that lives as long as the side, since the kernel sends Pdeathsig when the parent's *thread* ends (prctl(2)).
// cmd.SysProcAttr is kept; its Pdeathsig is set to SIGKILL.
func (s *Side) Start(cmd *exec.Cmd, cpus []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return ErrClosed
	}
	if s.requests == nil {
		if err := s.launcher(); err != nil {
			return err
		}
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	l := launch{cmd, cpus, make(chan error, 1)}
	s.requests <- l
	if err := <-l.reply; err != nil {
		return fmt.Errorf("start %s on the %s side: %w", cmd.Path, s.Role, err)
	}
	s.children = append(s.children, pidfd(cmd.Process.Pid))
	return nil
}

// pidfd returns a descriptor to wait for the process with, or -1 when it has been waited for already.
func pidfd(pid int) int {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1
	}
	return fd
}

// launcher starts the thread that children are forked from. The runtime does not create threads from a locked one,
// so only children inherit its namespace and affinity.
func (s *Side) launcher() error {
	requests, ended, entered := make(chan launch), make(chan struct{}), make(chan error, 1)
	goOnThread(func() {
		defer close(ended)
		if err := unix.Setns(int(s.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			entered <- fmt.Errorf("enter network namespace: %w", err)
			return
		}
		entered <- nil
		for l := range requests {
			l.reply <- startOn(l.cmd, l.cpus)
		}
	})
	if err := <-entered; err != nil {
		return err
	}
	s.requests, s.ended = requests, ended
	return nil
}

// startOn starts cmd from the calling thread, which is lent the child's affinity for the time of the fork: set before
// exec, the child's own runtime sees no other CPUs.
func startOn(cmd *exec.Cmd, cpus []int) error {
	if len(cpus) == 0 {
		return cmd.Start()
	}
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		return fmt.Errorf("read affinity: %w", err)
	}
	if err := pin(0, cpus); err != nil {
		return err
	}
	err := cmd.Start()
	if back := unix.SchedSetaffinity(0, &own); back != nil {
		err = errors.Join(err, fmt.Errorf("restore affinity: %w", back))
	}
	return err
}

// stop ends the launcher thread, which has the kernel kill the children, and waits until they have ended: a device is
// given back only when nobody uses it any more. Reaping them (cmd.Wait) stays with who started them.
func (s *Side) stop() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped {
		return nil
	}
	s.stopped = true
	if s.requests != nil {
		close(s.requests)
		<-s.ended
	}
	var errs []error
	deadline := time.Now().Add(2 * time.Second)
	for _, fd := range s.children {
		if fd >= 0 {
			errs = append(errs, waitEnd(fd, deadline), unix.Close(fd))
		}
	}
	s.children = nil
	return errors.Join(errs...)
}

// waitEnd waits until the process of a pidfd has ended.
func waitEnd(fd int, deadline time.Time) error {
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, max(0, int(time.Until(deadline).Milliseconds())))
		switch {
		case err == unix.EINTR:
		case err != nil:
			return fmt.Errorf("wait for a child: %w", err)
		case n == 0:
			return errors.New("a killed child has not ended after 2 s")
		default:
			return nil
		}
	}
}

// close lets go of the namespace.
func (s *Side) close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return s.ns.Close()
}
