// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// TryVeth tells whether this process can make a veth rig, by making one and removing it.
func TryVeth() error {
	r, err := New(Options{})
	if err != nil {
		return err
	}
	return r.Close()
}

// TryThreadedNAPI tells whether NAPI can be put into threads of its own and pinned (Linux 5.12), by doing it on a veth
// rig that is removed again.
func TryThreadedNAPI() error { return tryNAPI(Other) }

// TryFIFONAPI tells whether NAPI threads can be given the policy SCHED_FIFO.
func TryFIFONAPI() error { return tryNAPI(FIFO) }

func tryNAPI(p Policy) (err error) {
	cpus, err := affinity(0)
	if err != nil {
		return err
	}
	r, err := New(Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	want := NAPIOptions{Threaded: true, CPUs: cpus[:1], Policy: p}
	if err := r.SUT.SetNAPI(want); err != nil {
		return err
	}
	return r.SUT.VerifyNAPI(want)
}

// TryFIFOThread tells whether this process may run a thread of its own under SCHED_FIFO: needs CAP_SYS_NICE, and with
// CONFIG_RT_GROUP_SCHED a cpu cgroup that has real-time run time.
func TryFIFOThread() error {
	return onThread(func() error {
		if err := setPolicy(0, FIFO, 1); err != nil {
			return err
		}
		p, _, err := policy(0)
		if err == nil && p != FIFO {
			err = fmt.Errorf("policy is %s after it was set to %s", p, FIFO)
		}
		return errors.Join(err, setPolicy(0, Other, 0))
	})
}

// TryNamespace tells whether this process may make a network namespace.
func TryNamespace() error {
	ns, err := newNamespace()
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("this kernel has no network namespaces (CONFIG_NET_NS): %w", err)
	}
	if err != nil {
		return err
	}
	return ns.Close()
}
