// SPDX-License-Identifier: Apache-2.0

package agent

import "time"

// SendFragments is the peer of the test fragments: datagrams in IP fragments, prepared, as XDP live frames.
const SendFragments Role = "send-fragments"

// Fragments is the traffic of the test, and what bounds its reassembly on either engine.
type Fragments struct {
	Pattern string `json:"pattern"` // as internal/fragments names them
	Payload int    `json:"payload"` // UDP payload of a datagram, bytes
	MTU     int    `json:"mtu"`     // of an IP packet, bytes
	Seed    uint64 `json:"seed"`    // of orders

	TimeoutNS int64 `json:"timeout_ns"` // until an incomplete datagram is given up; whole seconds, as the kernel has it
	Memory    int   `json:"memory"`     // bytes for incomplete datagrams
	Distance  int   `json:"distance"`   // IPv4 fragments of a source between two of a datagram
	// Own says that the namespace is the run's own, so that the kernel's limits may be set there. Otherwise they are only read.
	Own bool `json:"own"`
}

// FragmentsSent is what the peer sent.
type FragmentsSent struct {
	Frames      uint64 `json:"frames"`
	Datagrams   uint64 `json:"datagrams"`   // of which at least one fragment was sent
	Missing     uint64 `json:"missing"`     // of these, sent with one fragment left out
	Overlapping uint64 `json:"overlapping"` // of these, sent with an overlap
	Fragments   int    `json:"fragments"`   // of a whole datagram
	Bytes       int    `json:"bytes"`       // of the list of prepared frames
}

// PendingFragments is the level of incomplete datagrams that a side holds: a counter that is no counter. An xdp arm tells it
// before it starts and after it has finished.
const PendingFragments = "fragments.pending"

// Timeout is TimeoutNS as a duration.
func (f *Fragments) Timeout() time.Duration { return time.Duration(f.TimeoutNS) }
