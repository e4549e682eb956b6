// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// Open makes a socket and binds it to a queue. The device is looked up in the network namespace of the calling thread. With the queue in use it retries
// until Options.BindTimeout. Close the socket when done.
func Open(o Options) (*Socket, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if o.Device, o.Ifindex, err = findDevice(o.Device, o.Ifindex); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(o.BindTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		s, err := open(o)
		if err == nil {
			return s, nil
		}
		// A socket that failed to bind cannot be bound again, its UMEM belongs to a pool already: each try makes a new one.
		if !errors.Is(err, unix.EBUSY) || time.Now().Add(pause).After(deadline) {
			return nil, fmt.Errorf("open %s queue %d: %w", o.Device, o.Queue, err)
		}
		time.Sleep(pause)
	}
}

func findDevice(name string, index int) (string, int, error) {
	var ifi *net.Interface
	var err error
	if name != "" {
		ifi, err = net.InterfaceByName(name)
	} else {
		ifi, err = net.InterfaceByIndex(index)
		name = fmt.Sprintf("number %d", index)
	}
	if err != nil {
		return "", 0, fmt.Errorf("find device %s: %w", name, err)
	}
	if index != 0 && index != ifi.Index {
		return "", 0, &OptionError{"Ifindex", index, fmt.Sprintf("does not belong to Device %s, which is %d", name, ifi.Index)}
	}
	return ifi.Name, ifi.Index, nil
}

// open tries once.
func open(o Options) (s *Socket, err error) {
	s = &Socket{fd: -1, wake: -1, umem: o.UMEM}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.teardown(s.fd))
			s = nil
		}
	}()
	if s.umem == nil {
		u, err := NewUMEM(UMEMOptions{Frames: o.RxFrames + o.TxFrames, ChunkSize: o.ChunkSize, Headroom: o.Headroom, HugePages: o.HugePages})
		if err != nil {
			return s, err
		}
		s.umem, s.own = u, true
	}
	u := s.umem
	if s.member, err = u.take(o.RxFrames + o.TxFrames); err != nil {
		if s.own {
			err = errors.Join(err, u.Close())
		}
		s.umem = nil // nothing of it is ours
		return s, err
	}
	s.mem, s.chunk, s.chunkMask = u.mem[:u.size()], uint64(u.opts.ChunkSize), ^uint64(u.opts.ChunkSize-1)

	if s.fd, err = unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0); err != nil {
		s.fd = -1
		return s, decodeSocket(err)
	}
	if s.wake, err = unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK); err != nil {
		s.wake = -1
		return s, fmt.Errorf("make eventfd: %w", err)
	}
	s.mode = Mode{Device: o.Device, Ifindex: o.Ifindex, Queue: o.Queue, Requested: settings(o, u.opts)}
	s.mode.Obtained = s.mode.Requested

	u.mu.Lock() // from looking for a socket to share with until we are one
	defer u.mu.Unlock()
	share := u.sharer()
	if share >= 0 {
		if err = alike(o, u.first); err != nil {
			return s, err
		}
	}
	if err = s.setUp(o, share); err != nil {
		return s, err
	}
	if err = s.strict(o); err != nil {
		return s, err
	}
	s.member.fd = s.fd
	if share < 0 {
		u.first = s.mode.Obtained
	}
	return s, nil
}

// setUp makes the rings, fills the fill ring, binds, and reads back. share is a socket on the same UMEM, or -1.
func (s *Socket) setUp(o Options, share int) error {
	if share < 0 {
		if err := s.umem.register(s.fd); err != nil {
			return err
		}
	}
	if err := s.makeRings(o); err != nil {
		return err
	}
	base := uint64(s.member.first) * s.chunk
	s.tx.base, s.tx.bytes, s.tx.count = base+uint64(o.RxFrames)*s.chunk, uint64(o.TxFrames)*s.chunk, uint32(o.TxFrames)
	s.tx.free = newFrames(s.tx.base, o.TxFrames, int(s.chunk), o.Order)
	// Before the bind: zero-copy drivers fill their hardware ring while binding.
	s.rx.fill.populate(base, o.RxFrames, int(s.chunk))
	if err := s.setBusyPoll(o); err != nil {
		return err
	}
	s.mode.Obtained.TxBudget = kernelBudget
	if o.TxBudget > 0 && unix.SetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_MAX_TX_SKB_BUDGET, o.TxBudget) == nil {
		s.mode.Obtained.TxBudget = o.TxBudget
	}
	if err := s.bind(o, share); err != nil {
		return err
	}
	options, err := unix.GetsockoptInt(s.fd, unix.SOL_XDP, unix.XDP_OPTIONS) // struct xdp_options is one u32
	if err != nil {
		return fmt.Errorf("read bind mode: %w", err)
	}
	obtained := &s.mode.Obtained
	obtained.Bind = Copy
	if options&unix.XDP_OPTIONS_ZEROCOPY != 0 {
		obtained.Bind = ZeroCopy
	}
	obtained.SharedUMEM = share >= 0
	obtained.HugePages = HugeNever
	if s.umem.huge {
		obtained.HugePages = HugeRequire
	}
	s.rx.whole, s.rx.kick, s.rx.busy, s.rx.wait = o.MultiBuffer, !o.NoNeedWakeup, o.Wait == BusyPoll, o.Wait
	// Busy polling kicks always: the call is what makes the device send.
	s.tx.kick, s.tx.zeroCopy, s.tx.budget = !o.NoNeedWakeup && o.Wait != BusyPoll, obtained.Bind == ZeroCopy, uint32(obtained.TxBudget)
	return nil
}

// alike refuses a socket unlike those on its UMEM already: the kernel takes no flags for it, it would be like them in silence.
func alike(o Options, first Settings) error {
	switch {
	case o.Bind != Auto && o.Bind != first.Bind:
		return &OptionError{"Bind", o.Bind, fmt.Sprintf("must be Auto or like the others on the UMEM, %s", first.Bind)}
	case o.NoNeedWakeup == first.NeedWakeup:
		return &OptionError{"NoNeedWakeup", o.NoNeedWakeup, "must be like the others on the UMEM"}
	case o.MultiBuffer != first.MultiBuffer:
		return &OptionError{"MultiBuffer", o.MultiBuffer, "must be like the others on the UMEM"}
	}
	return nil
}

func (s *Socket) strict(o Options) error {
	if !o.Strict {
		return nil
	}
	m := s.mode
	if o.UMEM == nil && o.HugePages == HugeAuto && s.umem.size() >= hugePage {
		m.Requested.HugePages = HugeRequire
	}
	if d := m.Downgrades(); len(d) > 0 {
		return fmt.Errorf("%w: %q", ErrDowngraded, d)
	}
	return nil
}

func (s *Socket) bind(o Options, share int) error {
	sa := &unix.SockaddrXDP{Ifindex: uint32(o.Ifindex), QueueID: uint32(o.Queue)}
	if share >= 0 {
		// The kernel allows no other flag here: all sockets on a UMEM are like the first.
		sa.Flags, sa.SharedUmemFD = unix.XDP_SHARED_UMEM, uint32(share)
	} else {
		sa.Flags = bindFlags(o)
	}
	if err := unix.Bind(s.fd, sa); err != nil {
		return decodeBind(o, err)
	}
	return nil
}

func bindFlags(o Options) uint16 {
	var f uint16
	switch o.Bind {
	case Copy:
		f |= unix.XDP_COPY
	case ZeroCopy:
		f |= unix.XDP_ZEROCOPY
	}
	if !o.NoNeedWakeup {
		f |= unix.XDP_USE_NEED_WAKEUP
	}
	if o.MultiBuffer {
		f |= unix.XDP_USE_SG
	}
	return f
}

func (s *Socket) setBusyPoll(o Options) error {
	if o.Wait != BusyPoll {
		return nil
	}
	for _, opt := range []struct {
		name       string
		opt, value int
	}{
		{"SO_PREFER_BUSY_POLL", unix.SO_PREFER_BUSY_POLL, 1},
		{"SO_BUSY_POLL", unix.SO_BUSY_POLL, int(o.BusyPoll / time.Microsecond)},
		{"SO_BUSY_POLL_BUDGET", unix.SO_BUSY_POLL_BUDGET, o.BusyPollBudget},
	} {
		if err := unix.SetsockoptInt(s.fd, unix.SOL_SOCKET, opt.opt, opt.value); err != nil {
			if errors.Is(err, unix.ENOPROTOOPT) {
				return fmt.Errorf("busy polling: set %s: %w: %w", opt.name, ErrNotSupported, err)
			}
			return fmt.Errorf("busy polling: set %s: %w", opt.name, err)
		}
	}
	return nil
}
