// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// asNobody re-runs the test binary without privileges: as uid 65534 when root runs the tests, as who runs them otherwise.
func asNobody(t testing.TB, role string) *exec.Cmd {
	t.Helper()
	c := reexec(role)
	c.Stderr = nil
	if os.Geteuid() != 0 {
		return c
	}
	// Where go test builds, others may not look: the copy is put where they may.
	dir, err := os.MkdirTemp("/tmp", "rig")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := errors.Join(os.Chmod(dir, 0o755), copyFile("/proc/self/exe", filepath.Join(dir, "rig.test"))); err != nil {
		t.Fatal(err)
	}
	c.Path, c.Dir = filepath.Join(dir, "rig.test"), dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	return c
}

func copyFile(from, to string) error {
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

// unprivileged plays a user who has no privileges and says how each attempt was refused.
func unprivileged() {
	say := func(what string, err error) {
		var r *Refusal
		switch {
		case err == nil:
			fmt.Println(what, "none")
		case errors.As(err, &r):
			fmt.Println(what, r.ID, r.Usage)
		default:
			fmt.Println(what, err)
		}
	}
	_, err := New(Options{})
	say("new", err)
	_, err = Up(UpOptions{})
	say("up", err)
	_, err = NewPair(PairOptions{IF: "nic0", PeerIF: "nic1"})
	say("pair", err)
	_, err = NewRemote(RemoteOptions{IF: "nic0"})
	say("remote", err)
	_, err = Recover("")
	say("recover", err)
}
