// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// EchoMeterOptions shapes an echo meter.
type EchoMeterOptions struct {
	Match   FlowMatch // of the requests, addresses, source ports and run included; the meter takes their replies
	Streams int       // generating cores to follow, 1..256; 256 KiB each; 0 means 1
}

// EchoMeter is an XDP program for the device that requests leave from. It takes the replies out, accounts them by number,
// and notes what each took since its request's stamp. In ping-pong the generators wait for it (GeneratorOptions.PingPong).
type EchoMeter struct{ obj echometerObjects }

// EchoStats is what a meter saw of the run's replies. Received = Unique + Duplicate + OutsideWindow + Contended +
// OtherStream + CorruptPayload + WrongLength.
type EchoStats struct {
	Received, Bytes   uint64 // bytes without FCS
	Unique, Duplicate uint64 // exact within 2^20 numbers below the highest of a stream
	Reordered         uint64 // unique, but a higher number of its stream came earlier (RFC 4737)
	OutsideWindow     uint64 // too old to tell unique from duplicate
	Contended         uint64 // gave up on racing CPUs; 0 unless one number arrives on many at once
	OtherStream       uint64 // stream number at or above Streams: not followed
	CorruptPayload    uint64 // the pattern, at its first, middle and last byte
	WrongLength       uint64 // frame, IP and UDP lengths disagree

	LatencyCount                       uint64 // unique replies with a latency
	LatencySum, LatencyMin, LatencyMax uint64 // ns, arrival minus the stamp, exact
	LatencyOver                        uint64 // above what the histogram can tell, 137 s
	LatencyNegative                    uint64 // stamped in the future: another host's clock

	IPDVCount uint64 // pairs of replies whose numbers follow each other, one straight after the other
	IPDVSum   uint64 // ns, sum of the absolute differences of their latencies (RFC 3393)

	First, Last uint64 // CLOCK_MONOTONIC ns of the first and the last reply
}

// NewEchoMeter loads the program; attaching it is the caller's.
func NewEchoMeter(o EchoMeterOptions) (*EchoMeter, error) {
	m := o.Match
	if m.AnyRun || !m.Src.IsValid() || !m.Dst.IsValid() || m.SrcPorts < 1 {
		return nil, fmt.Errorf("echo meter: Match must name addresses, source ports and run")
	}
	match, err := m.flowMatch()
	if err != nil {
		return nil, fmt.Errorf("echo meter: %w", err)
	}
	if o.Streams == 0 {
		o.Streams = 1
	}
	if o.Streams < 1 || o.Streams > 256 {
		return nil, fmt.Errorf("echo meter: Streams is %d, want 1..256", o.Streams)
	}
	spec, err := loadEchometer()
	if err != nil {
		return nil, fmt.Errorf("echo meter: %w", err)
	}
	if err := setVariables(spec, map[string]any{echometerVarMatch: echometerFlowMatch(match), echometerVarNstreams: uint32(o.Streams)}); err != nil {
		return nil, fmt.Errorf("echo meter: %w", err)
	}
	spec.Maps[echometerMapSeen].MaxEntries = uint32(o.Streams * streamWords)
	e := &EchoMeter{}
	if err := load("echo meter", spec, &e.obj); err != nil {
		return nil, err
	}
	return e, nil
}

// Program returns the program, for Attach. It belongs to e.
func (e *EchoMeter) Program() *ebpf.Program { return e.obj.Echometer }

// Counters is as Redirect.Counters; the run's replies are under counted.
func (e *EchoMeter) Counters() (reasons map[string]uint64, perQueue []uint64, err error) {
	reasons, err = readReasons(e.obj.Reasons, redirectReasonREASON_COUNTED)
	if err != nil {
		return nil, nil, err
	}
	perQueue, err = readQueues(e.obj.Queues)
	return reasons, perQueue, err
}

// Stats returns what the meter saw so far, over all CPUs.
func (e *EchoMeter) Stats() (EchoStats, error) {
	var per []echometerEchoStats
	if err := e.obj.Stats.Lookup(uint32(0), &per); err != nil {
		return EchoStats{}, fmt.Errorf("read echo meter: %w", err)
	}
	var t EchoStats
	for i := range per {
		t.add(&per[i])
	}
	return t, nil
}

func (t *EchoStats) add(c *echometerEchoStats) {
	if c.Received == 0 {
		return
	}
	if c.LatencyCount > 0 && (t.LatencyCount == 0 || c.LatencyMinNs < t.LatencyMin) {
		t.LatencyMin = c.LatencyMinNs
	}
	if t.First == 0 || c.FirstNs < t.First {
		t.First = c.FirstNs
	}
	t.Last = max(t.Last, c.LastNs)
	t.LatencyMax = max(t.LatencyMax, c.LatencyMaxNs)
	t.LatencySum += c.LatencySumNs
	t.LatencyCount += c.LatencyCount
	t.LatencyOver += c.LatencyOver
	t.LatencyNegative += c.LatencyNegative
	t.IPDVCount += c.IpdvCount
	t.IPDVSum += c.IpdvSumNs
	t.Received += c.Received
	t.Bytes += c.Bytes
	t.Unique += c.Unique
	t.Duplicate += c.Duplicate
	t.Reordered += c.Reordered
	t.OutsideWindow += c.OutsideWindow
	t.Contended += c.Contended
	t.OtherStream += c.OtherStream
	t.CorruptPayload += c.CorruptPayload
	t.WrongLength += c.WrongLength
}

// Latencies returns the distribution of the latencies so far.
func (e *EchoMeter) Latencies() ([]LatencyBucket, error) { return readLatencies(e.obj.Latencies) }

// Close unloads the program, unless a link still holds it. It may be called twice.
func (e *EchoMeter) Close() error { return e.obj.Close() }
