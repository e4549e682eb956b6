// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// streamWords is STREAM_WORDS of c/seen.h.
const streamWords = 32768

// SinkOptions shapes a sink program.
type SinkOptions struct {
	Match     FlowMatch
	Frags     bool // accept frames of several buffers; of these only the first buffer's content is checked
	Flows     int  // flow counters, by (source port - Match.SrcPort) mod Flows, 1..65536; 0 means 1024
	Streams   int  // sending cores to follow, 1..256; 256 KiB each; 0 means 1
	VerifyUDP bool // check UDP checksums; not for frames the kernel sent over veth, it leaves theirs to a device. Not with Frags
}

// Sink is an XDP program that receives the run's frames without a reader: counts, checks and drops each.
type Sink struct {
	obj   sinkObjects
	flows int
}

// SinkStats is what a sink saw of the run's frames. Received = Unique + Duplicate + OutsideWindow + Contended +
// OtherStream + CorruptIP + CorruptUDP + CorruptPayload + WrongLength.
type SinkStats struct {
	Received, Bytes                    uint64 // bytes without FCS
	Unique, Duplicate                  uint64 // exact within 2^20 numbers below the highest of a stream
	Reordered                          uint64 // unique, but a higher number of its stream came earlier (RFC 4737); exact while a stream arrives on one CPU
	Gaps, Skipped                      uint64 // times numbers were skipped, and numbers skipped, whether or not they came later
	OutsideWindow                      uint64 // too old to tell unique from duplicate
	Contended                          uint64 // gave up on racing CPUs; 0 unless one number arrives on many at once
	OtherStream                        uint64 // stream number at or above Streams: not followed
	CorruptIP, CorruptUDP              uint64 // checksums
	CorruptPayload                     uint64 // the pattern, at its first, middle and last byte
	WrongLength                        uint64 // frame, IP and UDP lengths disagree
	LatencyCount                       uint64
	LatencySum, LatencyMin, LatencyMax uint64 // ns, arrival minus intended send time
	LatencyNegative                    uint64 // stamped in the future: the clocks differ
	LengthMin, LengthMax               uint64 // bytes without FCS
}

// NewSink loads the program; attaching it is the caller's.
func NewSink(o SinkOptions) (*Sink, error) {
	match, err := o.Match.flowMatch()
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	if o.Match.AnyRun {
		return nil, fmt.Errorf("sink: Match.AnyRun: frames without the run's stamp cannot be checked")
	}
	if o.VerifyUDP && o.Frags {
		return nil, fmt.Errorf("sink: VerifyUDP with Frags: a checksum over several buffers is not computed")
	}
	if o.Flows == 0 {
		o.Flows = 1024
	}
	if o.Flows < 1 || o.Flows > 65536 {
		return nil, fmt.Errorf("sink: Flows is %d, want 1..65536", o.Flows)
	}
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.Streams < 1 || o.Streams > 256 {
		return nil, fmt.Errorf("sink: Streams is %d, want 1..256", o.Streams)
	}
	spec, err := loadSink()
	if err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	if err := setVariables(spec, map[string]any{
		sinkVarMatch: sinkFlowMatch(match), sinkVarNflows: uint32(o.Flows), sinkVarNstreams: uint32(o.Streams),
		sinkVarVerifyUdp: uint32(flag(o.VerifyUDP)),
	}); err != nil {
		return nil, fmt.Errorf("sink: %w", err)
	}
	spec.Maps[sinkMapFlows].MaxEntries = uint32(o.Flows)
	spec.Maps[sinkMapSeen].MaxEntries = uint32(o.Streams * streamWords)
	setFrags(spec.Programs[sinkProgSink], o.Frags)
	s := &Sink{flows: o.Flows}
	if err := load("sink", spec, &s.obj); err != nil {
		return nil, err
	}
	return s, nil
}

// Program returns the program, for Attach. It belongs to s.
func (s *Sink) Program() *ebpf.Program { return s.obj.Sink }

// Counters is as Redirect.Counters; the run's frames are under counted.
func (s *Sink) Counters() (reasons map[string]uint64, perQueue []uint64, err error) {
	reasons, err = readReasons(s.obj.Reasons, redirectReasonREASON_COUNTED)
	if err != nil {
		return nil, nil, err
	}
	perQueue, err = readQueues(s.obj.Queues)
	return reasons, perQueue, err
}

// Stats returns what the sink saw so far, over all CPUs.
func (s *Sink) Stats() (SinkStats, error) {
	var per []sinkSinkStats
	if err := s.obj.Stats.Lookup(uint32(0), &per); err != nil {
		return SinkStats{}, fmt.Errorf("read sink: %w", err)
	}
	var t SinkStats
	for _, c := range per {
		if c.Received == 0 {
			continue
		}
		if t.LengthMin == 0 || c.LengthMin < t.LengthMin {
			t.LengthMin = c.LengthMin
		}
		t.LengthMax = max(t.LengthMax, c.LengthMax)
		if c.LatencyCount > 0 && (t.LatencyCount == 0 || c.LatencyMinNs < t.LatencyMin) {
			t.LatencyMin = c.LatencyMinNs
		}
		t.LatencyMax = max(t.LatencyMax, c.LatencyMaxNs)
		t.LatencySum += c.LatencySumNs
		t.LatencyCount += c.LatencyCount
		t.LatencyNegative += c.LatencyNegative
		t.Received += c.Received
		t.Bytes += c.Bytes
		t.Unique += c.Unique
		t.Duplicate += c.Duplicate
		t.Reordered += c.Reordered
		t.Gaps += c.Gaps
		t.Skipped += c.Skipped
		t.OutsideWindow += c.OutsideWindow
		t.Contended += c.Contended
		t.OtherStream += c.OtherStream
		t.CorruptIP += c.CorruptIp
		t.CorruptUDP += c.CorruptUdp
		t.CorruptPayload += c.CorruptPayload
		t.WrongLength += c.WrongLength
	}
	return t, nil
}

// Flows returns the run's frames by flow, (source port - Match.SrcPort) mod Flows.
func (s *Sink) Flows() ([]uint64, error) {
	out := make([]uint64, s.flows)
	for f := range out {
		n, err := sumPerCPU(s.obj.Flows, uint32(f))
		if err != nil {
			return nil, fmt.Errorf("read flow %d: %w", f, err)
		}
		out[f] = n
	}
	return out, nil
}

// Close unloads the program, unless a link still holds it. It may be called twice.
func (s *Sink) Close() error { return s.obj.Close() }
