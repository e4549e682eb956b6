// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// Sysfs opens an attribute of a device in the calling thread's network namespace, /sys/class/net/NAME/ATTR.
// The host's /sys shows the namespace it was mounted in, so a sysfs of our own is mounted: detached (fsmount(2),
// Linux 5.2), seen by nobody, and gone when its file is closed.
func Sysfs(name, attr string, flags int) (*os.File, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("open sysfs: %w", err)
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return nil, fmt.Errorf("create sysfs: %w", err)
	}
	mnt, err := unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("mount sysfs: %w", err)
	}
	defer unix.Close(mnt)
	path := "class/net/" + name + "/" + attr
	fd, err := unix.Openat(mnt, path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("open sysfs %s: %w", path, err)
	}
	return os.NewFile(uintptr(fd), path), nil
}
