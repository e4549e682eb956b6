// SPDX-License-Identifier: Apache-2.0

// Package workload holds the tests: one loop per test, over a small interface that both engines satisfy. The loop is the
// same for every arm, so an A/B differs only in the path below the interface.
package workload

// Receiver is the receive half of an engine, for one worker on one thread. It lends memory in batches: what Receive puts
// into b is valid until Release.
type Receiver interface {
	// Receive waits as the arm's wait policy says, at most some milliseconds, and lends up to len(b) packets.
	// 0, nil means that nothing came.
	Receive(b [][]byte) (int, error)
	// Release gives back what the last Receive lent.
	Release() error
}
