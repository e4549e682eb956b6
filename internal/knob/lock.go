// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"os"
	"path/filepath"

	"twopath/internal/process"
)

// halfWritten are journals that are being written.
const halfWritten = ".knobs-*"

// lock serialises changes between processes, with those of the rig's journals in the same directory.
func lock(dir string) (unlock func() error, err error) {
	unlock, err = process.Lock(dir)
	if err != nil {
		return nil, err
	}
	half, _ := filepath.Glob(filepath.Join(dir, halfWritten)) // by processes that died writing: nobody writes now
	for _, h := range half {
		_ = os.Remove(h)
	}
	return unlock, nil
}
