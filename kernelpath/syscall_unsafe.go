// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"net/netip"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// All calls on the data path use RawSyscall, those that sleep too. Syscall tells the scheduler, which takes the processor
// away from a thread that sleeps longer than 20 us and makes it queue for another when it wakes: at 400,000 datagrams/s a
// receiver then costs 1.2-1.3 us each, with RawSyscall 0.8-0.9, which is what the same loop costs in C. The price would be
// a runtime that cannot stop this thread while it sleeps; but stopping means a signal, a signal ends every wait used here
// (EINTR, signal(7): poll, epoll_wait and sockets with a timeout are never restarted), and Receive returns.

// nowRead reads one datagram from a non-blocking socket.
func nowRead(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return int(n), e
}

// nowRecvmmsg receives what is queued. The timeout argument of recvmmsg is never used: it is only looked at after a
// datagram has arrived (recvmmsg(2), BUGS).
func nowRecvmmsg(fd int, v []unix.Mmsghdr) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)),
		unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

// waitRecvmmsg waits for the first datagram at most SO_RCVTIMEO, then takes what is queued.
func waitRecvmmsg(fd int, v []unix.Mmsghdr) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_RECVMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)),
		unix.MSG_WAITFORONE, 0, 0)
	return int(n), e
}

// nowWrite sends one datagram on a connected socket. On a blocking one it sleeps while the socket's buffer is full.
func nowWrite(fd int, p []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	return int(n), e
}

// nowSendto sends one datagram to a raw socket address.
func nowSendto(fd int, p, to []byte) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0,
		uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(len(to)))
	return int(n), e
}

// nowSendmmsg sends messages in order and returns how many were sent before the first error, which is then not told.
func nowSendmmsg(fd int, v []unix.Mmsghdr) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDMMSG, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(v))), uintptr(len(v)), 0, 0, 0)
	return int(n), e
}

// nowKick makes an AF_PACKET socket send what its TX ring holds, without waiting until the device is done with it.
func nowKick(fd int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return int(n), e
}

// rawAddress is a as struct sockaddr_in or sockaddr_in6.
func rawAddress(a netip.AddrPort) []byte {
	port := htons(a.Port())
	if a.Addr().Is4() {
		sa := unix.RawSockaddrInet4{Family: unix.AF_INET, Port: port, Addr: a.Addr().As4()}
		return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&sa)), unsafe.Sizeof(sa)))
	}
	sa := unix.RawSockaddrInet6{Family: unix.AF_INET6, Port: port, Addr: a.Addr().As16()}
	return slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&sa)), unsafe.Sizeof(sa)))
}

// segmentMessage makes the header of a UDP_SEGMENT control message in c.
func segmentMessage(c []byte) {
	h := (*unix.Cmsghdr)(unsafe.Pointer(unsafe.SliceData(c)))
	h.Level, h.Type = unix.SOL_UDP, unix.UDP_SEGMENT
	h.SetLen(unix.CmsgLen(2))
}

// txStatus is the word through which the kernel and the sender hand a TPACKET_V2 frame to each other, the first of
// struct tpacket2_hdr.
func txStatus(frame []byte) *atomic.Uint32 {
	_ = frame[3]
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(frame)))
}

// waitEpoll waits for events at most ms milliseconds.
func waitEpoll(fd int, events []unix.EpollEvent, ms int) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(events))), uintptr(len(events)),
		uintptr(ms), 0, 0)
	return int(n), e
}

// waitPoll waits for events at most *ts, which the kernel overwrites with what was left.
func waitPoll(fds []unix.PollFd, ts *unix.Timespec) (int, unix.Errno) {
	n, _, e := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(unsafe.SliceData(fds))), uintptr(len(fds)),
		uintptr(unsafe.Pointer(ts)), 0, 0, 0)
	return int(n), e
}

// meminfo reads SO_MEMINFO (net/core/sock.c: sk_get_meminfo).
func meminfo(fd int) (info [unix.SK_MEMINFO_VARS]uint32, err error) {
	size := uint32(unsafe.Sizeof(info))
	_, _, e := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_MEMINFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if e != 0 {
		return info, e
	}
	return info, nil
}

// blockStatus is the word through which the kernel and the reader hand a ring block to each other, at offset 8 of
// struct tpacket_block_desc.
func blockStatus(block []byte) *atomic.Uint32 {
	_ = block[11]
	return (*atomic.Uint32)(unsafe.Pointer(&block[8]))
}
