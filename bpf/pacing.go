// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"
	"math"
	"net"
	"time"
)

// Pacing is what a sender that paces itself has done so far.
type Pacing struct {
	Sent       uint64        // frames given to the device; check it against the device's own counters
	Calls      uint64        // program runs; most of them only wait
	Start, End uint64        // CLOCK_MONOTONIC ns: what the schedule counts from, the first frame's intended time; and the latest frame
	LateTotal  time.Duration // sum over all frames of sent minus intended
	LateMax    time.Duration
	LateSlots  uint64        // frames sent more than 1 ms after their intended time
	Shifts     uint64        // times the schedule was moved on because it was more than MaxLag behind
	Shifted    time.Duration // by how much in all: time in which nothing was offered
	Held       uint64        // program runs in which a frame that was due waited for the catch-up limit
	GapMax     time.Duration // longest time between two program runs: the sender itself stood still
	Failed     uint64        // frames that could not be shaped; 0 unless there is a bug
	Done       bool          // all was sent
}

func pacingOf(p generatePace) Pacing {
	return Pacing{
		Sent: p.Sent, Calls: p.Calls, Start: p.StartNs, End: p.EndNs,
		LateTotal: time.Duration(p.LateTotalNs), LateMax: time.Duration(p.LateMaxNs), LateSlots: p.LateSlots,
		Shifts: p.Shifts, Shifted: time.Duration(p.ShiftedNs), Held: p.Held, GapMax: time.Duration(p.GapMaxNs),
		Failed: p.Failed, Done: p.Done != 0,
	}
}

// Rate returns the mean rate in frames per second between start and last frame, 0 for less than two frames.
func (s Pacing) Rate() float64 {
	if s.Sent < 2 || s.End <= s.Start {
		return 0
	}
	return float64(s.Sent-1) / float64(s.End-s.Start) * 1e9
}

// pace is the part of the options that c/pace.h carries out; GeneratorOptions says what each means.
type pace struct {
	rate     float64
	batch    int
	patience int
	catchUp  float64
	burst    int
	maxLag   time.Duration
}

// withDefaults fills in the zero values and refuses what cannot be, in the name of a sender.
func (p pace) withDefaults(of string) (pace, error) {
	bad := func(format string, args ...any) (pace, error) { return p, fmt.Errorf(of+": "+format, args...) }
	setDefault(&p.batch, 64)
	setDefault(&p.catchUp, 1.25)
	setDefault(&p.burst, 96)
	setDefault(&p.maxLag, 50*time.Millisecond)
	switch {
	case p.rate < 0 || p.rate > 1e9 || math.IsNaN(p.rate) || p.rate > 0 && p.rate < 1e-3:
		return bad("Rate is %g, want 0 or 0.001..1e9 frames per second", p.rate)
	case p.batch < 1 || p.batch > 64:
		return bad("Batch is %d, want 1..64", p.batch)
	case p.patience < 0 || p.patience > MaxPatience:
		return bad("Patience is %d, want 0..%d", p.patience, MaxPatience)
	case !(p.catchUp >= 1 && p.catchUp <= 1000):
		return bad("CatchUp is %g, want 1..1000", p.catchUp)
	case p.burst < 1 || p.burst > 1<<16:
		return bad("Burst is %d, want 1..65536", p.burst)
	case p.maxLag < 0:
		return bad("MaxLag is %s", p.maxLag)
	}
	return p, nil
}

// variables adds the constants of c/pace.h to those of a program; they have the same names in each.
func (p pace) variables(v map[string]any) map[string]any {
	v[generateVarBurst], v[generateVarLagNs], v[generateVarPatience] = uint64(p.burst), uint64(p.maxLag), uint32(p.patience)
	if p.rate > 0 {
		whole, frac := math.Modf(1e9 / p.rate)
		v[generateVarIntervalNs] = uint64(whole)
		v[generateVarIntervalFrac] = uint64(frac * (1 << 32))
		v[generateVarCatchup] = uint64(1e9 / p.rate / p.catchUp * (1 << 12))
	}
	return v
}

// sendingDevice refuses an interface that is down.
func sendingDevice(index int) (*net.Interface, error) {
	dev, err := net.InterfaceByIndex(index)
	if err != nil {
		return nil, err
	}
	if dev.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("interface %s is down", dev.Name)
	}
	return dev, nil
}

// checkMTU refuses a frame, given without FCS, that the redirect would swallow without counting it (xdp_ok_fwd_dev in
// net/core/filter.c: MTU + Ethernet header + VLAN tag).
func checkMTU(dev *net.Interface, frame int) error {
	if frame > dev.MTU+ethLen+4 {
		return fmt.Errorf("frames of %d bytes do not fit the MTU of %s, %d: %w", frame, dev.Name, dev.MTU, errTooLong)
	}
	return nil
}
