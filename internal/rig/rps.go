// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// SetRPS has frames that enter the side outside NAPI handled on the given CPUs (receive packet steering,
// Documentation/networking/scaling.rst); none switches it off. On veth, what a socket at the other end sends passes
// NAPI by, unless it could be merged (drivers/net/veth.c, veth_skb_is_eligible_for_gro), and is handled on the sending
// core whatever SetNAPI says: this is how to move it.
func (s *Side) SetRPS(cpus []int) error {
	return s.Do(func() error {
		queues, err := rxQueues(s.Name)
		if err != nil {
			return err
		}
		for _, q := range queues {
			if err := writeNetSysfs(s.Name, "queues/"+q+"/rps_cpus", cpuMask(cpus)); err != nil {
				return fmt.Errorf("set RPS: %w", err)
			}
		}
		return nil
	})
}

// rpsMasks reads the mask of each receive queue, in the kernel's notation; nil when there are none to be seen.
func rpsMasks(name string) map[string]string {
	queues, err := rxQueues(name)
	if err != nil {
		return nil
	}
	out := make(map[string]string)
	for _, q := range queues {
		if v, err := readNetSysfs(name, "queues/"+q+"/rps_cpus"); err == nil {
			out[q] = v
		}
	}
	return out
}

// restoreRPS puts masks back that differ.
func restoreRPS(name string, want map[string]string) error {
	var errs []error
	for q, now := range rpsMasks(name) {
		if mask, ok := want[q]; ok && mask != now {
			errs = append(errs, writeNetSysfs(name, "queues/"+q+"/rps_cpus", mask))
		}
	}
	return errors.Join(errs...)
}

// rxQueues lists the receive queues of a device in the calling thread's namespace: rx-0, rx-1, ...
func rxQueues(name string) ([]string, error) {
	f, err := netSysfs(name, "queues", unix.O_RDONLY|unix.O_DIRECTORY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	all, err := f.Readdirnames(-1)
	if err != nil {
		return nil, fmt.Errorf("list queues of %s: %w", name, err)
	}
	return slices.DeleteFunc(all, func(n string) bool { return !strings.HasPrefix(n, "rx-") }), nil
}

// cpuMask writes CPUs as the kernel's bitmaps are written: groups of 32 bits in hex, the highest first.
func cpuMask(cpus []int) string {
	words := []uint32{0}
	for _, c := range cpus {
		for len(words) <= c/32 {
			words = append(words, 0)
		}
		words[c/32] |= 1 << (c % 32)
	}
	var b strings.Builder
	for _, w := range slices.Backward(words) {
		if b.Len() > 0 {
			fmt.Fprintf(&b, ",%08x", w)
			continue
		}
		fmt.Fprintf(&b, "%x", w)
	}
	return b.String()
}
