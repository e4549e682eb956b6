// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

const isolated = "TWOPATH_TEST_ISOLATED"

// RunIsolated is m.Run, as root in a mount namespace of its own with an empty /run, and in new namespaces of the kinds in
// flags (CLONE_NEWNET ...): what the tests compare the host with is touched by nobody else, and a bug touches nothing
// outside. The test binary runs itself again for that, so TestMain calls it last.
func RunIsolated(m *testing.M, flags uintptr) int {
	if os.Getenv(isolated) == "1" {
		os.Unsetenv(isolated)
		if err := ownRun(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}
	worker := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzzworker") })
	if os.Geteuid() != 0 || worker {
		return m.Run()
	}
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), isolated+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags | unix.CLONE_NEWNS}
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return max(exit.ExitCode(), 1)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "run the tests in namespaces of their own:", err)
		return 1
	}
	return 0
}

func ownRun() error {
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"))
}
