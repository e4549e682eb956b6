// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// ErrClosed is returned by calls on a closed receiver.
var ErrClosed = os.ErrClosed

// explain wraps err with the operation and, where one is known, what to do about it.
func explain(op string, err error) error {
	switch {
	case errors.Is(err, unix.EADDRINUSE):
		return fmt.Errorf("%s: %w (another socket has this port: see ss -lunp, or choose another port)", op, err)
	case errors.Is(err, unix.EADDRNOTAVAIL):
		return fmt.Errorf("%s: %w (no interface in this network namespace has the address: see ip address)", op, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("%s: %w (run as root, or with CAP_NET_RAW and CAP_NET_ADMIN)", op, err)
	case errors.Is(err, unix.EACCES):
		return fmt.Errorf("%s: %w (ports below 1024 need CAP_NET_BIND_SERVICE)", op, err)
	case errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%s: %w (no such interface in this network namespace: see ip link)", op, err)
	}
	return fmt.Errorf("%s: %w", op, err)
}

// icmpError reports whether e is the echo of an ICMP message about something sent earlier (udp(7)). It is delivered
// once, by whatever call comes next, and says nothing about receiving.
func icmpError(e unix.Errno) bool {
	return e == unix.ECONNREFUSED || e == unix.EHOSTUNREACH || e == unix.ENETUNREACH || e == unix.EPROTO
}
