// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// ErrThreadEnded is what On returns when fn left by runtime.Goexit (a test's FailNow).
var ErrThreadEnded = errors.New("function ended its goroutine")

// ThreadPath names the network namespace of the calling thread. /proc/self would be the main thread's.
const ThreadPath = "/proc/thread-self/ns/net"

// Go runs fn on a goroutine that owns an OS thread, and the thread ends with it: whatever fn does to the thread
// (namespaces, affinity) is seen by nobody else. The runtime never ends the main thread but parks it, and with it the
// namespace it had entered, so that one is skipped: it is held while another goroutine is given another thread.
func Go(fn func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn() // not unlocked: the thread dies here
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			fn()
		}()
		<-done
		runtime.UnlockOSThread()
	}()
}

// On runs fn as Go does and waits for its result.
func On(fn func() error) error {
	c := make(chan error, 1)
	Go(func() {
		err := ErrThreadEnded
		defer func() { c <- err }()
		err = fn()
	})
	return <-c
}

// In runs fn on a throw-away thread inside the network namespace ns.
func In(ns *os.File, fn func() error) error {
	return On(func() error {
		if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("enter network namespace: %w", err)
		}
		return fn()
	})
}

// New makes an anonymous network namespace: it lives as long as the file (closed on exec) or a process in it.
func New() (*os.File, error) {
	var ns *os.File
	err := On(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make network namespace: %w", err)
		}
		var err error
		ns, err = Current()
		return err
	})
	return ns, err
}

// Current opens the calling thread's network namespace.
func Current() (*os.File, error) {
	f, err := os.Open(ThreadPath)
	if err != nil {
		return nil, fmt.Errorf("open network namespace: %w", err)
	}
	return f, nil
}
