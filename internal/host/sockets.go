// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// socketProbes try the socket features arms use. Each opens a socket and closes it; nothing is sent.
func socketProbes() []Probe {
	kernel := func(v string) string { return "use Linux " + v + " or newer, or leave that arm out" }
	return []Probe{
		{ID: "socket.af_xdp", What: "AF_XDP sockets", Why: "the xdp engine", Cure: "use a kernel with CONFIG_XDP_SOCKETS", Try: tryXDP},
		{ID: "socket.udp_gro", What: "UDP_GRO", Why: "kernel arms that take merged datagrams", Cure: kernel("5.0"), Optional: true,
			Try: func() error { return trySockopt(unix.IPPROTO_UDP, unix.UDP_GRO, 1) }},
		{ID: "socket.udp_gso", What: "UDP_SEGMENT", Why: "kernel arms that send many datagrams at once", Cure: kernel("4.18"), Optional: true,
			Try: func() error { return trySockopt(unix.IPPROTO_UDP, unix.UDP_SEGMENT, 1000) }},
		{ID: "socket.busy_poll", What: "SO_PREFER_BUSY_POLL", Why: "arms with wait=busypoll", Cure: kernel("5.11"), Optional: true,
			Try: func() error { return trySockopt(unix.SOL_SOCKET, unix.SO_PREFER_BUSY_POLL, 1) }},
		{ID: "socket.packet_v3", What: "AF_PACKET with TPACKET_V3", Why: "the kernel:packet arm, and the sender of last resort", Cure: "use a kernel with CONFIG_PACKET", Optional: true, Try: tryPacket},
	}
}

func tryXDP() error {
	fd, err := unix.Socket(unix.AF_XDP, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	return unix.Close(fd)
}

// trySockopt sets an option of a UDP socket and reads it back.
func trySockopt(level, opt, value int) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, level, opt, value); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	got, err := unix.GetsockoptInt(fd, level, opt)
	if err != nil {
		return os.NewSyscallError("getsockopt", err)
	}
	if got != value {
		return fmt.Errorf("option is %d after it was set to %d", got, value)
	}
	return nil
}

// tryPacket sets up a receive ring on a socket that is bound to no protocol, so no frame reaches it.
func tryPacket() error {
	fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return os.NewSyscallError("socket", err)
	}
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VERSION, unix.TPACKET_V3); err != nil {
		return os.NewSyscallError("setsockopt PACKET_VERSION", err)
	}
	const block, frame = 1 << 16, 2048
	ring := unix.TpacketReq3{Block_size: block, Block_nr: 1, Frame_size: frame, Frame_nr: block / frame, Retire_blk_tov: 10}
	return os.NewSyscallError("setsockopt PACKET_RX_RING", unix.SetsockoptTpacketReq3(fd, unix.SOL_PACKET, unix.PACKET_RX_RING, &ring))
}
