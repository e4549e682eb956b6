// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A rig that sits idle carries nothing: whatever the kernel sent by itself when the links came up has passed when New
// returns, so every frame seen later is the test's.
func TestIdleRigIsSilent(t *testing.T) {
	r := newRig(t, Options{})
	const listen = 1500 * time.Millisecond
	fds := map[string]int{}
	for _, s := range r.Sides() {
		err := s.Do(func() error {
			fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, int(htons(unix.ETH_P_ALL)))
			fds[s.Role] = fd
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fds[s.Role])
	}
	start := time.Now()
	for time.Since(start) < listen {
		for role, fd := range fds {
			b := make([]byte, 2048)
			if n, _, err := unix.Recvfrom(fd, b, 0); err == nil {
				t.Errorf("%s: %d bytes after %v: %x", role, n, time.Since(start), b[:n])
			}
		}
		time.Sleep(time.Millisecond)
	}
}

func htons(v uint16) uint16 { return v<<8 | v>>8 }
