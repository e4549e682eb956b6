// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Errors to test for with errors.Is. Those that come from the kernel wrap its errno too.
var (
	ErrClosed       = os.ErrClosed                                               // the socket or UMEM was closed
	ErrInUse        = errors.New("already in use")                               // EBUSY: another socket owns the queue
	ErrNoZeroCopy   = errors.New("driver does not support zero-copy")            // EOPNOTSUPP to a forced zero-copy bind
	ErrNoQueue      = errors.New("no such queue")                                // the device has fewer queues
	ErrNotSupported = errors.New("not supported by this kernel")                 // option or flag unknown to the kernel
	ErrMemlock      = errors.New("locked-memory limit too low (ulimit -l)")      // ENOBUFS at UMEM registration
	ErrNoHugePages  = errors.New("no huge pages to be had (vm.nr_hugepages)")    // HugeRequire only
	ErrNetDown      = errors.New("device is down")                               // ENETDOWN
	ErrUnbound      = errors.New("socket is not bound, the device is gone")      // ENXIO
	ErrDowngraded   = errors.New("obtained less than requested")                 // Options.Strict only
	ErrStalled      = errors.New("frames outstanding, completions have stopped") // Flush only
)

// OptionError says which field of Options cannot be right. It is found before any system call.
type OptionError struct {
	Field string // name of the field in Options or UMEMOptions
	Value any    // what it was
	Why   string // what it has to be
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("xsk option %s: %v %s", e.Field, e.Value, e.Why)
}

// socketError gives an errno of sendto, recvfrom or poll on a bound socket its name.
func socketError(op string, errno unix.Errno) error {
	switch errno {
	case 0:
		return nil
	case unix.ENETDOWN:
		return fmt.Errorf("%s: %w: %w", op, ErrNetDown, errno)
	case unix.ENXIO:
		return fmt.Errorf("%s: %w: %w", op, ErrUnbound, errno)
	case unix.EBADF:
		return fmt.Errorf("%s: %w: %w", op, ErrClosed, errno)
	}
	return fmt.Errorf("%s: %w", op, errno)
}
