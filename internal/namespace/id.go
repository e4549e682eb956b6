// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Named is where ip-netns(8) keeps named namespaces.
const Named = "/run/netns"

// First is the network namespace of the first process: that of the machine, outside of containers.
const First = "/proc/1/ns/net"

// ID tells namespaces apart, as stat(2) of the nsfs file does.
type ID struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// Identify tells which namespace a file is of.
func Identify(f *os.File) (ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return ID{}, fmt.Errorf("identify network namespace: %w", err)
	}
	return ID{uint64(st.Dev), st.Ino}, nil
}

// Find opens the namespace of that identity: the caller's, the first process's, or a named one.
func Find(id ID) (*os.File, error) {
	paths := []string{ThreadPath, First}
	names, err := os.ReadDir(Named)
	if err == nil {
		for _, n := range names {
			paths = append(paths, filepath.Join(Named, n.Name()))
		}
	}
	for _, p := range paths {
		f, err := os.Open(p)
		if err != nil {
			continue
		}
		if got, err := Identify(f); err == nil && got == id {
			return f, nil
		}
		f.Close()
	}
	return nil, fmt.Errorf("find network namespace net:[%d]: %w", id.Ino, fs.ErrNotExist)
}
