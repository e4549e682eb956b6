// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"
)

// Policy is a scheduling policy of a NAPI thread.
type Policy string

const (
	Other Policy = "other" // SCHED_OTHER: takes turns with the reader in scheduler slices
	FIFO  Policy = "fifo"  // SCHED_FIFO: runs whenever it has work
)

// DefaultPriority is the SCHED_FIFO priority used when none is given: above ordinary tasks, below the kernel's own
// threads at 50 (threaded interrupts) and 99 (migration, stopper).
const DefaultPriority = 10

// pin restricts a thread (0: the calling one) to the given CPUs.
func pin(tid int, cpus []int) error {
	var set unix.CPUSet
	for _, c := range cpus {
		if c < 0 || c >= len(set)*64 {
			return fmt.Errorf("pin thread %d: no CPU %d", tid, c)
		}
		set.Set(c)
	}
	if err := unix.SchedSetaffinity(tid, &set); err != nil {
		return fmt.Errorf("pin thread %d to CPUs %v: %w", tid, cpus, err)
	}
	return nil
}

// affinity lists the CPUs a thread may run on, ascending.
func affinity(tid int) ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(tid, &set); err != nil {
		return nil, fmt.Errorf("read affinity of thread %d: %w", tid, err)
	}
	var cpus []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			cpus = append(cpus, c)
		}
	}
	return cpus, nil
}

// setPolicy gives a thread its scheduling policy; priority counts for FIFO only, 1..99.
func setPolicy(tid int, p Policy, priority int) error {
	a := unix.SchedAttr{Size: unix.SizeofSchedAttr}
	switch p {
	case Other:
		a.Policy = unix.SCHED_NORMAL
	case FIFO:
		a.Policy, a.Priority = unix.SCHED_FIFO, uint32(priority)
	default:
		return fmt.Errorf("scheduling policy %q: want %q or %q", p, Other, FIFO)
	}
	if err := unix.SchedSetAttr(tid, &a, 0); err != nil {
		return fmt.Errorf("set thread %d to %s: %w", tid, p, err)
	}
	return nil
}

// policy reads a thread's scheduling policy. Policies other than the two of this package come back by number.
func policy(tid int) (Policy, int, error) {
	a, err := unix.SchedGetAttr(tid, 0)
	if err != nil {
		return "", 0, fmt.Errorf("read policy of thread %d: %w", tid, err)
	}
	switch a.Policy {
	case unix.SCHED_NORMAL:
		return Other, 0, nil
	case unix.SCHED_FIFO:
		return FIFO, int(a.Priority), nil
	}
	return Policy(fmt.Sprintf("policy-%d", a.Policy)), int(a.Priority), nil
}

// sameCPUs compares two lists as sets.
func sameCPUs(a, b []int) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}
