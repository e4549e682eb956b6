// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// stalledSocket is a socket whose kernel takes every kick and does nothing: a datagram socket stands in for it.
func stalledSocket(t *testing.T) *modelSocket {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fds[0]); unix.Close(fds[1]) })
	if err := unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_SNDBUF, 1); err != nil { // the kernel's least, full after a few
		t.Fatal(err)
	}
	m := heapSocket(t, 128, 0)
	m.fd = fds[0]
	descs := make([]Desc, 100)
	if m.Submit(descs[:m.Reserve(descs)]) != 100 {
		t.Fatal("not submitted")
	}
	return m
}

// Kick and Flush end, whatever the kernel does or does not.
func TestKickIsBounded(t *testing.T) {
	m := stalledSocket(t)
	if err := m.Kick(); err != nil {
		t.Fatal(err)
	}
	if kicks := m.TxCounters().Kicks; kicks < 4 || kicks > 100/kernelBudget+extraKicks {
		t.Errorf("%d kicks for 100 frames that do not move", kicks)
	}
	err := m.Flush(5 * time.Millisecond)
	if !errors.Is(err, ErrStalled) || !strings.Contains(err.Error(), "100") {
		t.Errorf("flush: %v", err)
	}
	if c := m.TxCounters(); c.EAGAIN == 0 {
		t.Errorf("the stand-in's buffer is full, EAGAIN expected: %+v", c)
	}
}

func TestKickHonoursWakeupFlag(t *testing.T) {
	m := stalledSocket(t)
	m.tx.kick = true
	if err := m.Kick(); err != nil || m.TxCounters().Kicks != 0 || m.TxCounters().KicksSpared != 1 {
		t.Errorf("driver awake: %v, %+v", err, m.TxCounters())
	}
	m.tx.ring.flags.Store(unix.XDP_RING_NEED_WAKEUP)
	if err := m.Kick(); err != nil || m.TxCounters().Kicks == 0 {
		t.Errorf("driver asleep: %v, %+v", err, m.TxCounters())
	}
}

// A zero-copy driver is called once, and also when it owes completions only.
func TestKickZeroCopy(t *testing.T) {
	m := stalledSocket(t)
	m.tx.zeroCopy = true
	m.kernel().takeTx(100)
	if err := m.Kick(); err != nil || m.TxCounters().Kicks != 1 {
		t.Errorf("%v, %+v", err, m.TxCounters())
	}
}

func TestReceiveHonoursWakeupFlag(t *testing.T) {
	m := stalledSocket(t)
	m.rx.kick = true
	descs := make([]Desc, 4)
	m.Receive(descs)
	if m.RxCounters().Kicks != 0 {
		t.Error("kicked a driver that is awake")
	}
	m.rx.fill.flags.Store(unix.XDP_RING_NEED_WAKEUP)
	m.Receive(descs)
	if c := m.RxCounters(); c.Kicks != 1 || c.EmptyPolls != 2 {
		t.Errorf("%+v", c)
	}
}

func TestSocketErrors(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{unix.ENETDOWN: ErrNetDown, unix.ENXIO: ErrUnbound, unix.EBADF: os.ErrClosed, unix.EIO: unix.EIO} {
		err := socketError("send", errno)
		if !errors.Is(err, want) || !errors.Is(err, errno) || !strings.HasPrefix(err.Error(), "send: ") {
			t.Errorf("%v: %v", errno, err)
		}
	}
	if err := socketError("send", 0); err != nil {
		t.Errorf("no error: %v", err)
	}
	m := stalledSocket(t)
	m.fd = int(os.Stdin.Fd()) // no socket at all
	if err := m.Kick(); !errors.Is(err, unix.ENOTSOCK) || m.TxCounters().Failed != 1 {
		t.Errorf("kick: %v, %+v", err, m.TxCounters())
	}
}
