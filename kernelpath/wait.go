// SPDX-License-Identifier: Apache-2.0

package kernelpath

import "fmt"

// Wait is what a receiver does when nothing has arrived.
type Wait int

const (
	WaitDefault  Wait = iota // the receiver's default, WaitBlock
	WaitBlock                // sleep in the kernel until a packet or the timeout
	WaitBusyPoll             // let the kernel poll the device from the system call, then sleep (Documentation/networking/napi.rst)
	WaitSpin                 // ask again and again without sleeping
)

var waitNames = [...]string{WaitDefault: "default", WaitBlock: "block", WaitBusyPoll: "busypoll", WaitSpin: "spin"}

// String returns the name used in arm options (wait=block).
func (w Wait) String() string {
	if w < 0 || int(w) >= len(waitNames) {
		return fmt.Sprintf("wait(%d)", int(w))
	}
	return waitNames[w]
}

// ParseWait is the inverse of String.
func ParseWait(s string) (Wait, error) {
	for w, name := range waitNames {
		if name == s {
			return Wait(w), nil
		}
	}
	return 0, fmt.Errorf("wait policy %q: want block, busypoll or spin", s)
}

// MarshalText makes the name what stands in a JSON record.
func (w Wait) MarshalText() ([]byte, error) { return []byte(w.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (w *Wait) UnmarshalText(b []byte) (err error) {
	*w, err = ParseWait(string(b))
	return err
}
