// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// netSysfs opens an attribute of a device in the calling thread's network namespace, /sys/class/net/NAME/ATTR.
// The host's /sys shows the namespace it was mounted in, so a sysfs of our own is mounted: detached (fsmount(2),
// Linux 5.2), seen by nobody, and gone when its file is closed.
func netSysfs(name, attr string, flags int) (*os.File, error) {
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

func writeNetSysfs(name, attr, value string) error {
	f, err := netSysfs(name, attr, unix.O_WRONLY)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := f.WriteString(value); err != nil {
		return fmt.Errorf("write %s to %s of %s: %w", value, attr, name, err)
	}
	return nil
}

func readNetSysfs(name, attr string) (string, error) {
	f, err := netSysfs(name, attr, unix.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer f.Close()
	b := make([]byte, 256)
	n, err := f.Read(b)
	if err != nil {
		return "", fmt.Errorf("read %s of %s: %w", attr, name, err)
	}
	return strings.TrimSpace(string(b[:n])), nil
}

// RxQueues is how many receive queues the side's device has.
func (s *Side) RxQueues() (int, error) {
	n := 0
	err := s.Do(func() error {
		f, err := netSysfs(s.Name, "queues", unix.O_RDONLY|unix.O_DIRECTORY)
		if err != nil {
			return err
		}
		defer f.Close()
		names, err := f.Readdirnames(-1)
		for _, name := range names {
			if strings.HasPrefix(name, "rx-") {
				n++
			}
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("count queues of %s: %w", s.Name, err)
	}
	return n, nil
}
