// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

const nobody = 65534 // the usual uid and gid of a user without privileges

// Unprivileged makes a command that is not started yet run as nobody when root runs the test, and leaves it as it is
// otherwise. What runs is a copy, in a directory of its own that is also the working directory: where go test builds,
// others may not look.
func Unprivileged(t testing.TB, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		return c
	}
	dir, err := os.MkdirTemp("", "twopath-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, "program")
	if err := errors.Join(os.Chmod(dir, 0o755), copyProgram(c.Path, path)); err != nil {
		t.Fatal(err)
	}
	c.Path, c.Dir = path, dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return c
}

func copyProgram(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
