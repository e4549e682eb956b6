// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// interfaceIndex finds a device by name in the namespace of the calling thread. (/sys would answer for the namespace it
// was mounted in.)
func interfaceIndex(name string) (int, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, explain("open socket", err)
	}
	ifr, err := unix.NewIfreq(name)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("interface name %q: %w", name, err), unix.Close(fd))
	}
	err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr)
	if err := errors.Join(err, unix.Close(fd)); err != nil {
		return 0, explain("find interface "+name, err)
	}
	return int(ifr.Uint32()), nil
}

// promiscuous makes the device accept frames for any address for as long as fd, an AF_PACKET socket, is open.
func promiscuous(fd, ifindex int) error {
	m := unix.PacketMreq{Ifindex: int32(ifindex), Type: unix.PACKET_MR_PROMISC}
	if err := unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &m); err != nil {
		return explain("add promiscuous membership", err)
	}
	return nil
}

// htons puts a 16-bit protocol number in network byte order.
func htons(v uint16) uint16 { return v<<8 | v>>8 }
