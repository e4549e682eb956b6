// SPDX-License-Identifier: Apache-2.0

package compare

// Milestone is what one worker needed for so many packets: a line of the receiver in "How fast can the Linux stack
// receive?", which prints one every million.
type Milestone struct {
	Worker    int    `json:"worker"`     // from 0
	Index     int    `json:"index"`      // from 1, of the worker
	Packets   uint64 `json:"packets"`    // since the line before
	Bytes     uint64 `json:"bytes"`      // of payload, of these
	ElapsedNs uint64 `json:"elapsed_ns"` // since the line before; for the first, since the first packet
	Waits     uint64 `json:"waits"`      // returns of epoll_wait, or of poll
	Calls     uint64 `json:"calls"`      // system calls that read packets, those that found none included; 0 for rings, which take none
}

// CPUShare is who had one CPU during a trial, as shares of the time. They add up to 1 where the witness saw all of it.
type CPUShare struct {
	CPU       int     `json:"cpu"`
	Reader    float64 `json:"reader"`    // threads of the engine
	NAPI      float64 `json:"napi"`      // NAPI threads of the SUT's device
	Softirq   float64 `json:"softirq"`   // network softirqs
	Interrupt float64 `json:"interrupt"` // device interrupts, and softirqs of other kinds
	Other     float64 `json:"other"`     // all other tasks
	Idle      float64 `json:"idle"`
}
