// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The calls of a TCP worker, none of which sleeps but epoll_wait. As on the UDP path they do not tell the scheduler.

func nowAccept(fd int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(fd), 0, 0, unix.SOCK_NONBLOCK, 0, 0)
	return int(n), e
}

func nowSend(fd int, p []byte, flags int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), uintptr(flags), 0, 0)
	return int(n), e
}

func nowClose(fd int) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0)
	return e
}

func nowSocket(family, kind int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_SOCKET, uintptr(family), uintptr(kind), 0)
	return int(n), e
}

// nowConnect and nowBind take an address as the kernel has it (rawAddress).
func nowConnect(fd int, a []byte) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(len(a)))
	return e
}

func nowBind(fd int, a []byte) unix.Errno {
	_, _, e := unix.RawSyscall(unix.SYS_BIND, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(a))), uintptr(len(a)))
	return e
}

func nowEpollAdd(epfd, fd int, events uint32, data *unix.EpollEvent) unix.Errno {
	data.Events, data.Fd = events, int32(fd)
	_, _, e := unix.RawSyscall6(unix.SYS_EPOLL_CTL, uintptr(epfd), unix.EPOLL_CTL_ADD, uintptr(fd), uintptr(unsafe.Pointer(data)), 0, 0)
	return e
}

// nowSetsockopt sets an option whose value is one int.
func nowSetsockopt(fd, level, name int, value *int32) unix.Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(name), uintptr(unsafe.Pointer(value)), 4, 0)
	return e
}
