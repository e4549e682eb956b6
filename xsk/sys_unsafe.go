// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The system calls x/sys/unix has no function for.

// sysSend is sendto without data: it makes the kernel send what is on the TX ring. It copies frames in copy mode, for microseconds, so the scheduler is told
// (Syscall rather than RawSyscall).
func sysSend(fd int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_SENDTO, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

// sysRecv is recvfrom without data: it wakes the receiving side of the driver, or busy-polls.
func sysRecv(fd int) unix.Errno {
	_, _, errno := unix.Syscall6(unix.SYS_RECVFROM, uintptr(fd), 0, 0, unix.MSG_DONTWAIT, 0, 0)
	return errno
}

func sysRegister(fd int, mem []byte, chunk, headroom uint32) error {
	reg := unix.XDPUmemReg{Addr: uint64(uintptr(unsafe.Pointer(&mem[0]))), Len: uint64(len(mem)), Size: chunk, Headroom: headroom}
	// A kernel that knows a shorter struct reads only that much of it, the fields we set are in all versions since 5.4.
	return setsockopt(fd, unix.SOL_XDP, unix.XDP_UMEM_REG, unsafe.Pointer(&reg), unsafe.Sizeof(reg))
}

func sysOffsets(fd int) (o unix.XDPMmapOffsets, err error) {
	n, err := getsockopt(fd, unix.SOL_XDP, unix.XDP_MMAP_OFFSETS, unsafe.Pointer(&o), unsafe.Sizeof(o))
	if err == nil && n != unsafe.Sizeof(o) {
		err = fmt.Errorf("%d bytes instead of %d (Linux before 5.4)", n, unsafe.Sizeof(o))
	}
	return o, err
}

func sysStatistics(fd int) (st unix.XDPStatistics, err error) {
	_, err = getsockopt(fd, unix.SOL_XDP, unix.XDP_STATISTICS, unsafe.Pointer(&st), unsafe.Sizeof(st))
	return st, err
}

func setsockopt(fd, level, opt int, p unsafe.Pointer, size uintptr) error {
	if _, _, errno := unix.Syscall6(unix.SYS_SETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt), uintptr(p), size, 0); errno != 0 {
		return errno
	}
	return nil
}

func getsockopt(fd, level, opt int, p unsafe.Pointer, size uintptr) (uintptr, error) {
	n := uint32(size)
	if _, _, errno := unix.Syscall6(unix.SYS_GETSOCKOPT, uintptr(fd), uintptr(level), uintptr(opt), uintptr(p), uintptr(unsafe.Pointer(&n)), 0); errno != 0 {
		return 0, errno
	}
	return uintptr(n), nil
}

// queueCount asks the driver how many queues the device has (ETHTOOL_GCHANNELS), the way bind counts them: the larger of receive and send.
func queueCount(device string) (int, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	// struct ethtool_channels, linux/ethtool.h.
	channels := struct{ cmd, maxRx, maxTx, maxOther, maxCombined, rx, tx, other, combined uint32 }{cmd: unix.ETHTOOL_GCHANNELS}
	// struct ifreq: the name, and a union of 24 bytes on 64-bit machines that begins with the pointer.
	req := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte
	}{data: unsafe.Pointer(&channels)}
	copy(req.name[:unix.IFNAMSIZ-1], device)
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&req))); errno != 0 {
		return 0, errno
	}
	return int(max(channels.rx, channels.tx) + channels.combined), nil
}
