// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// groSegment returns the segment size, in bytes, that a UDP_GRO control message tells (udp(7)), or 0 when there is none:
// then the datagram is a single one. control is what recvmsg wrote, a sequence of struct cmsghdr.
func groSegment(control []byte) int {
	for len(control) >= unix.SizeofCmsghdr {
		// struct cmsghdr on 64-bit machines: u64 length with header, i32 level, i32 type.
		length := binary.NativeEndian.Uint64(control)
		if length < unix.SizeofCmsghdr || length > uint64(len(control)) {
			return 0
		}
		level := int32(binary.NativeEndian.Uint32(control[8:]))
		kind := int32(binary.NativeEndian.Uint32(control[12:]))
		if data := control[unix.SizeofCmsghdr:length]; level == unix.SOL_UDP && kind == unix.UDP_GRO && len(data) >= 4 {
			return max(0, int(int32(binary.NativeEndian.Uint32(data))))
		}
		control = control[min(uint64(unix.CmsgSpace(int(length)-unix.SizeofCmsghdr)), uint64(len(control))):]
	}
	return 0
}

// split lends data as segments of size bytes, the last one possibly shorter, in up to len(b) slices, and returns how many
// those are and what is left. A size of 0 means that data is one datagram, possibly empty. b must not be empty.
func split(b [][]byte, data []byte, size int) (n int, rest []byte) {
	if size <= 0 || len(data) <= size {
		b[0] = data
		return 1, nil
	}
	for n < len(b) && len(data) > 0 {
		k := min(size, len(data))
		b[n] = data[:k:k]
		data = data[k:]
		n++
	}
	return n, data
}

// segments returns how many datagrams an aggregate of length bytes holds.
func segments(length, size int) uint64 {
	if size <= 0 || length <= size {
		return 1
	}
	return uint64((length + size - 1) / size)
}
