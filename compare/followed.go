// SPDX-License-Identifier: Apache-2.0

package compare

// Capture is what a replay sends, and what of the file it leaves out: the same for every arm.
type Capture struct {
	Path    string   `json:"path"`
	SHA256  string   `json:"sha256"`
	Format  string   `json:"format"` // pcap, pcapng
	Links   []string `json:"links"`  // link types, all sent as Ethernet
	Records uint64   `json:"records"`
	Frames  uint64   `json:"frames"` // that are sent in each loop
	Bytes   uint64   `json:"bytes"`  // of these, without FCS
	// Skipped records by reason: cut, empty, short, too_long, no_ethernet. Frames and Skipped add up to Records.
	Skipped   map[string]uint64 `json:"skipped"`
	Backwards uint64            `json:"backwards"` // records earlier than one before them, sent with that
	Seconds   float64           `json:"seconds"`   // first to last frame, in the capture
	Speed     float64           `json:"speed"`     // multiple of its own timing; 0: at the rate
	Loops     int               `json:"loops"`     // times a trial sends it
	MAC       string            `json:"mac"`       // destination: other (no host's), sut, keep
	Hosts     string            `json:"hosts,omitempty"`
}

// Followed is what the SUT of a replay saw. Every loop begins with an empty table, so that sessions and requests are those of
// the capture times the loops.
type Followed struct {
	Workers []FollowedWorker  `json:"workers"`
	Lines   map[string]uint64 `json:"lines,omitempty"` // HTTP request lines of all workers; "" sums those beyond what is kept
}

// FollowedWorker is one worker's share.
type FollowedWorker struct {
	Received  uint64 `json:"received"` // frames
	Loops     uint64 `json:"loops"`
	TCP       uint64 `json:"tcp"` // sessions
	UDP       uint64 `json:"udp"`
	Other     uint64 `json:"other"`
	Closed    uint64 `json:"closed"` // TCP sessions both ends finished
	Reset     uint64 `json:"reset"`
	Untracked uint64 `json:"untracked"` // frames of sessions beyond what the table holds
	Requests  uint64 `json:"requests"`  // HTTP/1
	Cold      uint64 `json:"cold"`      // frames of the first loop
	// TSC cycles per frame while the program had it: the first loop, and all others.
	TSCCold *float64 `json:"tsc_cold"`
	TSCWarm *float64 `json:"tsc_warm"`
}

// Sessions are those of all protocols and workers.
func (f *Followed) Sessions() (n uint64) {
	for _, w := range f.Workers {
		n += w.TCP + w.UDP + w.Other
	}
	return n
}

// Requests are those of all workers.
func (f *Followed) Requests() (n uint64) {
	for _, w := range f.Workers {
		n += w.Requests
	}
	return n
}
