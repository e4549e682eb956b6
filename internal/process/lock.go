// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Lock serialises changes to what journals in a directory describe, between processes: held while setting up and while
// undoing, not in between. The directory is made if need be. The returned function lets go, and removes the directory if
// nothing is left in it.
func Lock(dir string) (unlock func() error, err error) {
	for range 1000 {
		// The last user may remove the directory at any point here, and then it is made again.
		err := os.MkdirAll(dir, 0o755)
		if err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("make journal directory: %w", err)
		}
		path := filepath.Join(dir, "lock")
		f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("open lock: %w", err)
		}
		for err = unix.EINTR; err == unix.EINTR; {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		// The file may have been removed between open and lock; then another process could hold a newer one.
		if held, err := f.Stat(); err == nil {
			if now, err := os.Stat(path); err == nil && os.SameFile(held, now) {
				return func() error { return release(dir, f) }, nil
			}
		}
		f.Close()
	}
	return nil, fmt.Errorf("lock %s: the directory keeps vanishing", dir)
}

// release removes the lock and its directory when nothing else is in there. Others may be about to use it: then the
// directory is not empty, or gone and made anew, and that is theirs.
func release(dir string, f *os.File) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) == 1 {
		err = os.Remove(f.Name())
		_ = os.Remove(dir)
	}
	return errors.Join(err, f.Close())
}
