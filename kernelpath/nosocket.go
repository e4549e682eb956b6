// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// ForeignMAC is a destination address that is no test host's. A promiscuous device takes frames to it, AF_PACKET sees them,
// and ip_rcv drops the kernel's own copy at once.
const ForeignMAC = "02:74:70:00:00:fe"

// NoSocketOptions are the options of a [NoSocket] receiver.
type NoSocketOptions struct {
	Interface string        // device that counts; required
	Timeout   time.Duration // how long one Receive sleeps, whole milliseconds; 0 means DefaultTimeout
}

// NoSocket is the receiver of "64 bytes at line rate" (S3): nobody reads. The device is promiscuous, the driver and the
// stack take each frame as far as it goes, and the device's own rx_packets is the count, which the caller takes.
//
// How far a frame goes depends on its destination MAC address. To a foreign address, as in S3, ip_rcv drops it as not for
// this host, before it looks at anything: the cheapest end there is. To the host's own address it goes through routing and
// UDP's socket lookup, counts as NoPorts, and ICMP answers some. See the tests for both.
type NoSocket struct {
	o       NoSocketOptions
	fd      int
	waker   *waker
	poll    [1]unix.PollFd
	timeout unix.Timespec
	sleeps  uint64
	closed  bool
}

// OpenNoSocket makes a device in the network namespace of the calling thread promiscuous until Close, or until the process
// ends.
func OpenNoSocket(o NoSocketOptions) (r *NoSocket, err error) {
	if o.Interface == "" {
		return nil, errors.New("options: Interface: a device name is required")
	}
	if err := completeTimeout(&o.Timeout); err != nil {
		return nil, err
	}
	r = &NoSocket{o: o, fd: -1}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.Close())
			r = nil
		}
	}()
	ifindex, err := interfaceIndex(o.Interface)
	if err != nil {
		return r, err
	}
	if r.waker, err = newWaker(); err != nil {
		return r, err
	}
	// Protocol 0: no tap is registered, so no frame is queued here or costs anything more.
	if r.fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		r.fd = -1
		return r, explain("open packet socket", err)
	}
	if err = promiscuous(r.fd, ifindex); err != nil {
		return r, err
	}
	r.poll[0] = unix.PollFd{Fd: int32(r.waker.fd), Events: unix.POLLIN}
	return r, nil
}

// Receive sleeps for the timeout, or until Wake, and never lends anything.
func (r *NoSocket) Receive([][]byte) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	r.timeout = unix.NsecToTimespec(r.o.Timeout.Nanoseconds())
	n, err := unix.Ppoll(r.poll[:], &r.timeout, nil)
	r.sleeps++
	if err != nil && err != unix.EINTR {
		return 0, fmt.Errorf("ppoll: %w", err)
	}
	if err == nil && n > 0 {
		r.waker.reset()
	}
	return 0, nil
}

// Release has nothing to give back.
func (r *NoSocket) Release() error { return nil }

// Queued is always 0: there is no queue.
func (r *NoSocket) Queued() (uint64, error) {
	if r.closed {
		return 0, ErrClosed
	}
	return 0, nil
}

// Counters returns what little there is; the count of frames is the device's.
func (r *NoSocket) Counters() map[string]uint64 {
	return map[string]uint64{"syscalls.poll": r.sleeps}
}

// Effective returns what was obtained.
func (r *NoSocket) Effective() Effective {
	return Effective{Receiver: "nosocket", Wait: WaitBlock, Timeout: r.o.Timeout, Promiscuous: true}
}

// Wake ends the sleep in progress, or the next one. It may be called from any goroutine until Close.
func (r *NoSocket) Wake() error { return r.waker.wake() }

// Close ends promiscuous mode. It must not run beside Receive: Wake first, and wait for Receive to return.
func (r *NoSocket) Close() (err error) {
	if r.closed {
		return nil
	}
	r.closed = true
	if r.fd >= 0 {
		err = errors.Join(err, unix.Close(r.fd))
	}
	if r.waker != nil {
		err = errors.Join(err, r.waker.close())
	}
	return err
}
