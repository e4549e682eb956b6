// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// peerName is where a datagram came from, as the kernel writes it and takes it again: nothing here looks inside.
type peerName struct {
	raw unix.RawSockaddrInet6 // the longer of the two
	len uint32
}

const peerNameLen = uint32(unsafe.Sizeof(unix.RawSockaddrInet6{}))

// pointer is the address for a message header.
func (p *peerName) pointer() *byte { return (*byte)(unsafe.Pointer(&p.raw)) }

// nowRecvfrom receives one datagram and its sender from a non-blocking socket.
func nowRecvfrom(fd int, b []byte, from *peerName) (int, unix.Errno) {
	from.len = peerNameLen
	n, _, e := unix.RawSyscall6(unix.SYS_RECVFROM, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT,
		uintptr(unsafe.Pointer(&from.raw)), uintptr(unsafe.Pointer(&from.len)))
	return int(n), e
}

// nowReplyto sends one datagram to where another came from, without waiting for room.
func nowReplyto(fd int, b []byte, to *peerName) unix.Errno {
	_, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(len(b)), unix.MSG_DONTWAIT,
		uintptr(unsafe.Pointer(&to.raw)), uintptr(to.len))
	return e
}

// nowReplymmsg sends messages without waiting for room.
func nowReplymmsg(fd int, v []unix.Mmsghdr) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)), unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}
