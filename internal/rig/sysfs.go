// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"twopath/internal/namespace"
)

// netSysfs opens an attribute of a device in the calling thread's network namespace, /sys/class/net/NAME/ATTR.
func netSysfs(name, attr string, flags int) (*os.File, error) {
	return namespace.Sysfs(name, attr, flags)
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
