// SPDX-License-Identifier: Apache-2.0

package agent

// Sending is what the SUT of a send test tells beyond what every generator does. Sent is there what the engine took.
type Sending struct {
	PerWorker  []uint64          `json:"per_worker"`
	EmptyTurns uint64            `json:"empty_turns"` // nothing was due, or there was no room
	NoRoom     uint64            `json:"no_room"`     // of these, no room
	SpinNS     uint64            `json:"spin_ns"`     // time in empty turns
	StallNS    uint64            `json:"stall_ns"`    // time in which the machine under a sender stood still
	MaxStallNS uint64            `json:"max_stall_ns"`
	Continued  uint64            `json:"continued"`        // how often the process was stopped and continued (SIGCONT)
	Failed     string            `json:"failed,omitempty"` // why a worker ended early: the way was gone
	Counters   map[string]uint64 `json:"counters"`         // the engine's own: system calls, kicks, errors
	CPU        *CPU              `json:"cpu,omitempty"`
}
