// SPDX-License-Identifier: Apache-2.0

package measure

import _ "unsafe" // for go:linkname

// nanotime is the runtime's CLOCK_MONOTONIC reading, in absolute ns. It is linked rather than called through
// unix.ClockGettime because the latter is a true system call (about 200 ns against 30 for the vDSO), and time.Now
// hides the absolute value that BPF stamps need.
//
//go:linkname nanotime runtime.nanotime
//go:noescape
func nanotime() int64
