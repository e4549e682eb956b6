// SPDX-License-Identifier: Apache-2.0

package agent

// Connecting is the load of a connection test; both ends get the same.
type Connecting struct {
	ServerPort  uint16 `json:"server_port"`
	ServerPorts int    `json:"server_ports"`
	ClientPort  uint16 `json:"client_port"` // first
	ClientPorts int    `json:"client_ports"`
	Body        int    `json:"body"`     // bytes of the response's body
	Keep        bool   `json:"keep"`     // connections are kept for more requests, and closed by the client
	Requests    int    `json:"requests"` // on a connection
	Concurrent  int    `json:"concurrent"`
	// Rate in connections/s makes an open loop; 0 holds Concurrent connections open.
	Rate    float64 `json:"rate"`
	Count   uint64  `json:"count"`   // connections; 0 is no limit
	Seconds float64 `json:"seconds"` // ends a load without a count
	Partial bool    `json:"partial"` // the other end leaves L4 checksums to a device (kernel sockets on veth): they are not verified
}

// Connected is what one end of a connection test saw.
type Connected struct {
	Opened      uint64            `json:"opened"`
	Established uint64            `json:"established"`
	Completed   uint64            `json:"completed"` // ended as planned
	Open        uint64            `json:"open"`      // at the end: should be 0
	Skipped     uint64            `json:"skipped"`   // opens for which no port, tuple or file was free
	Requests    uint64            `json:"requests"`
	Responses   uint64            `json:"responses"`
	BytesIn     uint64            `json:"bytes_in"`
	BytesOut    uint64            `json:"bytes_out"`
	Errors      map[string]uint64 `json:"errors"`   // connections that ended otherwise, each in one
	Counters    map[string]uint64 `json:"counters"` // the engine's own: retransmissions, system calls
	Late        uint64            `json:"late"`     // opened over 1 ms after their time
	MaxLateNS   int64             `json:"max_late_ns"`
	FinishNS    int64             `json:"finish_ns"` // CLOCK_MONOTONIC: when the last connection was over
	Drained     bool              `json:"drained"`
	CPU         *CPU              `json:"cpu,omitempty"`
}
