// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// decodeSocket names what stops socket(AF_XDP).
func decodeSocket(err error) error {
	switch {
	case errors.Is(err, unix.EAFNOSUPPORT):
		return fmt.Errorf("make AF_XDP socket: %w (CONFIG_XDP_SOCKETS): %w", ErrNotSupported, err)
	case errors.Is(err, unix.EPERM):
		return fmt.Errorf("make AF_XDP socket: needs CAP_NET_RAW: %w", err)
	}
	return fmt.Errorf("make AF_XDP socket: %w", err)
}

// decodeBind names what stops bind. EINVAL stands for many things there; with the options checked before, what remains is a queue the device
// has not got (xsk_reg_pool_at_qid), or a flag newer than the kernel.
func decodeBind(o Options, err error) error {
	switch {
	case errors.Is(err, unix.EBUSY):
		return fmt.Errorf("bind: %w: another AF_XDP socket has this queue: %w", ErrInUse, err)
	case errors.Is(err, unix.EOPNOTSUPP) && o.Bind == ZeroCopy:
		return fmt.Errorf("bind: %w, try Bind Auto or Copy: %w", ErrNoZeroCopy, err)
	case errors.Is(err, unix.EINVAL):
		n, qerr := queueCount(o.Device)
		switch {
		case qerr == nil && o.Queue >= n:
			return fmt.Errorf("bind: %w, the device has %d (0..%d): %w", ErrNoQueue, n, n-1, err)
		case qerr != nil && o.Queue > 0:
			return fmt.Errorf("bind: %w, probably (the device does not tell how many it has: %v): %w", ErrNoQueue, qerr, err)
		case o.MultiBuffer:
			return fmt.Errorf("bind: multi-buffer (XDP_USE_SG, Linux 6.6) is %w, or by this driver: %w", ErrNotSupported, err)
		}
	}
	return fmt.Errorf("bind: %w", err)
}
