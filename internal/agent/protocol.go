// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"twopath/internal/packet"
)

// Protocol is the version of the messages below; both ends must speak the same.
const Protocol = 1

// The methods, in the order of a trial.
const (
	methodHello    = "hello"
	methodPrepare  = "prepare"
	methodStart    = "start"
	methodCounters = "counters"
	methodRun      = "run"
	methodStop     = "stop"
	methodDrain    = "drain"
	methodFinish   = "finish"
	methodBye      = "bye"
	notifyLive     = "live"
)

// Role is what an agent does in a trial.
type Role string

// The roles.
const (
	Receive  Role = "receive"  // the SUT of a receive test: one engine, N workers
	Generate Role = "generate" // the peer of a receive test: XDP live frames
	Drop     Role = "drop"     // the limit: an XDP program that counts the run's frames and drops them
)

// Hello is what an agent says of itself.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	Kernel   string `json:"kernel"`
}

// Prepare tells an agent its part in the trial. Fields that a role does not use are left out.
type Prepare struct {
	Role     Role              `json:"role"`
	Device   string            `json:"device"` // interface name inside the agent's namespace
	Flow     packet.Flow       `json:"flow"`   // as the generator sends it
	Run      uint32            `json:"run"`    // run id of the stamps
	Engine   string            `json:"engine,omitempty"`
	Variant  string            `json:"variant,omitempty"`
	Options  map[string]string `json:"options,omitempty"` // the arm's options, resolved
	Strict   bool              `json:"strict,omitempty"`  // refuse rather than fall back
	CPUs     []int             `json:"cpus"`              // one per worker
	Queues   int               `json:"queues"`            // receive queues of the device
	MaxSize  int               `json:"max_size"`          // largest frame in bytes, FCS included
	Work     string            `json:"work,omitempty"`    // application work per packet, as --work says it
	Content  bool              `json:"content,omitempty"` // check the payload's pattern too
	Streams  int               `json:"streams"`           // generating cores
	NAPI     []int             `json:"napi,omitempty"`    // pids of the SUT's NAPI threads, for the CPU account
	SoftCPUs []int             `json:"soft_cpus,omitempty"`
	Generate *Generator        `json:"generate,omitempty"`
}

// Generator is the load.
type Generator struct {
	Sizes   []int   `json:"sizes"` // bytes with FCS, cycled per frame
	Rate    float64 `json:"rate"`  // frames/s in all; 0 floods
	Count   uint64  `json:"count"` // frames in all
	Batch   int     `json:"batch,omitempty"`
	CatchUp float64 `json:"catch_up,omitempty"` // x nominal rate at most after a stall; 0 is the default
	Burst   int     `json:"burst,omitempty"`    // frames; 0 is the default
	Faults  Faults  `json:"faults"`
}

// Faults are mistakes made on purpose, each in every k-th frame; 0 is never. Tests of the ledger use them.
type Faults struct {
	BadChecksum uint32 `json:"bad_checksum,omitempty"`
	Duplicate   uint32 `json:"duplicate,omitempty"`
	Swap        uint32 `json:"swap,omitempty"`
	WrongRun    uint32 `json:"wrong_run,omitempty"`
}

// Prepared is what was obtained, next to what was asked.
type Prepared struct {
	Effective map[string]any `json:"effective,omitempty"` // attach, bind, wait, batch, rcvbuf_bytes, ... as in the record
	Notes     []string       `json:"notes,omitempty"`     // falls to a lesser mode, each with its reason
}

// Counters is one reading of every witness of a side (names as in the ledger).
type Counters struct {
	At       int64             `json:"at"` // ns, CLOCK_MONOTONIC
	Counters map[string]uint64 `json:"counters"`
}

// Generated is what a generator did.
type Generated struct {
	Sent        uint64  `json:"sent"`
	Seconds     float64 `json:"seconds"` // first to last frame
	StartNS     int64   `json:"start_ns"`
	EndNS       int64   `json:"end_ns"`
	LateNS      uint64  `json:"late_ns"`        // schedule given up after stalls
	LateSlots   uint64  `json:"late_slots"`     // frames more than 1 ms late
	MaxLateNS   uint64  `json:"max_late_ns"`    // worst lateness of a frame
	MaxGapNS    uint64  `json:"max_gap_ns"`     // longest time in which the generator did not run
	WrongRun    uint64  `json:"wrong_run"`      // frames sent under another run id, on purpose
	Duplicates  uint64  `json:"duplicates"`     // frames sent twice, on purpose
	CapableNote string  `json:"note,omitempty"` // how frames are sent
}

// Drained tells how the end of the stream was waited for.
type Drained struct {
	Received uint64  `json:"received"`
	Seconds  float64 `json:"seconds"`
	Complete bool    `json:"complete"` // false: packets still came when the time was up
}

// Received is a receiver's result.
type Received struct {
	Received   uint64            `json:"received"` // datagrams of this run, duplicates included
	Unique     uint64            `json:"unique"`
	Duplicate  uint64            `json:"duplicate"`
	Reordered  uint64            `json:"reordered"`
	Late       uint64            `json:"late"`
	Foreign    uint64            `json:"foreign"`
	WrongRun   uint64            `json:"wrong_run"`
	Short      uint64            `json:"short"`
	CorruptIP  uint64            `json:"corrupt_ip"`
	CorruptUDP uint64            `json:"corrupt_udp"`
	BadContent uint64            `json:"bad_content"`
	Bytes      uint64            `json:"bytes"`    // payload bytes of this run
	Queued     uint64            `json:"queued"`   // found in queues after the end, never read
	FirstNS    int64             `json:"first_ns"` // CLOCK_MONOTONIC of the first and last batch
	LastNS     int64             `json:"last_ns"`
	EmptyPolls uint64            `json:"empty_polls"`
	SpinNS     uint64            `json:"spin_ns"`    // time in empty polls
	MaxGapNS   uint64            `json:"max_gap_ns"` // longest time in which a reader did not run though it should have
	PerWorker  []uint64          `json:"per_worker"`
	Highest    []uint64          `json:"highest"`  // highest frame number + 1 seen, per stream
	Counters   map[string]uint64 `json:"counters"` // the engine's own: syscalls, wakeups, kicks
	CPU        *CPU              `json:"cpu,omitempty"`
}

// CPU is processor time of the SUT between start and finish, from scheduler and softirq events (not sampled).
type CPU struct {
	TaskNS    uint64  `json:"task_ns"`    // reader threads
	NAPINS    uint64  `json:"napi_ns"`    // NAPI threads of the SUT's device
	SoftirqNS uint64  `json:"softirq_ns"` // NET_RX and NET_TX softirqs on the SUT's CPUs
	OtherNS   uint64  `json:"other_ns"`   // other tasks on the SUT's CPUs: a disturbance
	IdleNS    uint64  `json:"idle_ns"`
	WallNS    uint64  `json:"wall_ns"` // of the interval
	Switches  uint64  `json:"context_switches"`
	Source    string  `json:"source"` // bpf tracepoints, or task schedstat
	Ticks     float64 `json:"ticks_per_second"`
}

// Live is sent once a second while a trial runs.
type Live struct {
	Sent     uint64 `json:"sent,omitempty"`
	Received uint64 `json:"received,omitempty"`
}

type drainParams struct {
	Expect  uint64  `json:"expect"`  // unique frames sent: when all are in, the wait is over
	Quiet   float64 `json:"quiet"`   // seconds without a packet that end the wait
	Timeout float64 `json:"timeout"` // seconds at most
}
