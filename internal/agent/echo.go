// SPDX-License-Identifier: Apache-2.0

package agent

// The roles of udp-echo.
const (
	Echo    Role = "echo"    // the SUT: one engine, N workers, each answers what it receives
	Ping    Role = "ping"    // the peer: XDP live frames out, and a program that takes the replies out and meters them
	Reflect Role = "reflect" // the limit: an XDP program that sends the requests back from the driver
)

// Pinger is how the peer of an echo test asks, besides its load.
type Pinger struct {
	// PingPong sends one request at a time on each generating core: the next when the reply is in.
	PingPong bool `json:"ping_pong,omitempty"`
	// GiveUp is how many seconds a reply is waited for; 0 is the generator's default.
	GiveUp float64 `json:"give_up,omitempty"`
}

// Latency is what a meter made of the replies' times, in ns since their requests' stamps.
type Latency struct {
	Count     uint64      `json:"count"` // unique replies
	SumNS     uint64      `json:"sum_ns"`
	MinNS     uint64      `json:"min_ns"`
	MaxNS     uint64      `json:"max_ns"`
	Negative  uint64      `json:"negative"`   // stamped in the future; not in Count
	Over      uint64      `json:"over"`       // beyond the histogram; in Count
	IPDVCount uint64      `json:"ipdv_count"` // pairs of replies with consecutive numbers
	IPDVSumNS uint64      `json:"ipdv_sum_ns"`
	Buckets   [][3]uint64 `json:"buckets"` // from, to (inclusive), count; rising, none empty
}
