// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strconv"

	"golang.org/x/sys/unix"
)

const (
	umemBytes   = 16 << 20 // of one AF_XDP socket with rings of 2048 and chunks of 4096, rounded up
	bufferBytes = 64 << 20 // receive buffer the kernel arms ask for
)

// memlockCheck looks at the limit that AF_XDP memory counts against (net/xdp/xdp_umem.c), unless CAP_IPC_LOCK lifts it.
func memlockCheck(have uint64) Check {
	c := Check{ID: "limit.memlock", Status: Pass, Why: fmt.Sprintf("an AF_XDP socket locks up to %d MiB", umemBytes>>20)}
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &l); err != nil {
		c.Status, c.What = Skip, fmt.Sprintf("memlock limit: %v", err)
		return c
	}
	c.What = fmt.Sprintf("memlock limit is %d KiB", l.Cur>>10)
	if l.Cur == unix.RLIM_INFINITY {
		c.What = "memlock is unlimited"
	}
	switch {
	case l.Cur >= umemBytes:
	case have>>unix.CAP_IPC_LOCK&1 == 1:
		c.What += ", which CAP_IPC_LOCK lifts"
	default:
		c.Status, c.Cure = Warn, "run as root, or raise it: ulimit -l unlimited (permanently: memlock in /etc/security/limits.conf)"
	}
	return c
}

// rmemCheck looks at the largest receive buffer a socket may ask for.
func rmemCheck(have uint64) Check {
	c := Check{ID: "limit.rmem_max", Status: Pass, Why: fmt.Sprintf("kernel arms ask for a receive buffer of %d MiB: with less, the stack loses packets a tuned program would not", bufferBytes>>20)}
	n, err := strconv.Atoi(read("/proc/sys/net/core/rmem_max"))
	if err != nil {
		c.Status, c.What = Skip, "net.core.rmem_max is not to be seen in this network namespace"
		return c
	}
	c.What = fmt.Sprintf("net.core.rmem_max is %d KiB", n>>10)
	switch {
	case n >= bufferBytes:
	case have>>unix.CAP_NET_ADMIN&1 == 1:
		c.What += ", which CAP_NET_ADMIN passes over (SO_RCVBUFFORCE)"
	default:
		c.Status, c.Cure = Warn, fmt.Sprintf("run as root, or: sysctl -w net.core.rmem_max=%d", bufferBytes)
	}
	return c
}
