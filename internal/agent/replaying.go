// SPDX-License-Identifier: Apache-2.0

package agent

// Replay is what the peer of a replay sends: a capture, which it reads from its own host.
type Replay struct {
	Path   string `json:"path"`
	SHA256 string `json:"sha256"` // of the file; another file under the same path is refused
	MTU    int    `json:"mtu"`    // bytes; longer frames are left out, as the controller has counted
	// Speed is a multiple of the capture's own timing; 0 sends at Rate, or as fast as it goes.
	Speed  float64 `json:"speed,omitempty"`
	Rate   float64 `json:"rate,omitempty"` // frames/s
	Loops  int     `json:"loops"`
	Frames int     `json:"frames"`            // of the list
	DstMAC []byte  `json:"dst_mac,omitempty"` // of every frame; none is an address that no host has
	// KeepMAC keeps the capture's own.
	KeepMAC bool   `json:"keep_mac,omitempty"`
	Hosts   string `json:"hosts,omitempty"` // OLD=NEW,.. IP addresses
}

// Followed is what the workers of a replay's SUT saw, each for itself.
type Followed struct {
	Workers []FollowedWorker  `json:"workers"`
	Lines   map[string]uint64 `json:"lines,omitempty"` // HTTP request lines of all workers
}

// FollowedWorker is one worker's count.
type FollowedWorker struct {
	Received  uint64 `json:"received"` // frames
	Loops     uint64 `json:"loops"`
	TCP       uint64 `json:"tcp"` // sessions
	UDP       uint64 `json:"udp"`
	Other     uint64 `json:"other"`
	Closed    uint64 `json:"closed"`
	Reset     uint64 `json:"reset"`
	Untracked uint64 `json:"untracked"` // frames of sessions beyond the table, or of loops that were over
	Requests  uint64 `json:"requests"`
	Cold      uint64 `json:"cold"` // frames of the first loop, and the ticks they took
	ColdTicks uint64 `json:"cold_ticks"`
	Warm      uint64 `json:"warm"`
	WarmTicks uint64 `json:"warm_ticks"`
}
