// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// TestMain runs the tests in network and mount namespaces of their own. The binary also plays other processes.
func TestMain(m *testing.M) {
	switch os.Getenv("RIG_TEST_ROLE") {
	case "agent":
		fmt.Println("agent", os.Getpid())
		time.Sleep(time.Minute) // does not read its input: only the kernel can end it
	case "pair", "remote", "up":
		pairOwner(os.Getenv("RIG_TEST_ROLE"))
	case "unprivileged":
		unprivileged()
	case "controller":
		controller()
	default:
		os.Exit(nstest.RunIsolated(m, unix.CLONE_NEWNET))
	}
}

func reexec(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "RIG_TEST_ROLE="+role)
	cmd.Stderr = os.Stderr
	return cmd
}
