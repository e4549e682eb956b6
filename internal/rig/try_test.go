// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

func TestTries(t *testing.T) {
	nstest.Root(t)
	before := hostState(t)
	for name, try := range map[string]func() error{"veth": TryVeth, "threaded": TryThreadedNAPI, "fifo napi": TryFIFONAPI, "namespace": TryNamespace} {
		if err := try(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Whether a thread may be real-time depends on the cgroup the tests run in: only the reason is known.
	if err := TryFIFOThread(); err != nil && !errors.Is(err, os.ErrPermission) && !errors.Is(err, unix.EPERM) {
		t.Errorf("fifo thread: %v", err)
	}
	sameHost(t, before)
}
