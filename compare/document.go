// SPDX-License-Identifier: Apache-2.0

package compare

import "time"

// SchemaID names the record format. Fields may be added under the same id;
// none is renamed, removed or given another unit.
const SchemaID = "twopath/v1"

// Document is the record of one comparison, run or search of one cell (one
// test at one size and rate). A sweep is a list of documents, see
// [WriteResults].
type Document struct {
	Schema  string `json:"schema"`  // SchemaID
	Version string `json:"version"` // of the program that wrote it
	// Started is the wall-clock time of the first trial; Finished is null
	// while the run is under way or when it was cut short.
	Started  time.Time  `json:"started"`
	Finished *time.Time `json:"finished"`
	Argv     []string   `json:"argv"`
	Test     string     `json:"test"`
	// Seed is the seed the schedule and the bootstrap really used.
	Seed uint64 `json:"seed"`
	Plan Plan   `json:"plan"`
	// Traffic is the load after resolving the plan's size and rate.
	Traffic Traffic `json:"traffic"`
	Rig     Rig     `json:"rig"`
	Host    Host    `json:"host"`
	// PeerHost is null when the peer is the same machine.
	PeerHost *Host     `json:"peer_host"`
	Warnings []Warning `json:"warnings"`
	Arms     []Arm     `json:"arms"`
	Trials   []Trial   `json:"trials"`
	// Limit is the ceiling of this rig (XDP_DROP in the receiver's place).
	Limit *Limit `json:"limit"`
	// Search is set when the document is of a rate search; its arms have goals then.
	Search      *SearchInfo  `json:"search,omitempty"`
	Comparisons []Comparison `json:"comparisons"`
	// Verdict is the headline comparison; null when nothing was compared.
	Verdict *Comparison `json:"verdict"`
	// Requirements are the outcomes of --require, in the order given.
	Requirements []RequirementResult `json:"requirements,omitempty"`
	// Reproduces says beside which step of which published measurement the document stands; null for all others.
	Reproduces *Reproduction `json:"reproduces,omitempty"`
	// Incomplete says the plan was not carried out to its end; Reason is why.
	Incomplete bool   `json:"incomplete"`
	Reason     string `json:"reason,omitempty"`
}

// Sends reports whether the SUT was the sender.
func (d *Document) Sends() bool {
	t, _ := LookupTest(d.Test)
	return t.Sends
}

// Reproduction names a step of a published measurement.
type Reproduction struct {
	Source string `json:"source"` // as in "reproduce line-rate-64"
	Step   string `json:"step"`
}

// Warning is a caveat a reader must see; ID is stable, for filters and docs.
type Warning struct {
	ID   string `json:"id"`
	Text string `json:"text"`
}

// Limit is a rate that no arm on this rig can exceed.
type Limit struct {
	Name string   `json:"name"` // "xdp_drop", "xdp_live_frames"
	PPS  *float64 `json:"pps"`  // under a flood
	// LossRatioAtLoad is its median loss under the cell's own load: the rig's doing, not an arm's. Null under a flood.
	LossRatioAtLoad *float64 `json:"loss_ratio_at_load,omitempty"`
	// LatencyNs is what an echo takes with it in the responder's place, under the cell's own load: what the rig and the
	// yardstick take themselves.
	LatencyNs *Latency `json:"latency_ns,omitempty"`
}

// Traffic is what was sent, in absolute terms.
type Traffic struct {
	Size         Size     `json:"size"`          // frame bytes with FCS, or "imix"
	FrameBytes   float64  `json:"frame_bytes"`   // mean, with FCS
	PayloadBytes float64  `json:"payload_bytes"` // mean UDP payload
	IPVersion    int      `json:"ip_version"`    // 4 or 6
	Rate         Rate     `json:"rate"`          // as asked
	PPS          *float64 `json:"pps"`           // asked for; null for max
	WireBPS      *float64 `json:"wire_bps"`      // bits per second with preamble and gap; null for max
	Flows        int      `json:"flows"`
	Queues       int      `json:"queues"`
	// Fragments is set in the test of that name. Packets are datagrams then; Size and FrameBytes are of a frame that would take
	// as long on the wire as the fragments of a whole datagram.
	Fragments *FragmentTraffic `json:"fragments,omitempty"`
	Capture   *Capture         `json:"capture,omitempty"` // of a replay
}

// Rig is where it ran.
type Rig struct {
	Kind      string    `json:"kind"` // veth, ports, hosts
	SUT       string    `json:"sut"`  // interface
	Peer      string    `json:"peer"` // interface, with host for two hosts
	Driver    string    `json:"driver"`
	Placement string    `json:"placement"` // shared, split, sender
	CPUs      CPUs      `json:"cpus"`      // by role: sut, peer, napi, ...
	Generator Generator `json:"generator"`
}

// Generator is the sender's own benchmark, taken before the trials.
type Generator struct {
	Method string `json:"method"` // xdp-live-frames, af_xdp, af_packet, af_inet
	CPU    *int   `json:"cpu"`
	// OfferedPPS is the most it offered in the headroom trial.
	OfferedPPS *float64 `json:"offered_pps"`
	// Headroom is OfferedPPS over the asked rate; null for max.
	Headroom *float64 `json:"headroom"`
}

// Host is what is known of a machine. Facts holds everything without a field
// of its own (mitigations, governor, NIC firmware, ...), by dotted name.
type Host struct {
	Name        string            `json:"name"`
	OS          string            `json:"os"`     // distribution, as in os-release
	Kernel      string            `json:"kernel"` // uname -r
	Arch        string            `json:"arch"`
	CPUModel    string            `json:"cpu_model"`
	CPUs        int               `json:"cpus"`
	Virtual     string            `json:"virtual"` // hypervisor; empty on bare metal
	MemoryBytes uint64            `json:"memory_bytes"`
	Facts       map[string]string `json:"facts,omitempty"`
}
