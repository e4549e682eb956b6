// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// halfWritten are journals that are being written.
const halfWritten = ".knobs-*"

// lock serialises changes between processes. It is on the journals' directory itself, which is made if need be; the
// returned function lets go, and removes the directory if nothing is left in it.
func lock(dir string) (unlock func() error, err error) {
	for range 1000 {
		if err := os.MkdirAll(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("make journal directory: %w", err)
		}
		f, err := os.Open(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue // the last user has just removed it
		}
		if err != nil {
			return nil, fmt.Errorf("open journal directory: %w", err)
		}
		for err = unix.EINTR; err == unix.EINTR; {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock %s: %w", dir, err)
		}
		// It may have been removed between open and lock; then another process could hold a newer one.
		if held, err := f.Stat(); err == nil {
			if now, err := os.Stat(dir); err == nil && os.SameFile(held, now) {
				half, _ := filepath.Glob(filepath.Join(dir, halfWritten)) // by processes that died writing: nobody writes now
				for _, h := range half {
					_ = os.Remove(h)
				}
				return func() error {
					_ = os.Remove(dir) // fails while journals are there
					return f.Close()
				}, nil
			}
		}
		f.Close()
	}
	return nil, fmt.Errorf("lock %s: the directory keeps vanishing", dir)
}
