// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"slices"

	"twopath/compare"
)

// CPUTimes is one CPU's time by who had it, in ns since the meter began. The classes exclude each other: time in a
// softirq or a device interrupt is not in the task's that it interrupted, so the fields add up to elapsed time. A
// threaded NAPI is a task and raises no softirq; ksoftirqd's work is softirq time.
type CPUTimes struct {
	CPU   int
	Idle  uint64
	SUT   uint64 // threads of the SUT's agent that are the engine: the readers, or the senders of a transmit test
	NAPI  uint64 // NAPI threads of the SUT's device
	Other uint64 // all other tasks
	NetRX uint64 // softirqs, by vector
	NetTX uint64
	Timer uint64
	Soft  uint64 // all other vectors
	IRQ   uint64 // device interrupts
}

// CPUSample is all CPUs at one moment.
type CPUSample struct {
	At   int64 // ns CLOCK_MONOTONIC
	CPUs []CPUTimes
}

// Delta is the time between two samples of the same meter.
func (after CPUSample) Delta(before CPUSample) (CPUSample, error) {
	d := CPUSample{At: after.At - before.At}
	if len(after.CPUs) != len(before.CPUs) {
		return d, fmt.Errorf("CPU samples of %d and %d CPUs", len(before.CPUs), len(after.CPUs))
	}
	for i, a := range after.CPUs {
		b := before.CPUs[i]
		if a.CPU != b.CPU {
			return d, fmt.Errorf("CPU samples differ in order: %d and %d", b.CPU, a.CPU)
		}
		t := CPUTimes{CPU: a.CPU}
		for _, f := range []struct {
			to   *uint64
			a, b uint64
		}{
			{&t.Idle, a.Idle, b.Idle}, {&t.SUT, a.SUT, b.SUT}, {&t.NAPI, a.NAPI, b.NAPI}, {&t.Other, a.Other, b.Other},
			{&t.NetRX, a.NetRX, b.NetRX}, {&t.NetTX, a.NetTX, b.NetTX}, {&t.Timer, a.Timer, b.Timer},
			{&t.Soft, a.Soft, b.Soft}, {&t.IRQ, a.IRQ, b.IRQ},
		} {
			if f.a < f.b {
				return d, fmt.Errorf("CPU %d: time went back from %d to %d ns", a.CPU, f.b, f.a)
			}
			*f.to = f.a - f.b
		}
		d.CPUs = append(d.CPUs, t)
	}
	return d, nil
}

// CostInput is what a trial's cost is made of.
type CostInput struct {
	Times CPUSample // a Delta
	// SoftirqCPUs are the CPUs whose NET_RX and NET_TX softirqs are the SUT's: its own cores, or with placement
	// "sender" the sender's core, where the kernel does the SUT's receiving. Tasks are told by class, on any CPU.
	SoftirqCPUs []int
	Packets     uint64 // unique packets received (or sent, in a transmit test)
	SpinNs      uint64 // the readers' empty polls (SpinMeter), which is inside the SUT's task time
	Rate        TickRate
	Method      string // names the witness, as in compare.CPU
}

// CPUCost is what the SUT's path took, in ns of CPU.
type CPUCost struct {
	ElapsedNs int64
	Packets   uint64
	TaskNs    uint64 // SUT threads, without SpinNs
	SpinNs    uint64 // their empty polls
	NAPINs    uint64 // NAPI threads
	SoftirqNs uint64 // NET_RX and NET_TX softirqs on the SUT's CPUs
	OtherNs   uint64 // other tasks on the SUT's CPUs: not the SUT's cost, but its disturbance
	IRQNs     uint64 // device interrupts on the SUT's CPUs, of all devices: not in WorkNs
	// SpinClamped says that the readers reported more spin than their threads ran, so SpinNs was cut to that.
	SpinClamped bool
	Rate        TickRate
	Method      string
}

// Cost sorts a trial's CPU time. It counts softirq and NAPI time for every arm alike, since AF_XDP only moves work there.
func Cost(in CostInput) (CPUCost, error) {
	if in.Times.At <= 0 {
		return CPUCost{}, fmt.Errorf("cpu cost: elapsed time is %d ns", in.Times.At)
	}
	c := CPUCost{ElapsedNs: in.Times.At, Packets: in.Packets, Rate: in.Rate, Method: in.Method}
	var task uint64
	missing := slices.Clone(in.SoftirqCPUs)
	for _, t := range in.Times.CPUs {
		task += t.SUT
		c.NAPINs += t.NAPI
		if slices.Contains(in.SoftirqCPUs, t.CPU) {
			c.SoftirqNs += t.NetRX + t.NetTX
			c.OtherNs += t.Other
			c.IRQNs += t.IRQ
			missing = slices.DeleteFunc(missing, func(cpu int) bool { return cpu == t.CPU })
		}
	}
	if len(missing) > 0 {
		return CPUCost{}, fmt.Errorf("cpu cost: no times of CPUs %v", missing)
	}
	c.SpinNs, c.SpinClamped = min(in.SpinNs, task), in.SpinNs > task
	c.TaskNs = task - c.SpinNs
	return c, nil
}

// WorkNs is the time spent on packets: threads without empty polls, NAPI and softirqs.
func (c CPUCost) WorkNs() uint64 { return c.TaskNs + c.NAPINs + c.SoftirqNs }

// Cores is how many cores the path held, empty polls included.
func (c CPUCost) Cores() float64 { return float64(c.WorkNs()+c.SpinNs) / float64(c.ElapsedNs) }

// errNoPackets is why a cost per packet is missing.
var errNoPackets = errors.New("no packets: no cost per packet")

// WorkPerPacket is ns of work for each packet.
func (c CPUCost) WorkPerPacket() (float64, error) { return c.perPacket(c.WorkNs()) }

// SpinPerPacket is ns of empty polls for each packet.
func (c CPUCost) SpinPerPacket() (float64, error) { return c.perPacket(c.SpinNs) }

// CoresPerMpps is how many cores the work for a million packets a second takes, without empty polls.
func (c CPUCost) CoresPerMpps() (float64, error) {
	ns, err := c.WorkPerPacket()
	return ns / 1000, err // ns/packet * 10^6 packets/s / 10^9 ns/s
}

// TSCPerPacket is ticks the SUT's threads ran for each packet, empty polls included.
func (c CPUCost) TSCPerPacket() (float64, error) {
	ns, err := c.perPacket(c.TaskNs + c.SpinNs)
	return ns * c.Rate.PerSecond / 1e9, err
}

func (c CPUCost) perPacket(ns uint64) (float64, error) {
	if c.Packets == 0 {
		return 0, errNoPackets
	}
	return float64(ns) / float64(c.Packets), nil
}

// Record gives the cost as the record has it; without packets what is per packet is missing.
func (c CPUCost) Record() compare.CPU {
	cores := c.Cores()
	r := compare.CPU{Cores: &cores, Method: c.Method}
	for _, f := range []struct {
		to **float64
		of func() (float64, error)
	}{
		{&r.WorkNsPerPacket, c.WorkPerPacket}, {&r.SpinNsPerPacket, c.SpinPerPacket}, {&r.CoresPerMpps, c.CoresPerMpps},
		{&r.SoftirqNsPerPacket, func() (float64, error) { return c.perPacket(c.NAPINs + c.SoftirqNs) }},
	} {
		if v, err := f.of(); err == nil {
			*f.to = &v
		}
	}
	return r
}
