// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Answer is what a probe found.
type Answer int

const (
	Unknown Answer = iota // could not tell: Finding.Why says what was in the way
	Yes
	No
)

func (a Answer) String() string { return name(int(a), "unknown", "yes", "no") }

// Finding is the outcome of one probe.
type Finding struct {
	Feature string // one of the Feature constants
	Answer  Answer
	Why     error // nil for Yes
}

// What Probe looks for.
const (
	FeatureSocket     = "af_xdp"       // AF_XDP sockets, and leave to make them
	FeatureUMEM       = "umem"         // 8 MiB of locked memory
	FeatureHugePages  = "huge_pages"   // a 2 MiB page reserved
	FeatureBind       = "bind"         // binding in copy mode
	FeatureNeedWakeup = "need_wakeup"  // XDP_USE_NEED_WAKEUP (Linux 5.4)
	FeatureMulti      = "multi_buffer" // XDP_USE_SG (Linux 6.6)
	FeatureTxBudget   = "tx_budget"    // XDP_MAX_TX_SKB_BUDGET (Linux 6.18)
	FeatureBusyPoll   = "busy_poll"    // SO_PREFER_BUSY_POLL (Linux 5.11), and leave to set it
	FeatureZeroCopy   = "zero_copy"    // zero-copy on this queue
)

// Probe finds out what AF_XDP can do on a queue of a device, by doing it: it opens sockets and closes them, one after the other. The queue must be free; what
// another socket's ownership hides is Unknown. No program is attached and no frame is moved, but zero-copy drivers may reset the queue
// when a socket binds. The device is looked up as by Open; lo does for all but zero-copy.
func Probe(device string, queue int) []Finding {
	small := Options{Device: device, Queue: queue, Bind: Copy, NoNeedWakeup: true, RxRing: 64, TxRing: 64, HugePages: HugeNever, BindTimeout: 5 * time.Second}
	with := func(change func(*Options)) error {
		o := small
		change(&o)
		s, err := Open(o)
		if err != nil {
			return err
		}
		return s.Close()
	}
	probes := []struct {
		feature string
		do      func() error
	}{
		{FeatureSocket, probeSocket},
		{FeatureUMEM, probeUMEM},
		{FeatureHugePages, func() error {
			u, err := NewUMEM(UMEMOptions{Frames: 1, HugePages: HugeRequire})
			if err != nil {
				return err
			}
			return u.Close()
		}},
		{FeatureBind, func() error { return with(func(*Options) {}) }},
		{FeatureNeedWakeup, func() error { return with(func(o *Options) { o.NoNeedWakeup = false }) }},
		{FeatureMulti, func() error { return with(func(o *Options) { o.MultiBuffer = true }) }},
		{FeatureTxBudget, func() error { return with(func(o *Options) { o.TxBudget, o.Strict = 64, true }) }},
		{FeatureBusyPoll, func() error { return with(func(o *Options) { o.Wait = BusyPoll }) }},
		{FeatureZeroCopy, func() error { return with(func(o *Options) { o.Bind = ZeroCopy }) }},
	}
	found := make([]Finding, 0, len(probes))
	for _, p := range probes {
		err := p.do()
		found = append(found, Finding{p.feature, answer(err), err})
	}
	return found
}

// answer sorts errors into those that mean "no" and those that only mean that the question was not answered.
func answer(err error) Answer {
	for _, no := range []error{ErrNotSupported, ErrNoZeroCopy, ErrDowngraded, ErrMemlock, ErrNoHugePages, unix.EPERM, unix.EACCES, unix.EOPNOTSUPP, unix.ENOPROTOOPT, unix.EINVAL} {
		if errors.Is(err, no) {
			if errors.Is(err, ErrNoQueue) {
				return Unknown
			}
			return No
		}
	}
	if err != nil {
		return Unknown
	}
	return Yes
}

func probeSocket() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return decodeSocket(err)
	}
	return unix.Close(fd)
}

func probeUMEM() error {
	u, err := NewUMEM(UMEMOptions{Frames: 2048, HugePages: HugeNever})
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errors.Join(decodeSocket(err), u.Close())
	}
	err = u.register(fd)
	if cerr := unix.Close(fd); cerr != nil {
		err = errors.Join(err, fmt.Errorf("close socket: %w", cerr))
	}
	return errors.Join(err, u.Close())
}
