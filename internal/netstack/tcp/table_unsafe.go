// SPDX-License-Identifier: Apache-2.0

package tcp

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The size is part of what a connection costs: it must not change without being noticed.
const _ = uint(sockBytes-unsafe.Sizeof(sock{})) + uint(unsafe.Sizeof(sock{})-sockBytes)

// table is all sockets of an engine, in memory of its own outside the Go heap: the collector neither scans nor counts it.
type table struct {
	mem   []byte
	socks []sock
}

func newTable(n int) (table, error) {
	mem, err := unix.Mmap(-1, 0, n*sockBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return table{}, fmt.Errorf("map %d bytes for %d sockets: %w", n*sockBytes, n, err)
	}
	// Without huge pages a large table costs a page walk for every other socket. The advice may be refused, then it is slower.
	_ = unix.Madvise(mem, unix.MADV_HUGEPAGE)
	return table{mem: mem, socks: unsafe.Slice((*sock)(unsafe.Pointer(unsafe.SliceData(mem))), n)}, nil
}

func (t *table) close() error {
	mem := t.mem
	t.mem, t.socks = nil, nil
	if mem == nil {
		return nil
	}
	return unix.Munmap(mem)
}
