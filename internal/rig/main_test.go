// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain runs the tests in network and mount namespaces of their own, with a /run of their own: what they compare
// "the host" with is touched by nobody else, and a bug touches nothing outside. The binary also plays other processes.
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
	case "isolated":
		os.Unsetenv("RIG_TEST_ROLE")
		if err := isolate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	default:
		worker := slices.ContainsFunc(os.Args, func(a string) bool { return strings.HasPrefix(a, "-test.fuzzworker") })
		if os.Geteuid() != 0 || worker {
			os.Exit(m.Run())
		}
		os.Exit(runIsolated())
	}
}

func runIsolated() int {
	cmd := reexec("isolated", os.Args[1:]...)
	cmd.Stdin, cmd.Stdout = os.Stdin, os.Stdout
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS}
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

func isolate() error {
	return errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"))
}

func reexec(role string, args ...string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), "RIG_TEST_ROLE="+role)
	cmd.Stderr = os.Stderr
	return cmd
}
