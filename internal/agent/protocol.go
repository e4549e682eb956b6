// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"twopath/internal/measure"
	"twopath/internal/packet"
)

// Protocol is the version of the messages below; both ends must speak the same.
const Protocol = 1

// The methods, in the order of a trial.
const (
	methodHello    = "hello"
	methodPlace    = "place" // on another host only, once for all trials
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
	Receive   Role = "receive"  // the SUT of a receive test: one engine, N workers
	Generate  Role = "generate" // the peer of a receive test: XDP live frames
	Drop      Role = "drop"     // the limit: an XDP program that counts the run's frames and drops them
	Send      Role = "send"     // the SUT of a send test: one engine, N workers, a stream each
	Listen    Role = "serve"    // the SUT of a connection test: an engine's TCP server, N workers
	Dial      Role = "dial"     // its peer: an engine's TCP client, N workers
	Replaying Role = "replay"   // the peer of a replay: a capture's frames
	Following Role = "follow"   // its SUT: one engine, N workers that follow sessions
	Count     Role = "count"    // the peer of a send test: an XDP program that checks, counts and drops the run's frames
)

// Hello is what an agent says of itself.
type Hello struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	Kernel   string `json:"kernel"`
}

// Place asks an agent on another host to get its port ready, and to keep it so until it leaves.
type Place struct {
	Device    string `json:"device"`
	Neighbour string `json:"neighbour"` // MAC address of the port at the other end
}

// Placed is the port of another host.
type Placed struct {
	Device string `json:"device"`
	MAC    string `json:"mac"`
	CPUs   []int  `json:"cpus"` // that agents may use there
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
	Every    uint64            `json:"every,omitempty"`   // frames that make a milestone; 0 is none
	NAPI     []int             `json:"napi,omitempty"`    // pids of the SUT's NAPI threads, for the CPU account
	SoftCPUs []int             `json:"soft_cpus,omitempty"`
	Generate *Generator        `json:"generate,omitempty"`
	Connect  *Connecting       `json:"connect,omitempty"`
	Pinger   *Pinger           `json:"pinger,omitempty"` // of Ping
	DNS      *DNS              `json:"dns,omitempty"`

	// Fragments is given in the test of that name, to both sides; the peer's Generate has rate and count, in datagrams.
	Fragments *Fragments `json:"fragments,omitempty"`
	Replay    *Replay    `json:"replay,omitempty"`
}

// MethodXSK has the peer of a receive test send through AF_XDP sockets, one on each of its queues, instead of as XDP live
// frames.
const MethodXSK = "af_xdp"

// Generator is the load.
type Generator struct {
	Method  string  `json:"method,omitempty"`  // MethodXSK; "" is XDP live frames
	Sizes   []int   `json:"sizes"`             // bytes with FCS, cycled per frame
	Rate    float64 `json:"rate"`              // frames/s in all; 0 floods
	Count   uint64  `json:"count"`             // frames in all; 0 is no limit
	Seconds float64 `json:"seconds,omitempty"` // ends a load without a count
	// Coalesce lets the generator hand over what is due within some 20 us together, as a NIC that moderates its interrupts.
	Coalesce bool    `json:"coalesce,omitempty"`
	Batch    int     `json:"batch,omitempty"`
	CatchUp  float64 `json:"catch_up,omitempty"` // x nominal rate at most after a stall; 0 is the default
	Burst    int     `json:"burst,omitempty"`    // frames; 0 is the default
	Faults   Faults  `json:"faults"`
}

// Faults are mistakes made on purpose, each in every k-th frame; 0 is never. Tests of the ledger use them.
type Faults struct {
	BadChecksum uint32 `json:"bad_checksum,omitempty"`
	Duplicate   uint32 `json:"duplicate,omitempty"`
	Swap        uint32 `json:"swap,omitempty"`
	WrongRun    uint32 `json:"wrong_run,omitempty"`
	// Of AF_XDP senders only: a descriptor of length 0, and one longer than the device takes.
	BadDescriptor uint32 `json:"bad_descriptor,omitempty"`
	TooLong       uint32 `json:"too_long,omitempty"`
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
	Sent       uint64     `json:"sent"`       // frames handed to the device, duplicates included
	Duplicates uint64     `json:"duplicates"` // of these, sent twice on purpose
	PerStream  []uint64   `json:"per_stream"` // numbers used by each generating core
	Seconds    float64    `json:"seconds"`    // first to last frame
	StartNS    int64      `json:"start_ns"`   // CLOCK_MONOTONIC of the generating host
	EndNS      int64      `json:"end_ns"`
	ShiftedNS  uint64     `json:"shifted_ns"`          // time in which nothing was offered since the generator could not catch up
	LateSlots  uint64     `json:"late_slots"`          // frames more than 1 ms late
	LateNS     uint64     `json:"late_ns"`             // sum over all frames of how late they were
	MaxLateNS  uint64     `json:"max_late_ns"`         // worst lateness of a frame
	MaxGapNS   uint64     `json:"max_gap_ns"`          // longest time in which the generator did not run
	Stopped    bool       `json:"stopped"`             // ended before its count
	Failed     string     `json:"failed,omitempty"`    // why it ended, when its device went away
	Abandoned  uint64     `json:"abandoned,omitempty"` // ping-pong: replies waited for in vain
	Runs       int        `json:"runs"`                // system calls; each after the first is a hole in the load
	Sending    *Sending   `json:"sending,omitempty"`
	Connected  *Connected `json:"connected,omitempty"`

	// Fragments is set in the test of that name; Sent counts its frames then.
	Fragments *FragmentsSent `json:"fragments,omitempty"`
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
	SpinNS     uint64            `json:"spin_ns"`      // time in empty polls
	StallNS    uint64            `json:"stall_ns"`     // time in which the machine under a reader stood still
	MaxStallNS uint64            `json:"max_stall_ns"` // longest of these
	Stopped    uint64            `json:"stopped"`      // how often the reader's process was stopped and continued (SIGCONT)
	PerWorker  []uint64          `json:"per_worker"`
	Milestones []Milestone       `json:"milestones,omitempty"`
	Highest    []uint64          `json:"highest"`             // highest frame number + 1 seen, per stream
	Counters   map[string]uint64 `json:"counters"`            // the engine's own: syscalls, wakeups, kicks
	ByDevice   bool              `json:"by_device,omitempty"` // nothing is read: the device's counter is the count
	CPU        *CPU              `json:"cpu,omitempty"`
	Latency    *Latency          `json:"latency,omitempty"` // of Ping
	Connected  *Connected        `json:"connected,omitempty"`
	Followed   *Followed         `json:"followed,omitempty"`
}

// Milestone is what a worker needed for the frames since the one before.
type Milestone struct {
	Worker    int    `json:"worker"`
	Packets   uint64 `json:"packets"`
	Bytes     uint64 `json:"bytes"` // payload
	ElapsedNS uint64 `json:"elapsed_ns"`
	Waits     uint64 `json:"waits"`
	Calls     uint64 `json:"calls"`
}

// CPU is processor time between start and finish by CPU and owner, and how it was taken.
type CPU struct {
	Times          measure.CPUSample `json:"times"`
	Method         string            `json:"method"` // names the witness
	TicksPerSecond float64           `json:"ticks_per_second"`
	Switches       uint64            `json:"context_switches"` // of the reading threads
	// Waited is the longest time in ns that a reading thread was ready to run and did not, NAPI's turns included; null where
	// the kernel does not tell.
	Waited *uint64 `json:"waited_ns,omitempty"`
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
