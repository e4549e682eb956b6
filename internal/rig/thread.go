// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"os"

	"twopath/internal/namespace"
)

// threadNS names the network namespace of the calling thread.
const threadNS = namespace.ThreadPath

// goOnThread runs fn on a goroutine that owns an OS thread, which ends with it.
func goOnThread(fn func()) { namespace.Go(fn) }

// onThread runs fn as goOnThread does and waits for its result.
func onThread(fn func() error) error { return namespace.On(fn) }

// onThreadIn runs fn on a throw-away thread inside the network namespace ns.
func onThreadIn(ns *os.File, fn func() error) error { return namespace.In(ns, fn) }

// newNamespace makes an anonymous network namespace: it lives as long as the file (closed on exec) or a process in it.
func newNamespace() (*os.File, error) { return namespace.New() }

// currentNamespace opens the calling thread's network namespace.
func currentNamespace() (*os.File, error) { return namespace.Current() }
