// SPDX-License-Identifier: Apache-2.0

package workload

import "time"

// Sender is the send half of an engine, for one worker on one thread. It lends memory in batches: what Reserve puts into b
// is the caller's to write in until Submit.
type Sender interface {
	// Reserve lends up to len(b) buffers, with room for the longest packet. 0, nil means that there is no room now.
	Reserve(b [][]byte) (int, error)
	// Submit sends the first packets that the last Reserve lent, in order, each cut to its length; all are of one flow. It
	// returns how many the engine took; the rest of the loan is over.
	Submit(b [][]byte, flow int) (int, error)
	// Flush waits until the engine is done with everything it took.
	Flush(timeout time.Duration) error
}

// FlowRun is how many packets in a row belong to one flow, for every arm: a system call can batch, and GSO merge, within a
// flow only, so a change of flow with every packet would be no load to compare with.
const FlowRun = 64

// FlowOf is the flow of a stream's packet by its number.
func FlowOf(number uint64, flows int) int { return int(number / FlowRun % uint64(flows)) }
