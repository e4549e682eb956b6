// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"twopath/internal/namespace"
)

// Names of the namespaces NICs are moved into and rig up makes: a NIC must outlive the process, so its namespace must
// not be anonymous (a virtual device is destroyed with its namespace, a physical one falls back to the first one).
const (
	SUTNamespace  = "twopath-sut"
	PeerNamespace = "twopath-peer"
)

// netnsDir is where ip-netns(8) keeps named namespaces.
const netnsDir = namespace.Named

// nsID tells namespaces apart.
type nsID = namespace.ID

func identify(f *os.File) (nsID, error) { return namespace.Identify(f) }

// newNamed makes a namespace that ip netns lists, and opens it.
func newNamed(name string) (*os.File, error) {
	if err := os.MkdirAll(netnsDir, 0o755); err != nil {
		return nil, fmt.Errorf("make %s: %w", netnsDir, err)
	}
	path := filepath.Join(netnsDir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return nil, fmt.Errorf("make namespace: %w", err)
	}
	f.Close()
	var ns *os.File
	err = onThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make namespace %s: %w", name, err)
		}
		if err := unix.Mount(threadNS, path, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("name namespace %s: %w", name, err)
		}
		ns, err = currentNamespace()
		return err
	})
	if err != nil {
		return nil, errors.Join(err, removeNamed(name))
	}
	return ns, nil
}

// openNamed opens a named namespace; fs.ErrNotExist when there is none, also when only its file is left.
func openNamed(name string) (*os.File, error) {
	f, err := os.Open(filepath.Join(netnsDir, name))
	if err != nil {
		return nil, fmt.Errorf("open namespace: %w", err)
	}
	var st unix.Statfs_t
	if err := unix.Fstatfs(int(f.Fd()), &st); err != nil || st.Type != unix.NSFS_MAGIC {
		f.Close()
		return nil, fmt.Errorf("open namespace %s: no namespace is mounted there: %w", name, fs.ErrNotExist)
	}
	return f, nil
}

// removeNamed takes a namespace's name away; it lives on while processes are in it. One that is gone is no error.
// The directory goes with the last name, as on a host where ip netns was never used.
func removeNamed(name string) error {
	path := filepath.Join(netnsDir, name)
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && err != unix.EINVAL && err != unix.ENOENT {
		return fmt.Errorf("unmount namespace %s: %w", name, err)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove namespace: %w", err)
	}
	_ = os.Remove(netnsDir) // fails while other names, or ip netns's own mount on it, are there
	return nil
}

// namedNamespaces lists the names in /run/netns.
func namedNamespaces() []string {
	entries, err := os.ReadDir(netnsDir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// findNamespace opens the namespace of that identity: the caller's, the first process's, or a named one.
func findNamespace(id nsID) (*os.File, error) { return namespace.Find(id) }
