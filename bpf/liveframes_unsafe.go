// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// From include/uapi/linux/bpf.h.
const (
	bpfProgTestRun     = 10
	testXDPLiveFrames  = 1 << 1
	interruptionSignal = unix.Signal(40) // a real-time signal nobody uses; the Go runtime has a handler for it that does nothing
)

// testRunAttr is the BPF_PROG_TEST_RUN part of union bpf_attr.
type testRunAttr struct {
	progFD      uint32
	retval      uint32
	dataSizeIn  uint32
	dataSizeOut uint32
	dataIn      uint64
	dataOut     uint64
	repeat      uint32
	duration    uint32
	ctxSizeIn   uint32
	ctxSizeOut  uint32
	ctxIn       uint64
	ctxOut      uint64
	flags       uint32
	cpu         uint32
	batchSize   uint32
	_           uint32
}

// runLive runs an XDP program on live frames. cilium/ebpf would start again on EINTR; here it is the way to end: an
// interrupted run is no error, and neither is one that made all its repeats.
func runLive(prog int, frame []byte, repeat, batch uint32) error {
	attr := testRunAttr{
		progFD: uint32(prog), dataIn: uint64(uintptr(unsafe.Pointer(&frame[0]))), dataSizeIn: uint32(len(frame)),
		repeat: repeat, batchSize: batch, flags: testXDPLiveFrames,
	}
	// Not RawSyscall: the runtime must know that this thread is away, or the garbage collector would wait for it.
	_, _, errno := unix.Syscall(unix.SYS_BPF, bpfProgTestRun, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr))
	runtime.KeepAlive(frame)
	runtime.KeepAlive(&attr)
	if errno == 0 || errno == unix.EINTR {
		return nil
	}
	return fmt.Errorf("run program on live frames: %w", errno)
}

// interruptible is the calling thread with all signals blocked but one, so that only interrupt ends its system calls
// early: not the runtime's own SIGURG, nor signals sent to the process.
type interruptible struct {
	pid, tid int
	old      unix.Sigset_t
}

func newInterruptible() (*interruptible, error) {
	runtime.LockOSThread()
	t := &interruptible{pid: unix.Getpid(), tid: unix.Gettid()}
	var block unix.Sigset_t
	for i := range block.Val {
		block.Val[i] = ^block.Val[i]
	}
	width := uint(unsafe.Sizeof(block.Val[0])) * 8
	// Those a thread brings on itself would end the process if they were blocked.
	for _, s := range []unix.Signal{interruptionSignal, unix.SIGSEGV, unix.SIGBUS, unix.SIGFPE, unix.SIGILL, unix.SIGTRAP, unix.SIGSYS} {
		block.Val[uint(s-1)/width] &^= 1 << (uint(s-1) % width)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &block, &t.old); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("block signals: %w", err)
	}
	return t, nil
}

// interrupt ends the system call the thread is in. The thread exists as long as restore was not called.
func (t *interruptible) interrupt() {
	// ESRCH and EAGAIN are the only errors left: the caller tries again.
	_ = unix.Tgkill(t.pid, t.tid, interruptionSignal)
}

// restore must be called on the thread itself, after the last interrupt.
func (t *interruptible) restore() error {
	defer runtime.UnlockOSThread()
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &t.old, nil); err != nil {
		return fmt.Errorf("restore signals: %w", err)
	}
	return nil
}
