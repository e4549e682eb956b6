// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// WaitMode is what Wait does when the RX ring is empty.
type WaitMode int

const (
	Spin     WaitMode = iota // read the ring over and over: lowest latency, a core to itself
	Poll                     // sleep in poll(2): the core is free for others, each wake-up costs
	BusyPoll                 // drive the device's NAPI from this thread (SO_PREFER_BUSY_POLL)
)

func (m WaitMode) String() string { return name(int(m), "spin", "poll", "busypoll") }

// Event is why Wait returned without error.
type Event int

const (
	Ready    Event = iota // the RX ring has something
	TimedOut              // it has not
	Woken                 // Wake was called
)

func (e Event) String() string { return name(int(e), "ready", "timed out", "woken") }

// checkEvery bounds one poll(2): a socket whose device was deleted is woken once, with no event to see (xsk_notifier, xsk_poll), so look now and then.
const checkEvery = 500 * time.Millisecond

// Wait returns when Receive would find something, after timeout, or after a Wake; timeout < 0 means no limit. At the latest every half second, and
// before it reports a timeout, it asks whether the socket is still alive, and returns ErrNetDown or ErrUnbound if not.
func (s *Socket) Wait(timeout time.Duration) (Event, error) {
	if s.takeWake() {
		s.rx.n.Wakeups++
		return Woken, nil
	}
	if s.rx.ring.queued() > 0 {
		return Ready, nil
	}
	s.rx.n.Waits++
	if s.fd < 0 {
		return TimedOut, fmt.Errorf("wait: %w", ErrClosed)
	}
	start := time.Now()
	for {
		slice := checkEvery
		if timeout >= 0 {
			slice = min(slice, max(timeout-time.Since(start), 0))
		}
		var ev Event
		var err error
		if s.rx.wait == Poll {
			ev, err = s.sleep(slice)
		} else {
			ev, err = s.spin(slice)
		}
		if err != nil {
			return ev, err
		}
		if ev == TimedOut {
			if err := s.Alive(); err != nil {
				return TimedOut, fmt.Errorf("wait: %w", err)
			}
			if timeout < 0 || time.Since(start) < timeout {
				continue
			}
			s.rx.n.Timeouts++
		}
		if ev == Woken {
			s.rx.n.Wakeups++
		}
		return ev, nil
	}
}

// spin reads the ring until it has something. Busy polling calls the kernel each time round, which is what delivers; spinning only looks at the clock
// every 128 times, a fraction of a microsecond.
func (s *Socket) spin(timeout time.Duration) (Event, error) {
	start := time.Now()
	for i := uint(1); ; i++ {
		if s.rx.ring.queued() > 0 {
			return Ready, nil
		}
		if s.rx.busy || s.rx.kick && s.rx.fill.wakeup() {
			if err := s.kickRx(); err != nil {
				return TimedOut, err
			}
		} else if i%128 != 0 {
			continue
		}
		if s.takeWake() {
			return Woken, nil
		}
		if time.Since(start) >= timeout {
			return TimedOut, nil
		}
	}
}

// sleep waits in poll(2) for the socket or the wake-up eventfd.
func (s *Socket) sleep(timeout time.Duration) (Event, error) {
	start := time.Now()
	for {
		s.polled = [2]unix.PollFd{{Fd: int32(s.fd), Events: unix.POLLIN}, {Fd: int32(s.wake), Events: unix.POLLIN}}
		ts := unix.NsecToTimespec(max(timeout-time.Since(start), 0).Nanoseconds())
		n, err := unix.Ppoll(s.polled[:], &ts, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			s.rx.n.EINTR++
			continue
		case err != nil:
			return TimedOut, fmt.Errorf("poll: %w", err)
		case s.polled[1].Revents != 0 && s.takeWake():
			return Woken, nil
		case s.rx.ring.queued() > 0:
			return Ready, nil
		case n == 0 || s.polled[0].Revents&^unix.POLLIN != 0:
			return TimedOut, nil
		}
	}
}

// kickRx calls recvfrom: it wakes the driver, or busy-polls it once.
func (s *Socket) kickRx() error {
	for {
		s.rx.n.Kicks++
		switch errno := sysRecv(s.fd); errno {
		case 0, unix.EAGAIN:
			return nil
		case unix.EINTR:
			s.rx.n.EINTR++
		default:
			s.rx.n.KickErrors++
			return socketError("receive", errno)
		}
	}
}

// Wake ends the Wait that is going on, or else the next one, with Woken. It may be called from any goroutine.
func (s *Socket) Wake() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return fmt.Errorf("wake: %w", ErrClosed)
	}
	// The flag before the eventfd, both under the lock: whoever finds the eventfd readable finds the flag set.
	s.woken.Store(true)
	one := [8]byte{}
	binary.NativeEndian.PutUint64(one[:], 1)
	if _, err := unix.Write(s.wake, one[:]); err != nil {
		return fmt.Errorf("wake: %w", err)
	}
	return nil
}

// takeWake reports, once, that Wake was called.
func (s *Socket) takeWake() bool {
	if !s.woken.Load() {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return false
	}
	_, _ = unix.Read(s.wake, s.wakeBuf[:]) // resets it to 0
	return s.woken.Swap(false)
}

// Alive asks the kernel whether the socket is bound and its device up: nil, ErrUnbound, ErrNetDown or ErrClosed.
func (s *Socket) Alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	switch errno := sysRecv(s.fd); errno {
	case unix.EAGAIN, unix.EINTR, unix.ENOBUFS: // ENOBUFS: bound, without an RX ring
		return nil
	default:
		return socketError("check", errno)
	}
}

func name(i int, names ...string) string {
	if i < 0 || i >= len(names) {
		return fmt.Sprintf("unknown(%d)", i)
	}
	return names[i]
}
