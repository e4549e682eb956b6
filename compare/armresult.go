// SPDX-License-Identifier: Apache-2.0

package compare

// Arm is the outcome of one arm over its valid measured trials. Its figures
// are medians over trials; its counts are sums.
type Arm struct {
	Name   string `json:"name"` // canonical, [ArmSpec.String]; "#2" for an A/A twin
	Engine string `json:"engine"`
	// Requested is what the user's name of the arm said: "variant" and each option.
	Requested map[string]string `json:"requested"`
	// Effective is what the kernel and the driver granted.
	Effective Effective `json:"effective"`
	// Candidates are the settings tried in pilot trials to choose Effective.
	Candidates []Candidate `json:"candidates,omitempty"`

	Trials int `json:"trials"` // measured, of any validity
	Valid  int `json:"valid"`  // of these

	OfferedPPS  *float64 `json:"offered_pps"`  // sent by the peer, per second
	ReceivedPPS *float64 `json:"received_pps"` // unique, per second
	LossRatio   *float64 `json:"loss_ratio"`   // lost/sent, over all valid trials together
	WireBPS     *float64 `json:"wire_bps"`     // received, with preamble and gap
	// NsPerPacket is elapsed time per received packet, 1e9/ReceivedPPS.
	NsPerPacket  *float64 `json:"ns_per_packet"`
	CPU          CPU      `json:"cpu"`
	TSCPerPacket *float64 `json:"tsc_per_packet"` // TSC cycles of the reading threads
	LatencyP50Ns *float64 `json:"latency_p50_ns,omitempty"`
	LatencyP99Ns *float64 `json:"latency_p99_ns,omitempty"`
	// LatencyNs is the distribution over all valid trials together, which a rare event of one trial is in.
	LatencyNs  *Latency `json:"latency_ns,omitempty"`
	LateMeanNs *float64 `json:"late_mean_ns,omitempty"` // how late a packet was sent on average
	LateMaxNs  uint64   `json:"late_max_ns,omitempty"`

	// Totals over the valid measured trials: Sent = Received + sum(Ledger) + Unexplained.
	Sent        uint64          `json:"sent"`
	Handed      *uint64         `json:"handed,omitempty"` // where the SUT sends: Handed = Sent + sum(Unsent)
	Unsent      []LedgerRow     `json:"unsent,omitempty"`
	Received    uint64          `json:"received"`
	Lost        uint64          `json:"lost"`
	Duplicate   uint64          `json:"duplicate"`
	Reordered   uint64          `json:"reordered"`
	Corrupt     uint64          `json:"corrupt"`
	Foreign     uint64          `json:"foreign"`
	Late        uint64          `json:"late"`
	PerWorker   []uint64        `json:"per_worker,omitempty"` // read by each worker, duplicates included
	Fragments   *TrialFragments `json:"fragments,omitempty"`
	Ledger      []LedgerRow     `json:"ledger"`
	Unexplained uint64          `json:"unexplained"`

	// Set by a rate search (RFC 9971): relevant bounds and conditional throughput.
	LowerPPS       *float64 `json:"lower_pps,omitempty"`
	UpperPPS       *float64 `json:"upper_pps,omitempty"`
	ConditionalPPS *float64 `json:"conditional_pps,omitempty"`
	// Goals are the results of every goal of a search; the three above are the first one's.
	Goals []GoalResult `json:"goals,omitempty"`
}

// Effective is how an arm really ran. Empty and zero mean "does not apply".
type Effective struct {
	Attach      string `json:"attach"`       // none, generic, native, offload
	Bind        string `json:"bind"`         // zerocopy, copy
	Wait        string `json:"wait"`         // block, spin, poll, busypoll
	NAPI        string `json:"napi"`         // softirq, threaded, inline
	Sched       string `json:"sched"`        // of the NAPI thread: other, fifo:50
	Placement   string `json:"placement"`    // shared, split, sender
	Batch       int    `json:"batch"`        // packets per system call or ring visit
	RcvbufBytes int    `json:"rcvbuf_bytes"` // as read back: the kernel doubles what is asked
	Ring        int    `json:"ring"`         // descriptors
	GRO         string `json:"gro"`          // on, off; "udp" for the UDP_GRO socket option
	Csum        string `json:"csum"`         // verified, off
	Sockets     int    `json:"sockets"`
	Queues      int    `json:"queues"`
	CPUs        []int  `json:"cpus,omitempty"`      // of the SUT, readers first
	NAPICPUs    []int  `json:"napi_cpus,omitempty"` // by queue
	Driver      string `json:"driver,omitempty"`
	// Other holds what has no field of its own, host knobs for one.
	Other map[string]string `json:"other,omitempty"`
}

// Candidate is one setting tried for an arm before the measured trials.
type Candidate struct {
	Setting     string   `json:"setting"` // "wait=poll sched=other"
	ReceivedPPS *float64 `json:"received_pps"`
	LossRatio   *float64 `json:"loss_ratio"`
	Chosen      bool     `json:"chosen"`
	Note        string   `json:"note,omitempty"` // why it could not be used, or why nothing else was tried
	// Of latency tests.
	LatencyP50Ns *float64 `json:"latency_p50_ns,omitempty"`
	LatencyP99Ns *float64 `json:"latency_p99_ns,omitempty"`
}

// CPU is time of the SUT's cores, softirq and NAPI threads included. Work is
// all time but the empty polls of a spinning reader; those are Spin.
type CPU struct {
	WorkNsPerPacket *float64 `json:"work_ns_per_packet"` // per received packet
	SpinNsPerPacket *float64 `json:"spin_ns_per_packet"` // per received packet
	Cores           *float64 `json:"cores"`              // held, work and spin
	CoresPerMpps    *float64 `json:"cores_per_mpps"`     // work alone
	// Split of the work, where the witness can tell.
	UserNsPerPacket    *float64 `json:"user_ns_per_packet,omitempty"`
	SystemNsPerPacket  *float64 `json:"system_ns_per_packet,omitempty"`
	SoftirqNsPerPacket *float64 `json:"softirq_ns_per_packet,omitempty"`
	// Method names the witness: "sched_switch+softirq", "cpuacct", "schedstat".
	Method string `json:"method,omitempty"`
}
