// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/packet"
	"twopath/internal/rig"
)

// Load is what the peer sends.
type Load struct {
	Flow  packet.Flow
	Sizes []int   // bytes with FCS, cycled per frame
	PPS   float64 // frames/s; 0 is as fast as the peer can
	Count uint64  // frames; 0 is no limit, then Seconds must be given
	// Seconds ends a load without a count.
	Seconds float64
	Faults  agent.Faults
	// PingPong sends the next frame when the one before is answered: PPS is then the most.
	PingPong bool
	// Fragments is set in the test of that name; Count and PPS are of datagrams then.
	Fragments *agent.Fragments
	Replay    *agent.Replay // a capture, instead of Flow and Sizes; with its own timing it takes Seconds
}

// takes is how many seconds the load takes; a counted flood is taken at a rate no faster than the slowest machine seen.
func (l Load) takes() float64 {
	if l.Count == 0 || l.Replay != nil && l.Replay.Speed > 0 {
		return l.Seconds
	}
	pps := l.PPS
	switch {
	case l.PingPong:
		pps = min(max(pps, 1), 5000) // a round of 200 us, whatever was asked
	case pps == 0:
		pps = 300_000
	}
	return float64(l.Count) / pps
}

// Setting is what may be chosen for an arm, by the user or by pilot trials.
type Setting struct {
	Wait  string     // of an arm that has a choice; "" is the arm's own
	Sched rig.Policy // of the SUT's NAPI threads; "" is other
	Ring  int        // receive ring of an xdp arm, descriptors; 0 is the arm's own
}

func (s Setting) String() string {
	var parts []string
	if s.Wait != "" {
		parts = append(parts, "wait="+s.Wait)
	}
	if s.Ring != 0 {
		parts = append(parts, fmt.Sprintf("ring=%d", s.Ring))
	}
	if s.Sched != "" {
		parts = append(parts, "sched="+string(s.Sched))
	}
	return strings.Join(parts, " ")
}

// Spec is one trial.
type Spec struct {
	Test    string          // name of the test; "" is udp-rx
	Role    agent.Role      // Receive, or Drop for the limit
	Arm     compare.ArmSpec // of Receive
	Setting Setting
	RunID   uint32
	Load    Load
	// Connect is the load of a connection test, where Load has its rate, count and time; PeerArm the peer's engine, the SUT's
	// own where it is empty.
	Connect agent.Connecting
	PeerArm compare.ArmSpec
	Work    compare.Work
	Strict  bool
	Content bool
	Every   uint64 // frames that make a milestone of a worker; 0 is none
	// Of dns: zone and queries, and who asks: compare.DriverXDP, compare.DriverDnsperf.
	DNS    *agent.DNS
	Driver string
}

func (s Spec) options() map[string]string {
	o := map[string]string{}
	for k, v := range s.Arm.Options {
		o[k] = v
	}
	for _, k := range s.Arm.Knobs() { // set by the controller, for the whole trial
		delete(o, k.Name)
	}
	if s.Setting.Wait != "" {
		o["wait"] = s.Setting.Wait
	}
	if s.Setting.Ring != 0 {
		o["ring"] = strconv.Itoa(s.Setting.Ring)
	}
	return o
}

// deferral is what the SUT's device is set to: a reader that busy-polls does the work of NAPI itself, and needs the device's
// interrupts to stay away meanwhile. The values are those of the kernel's own AF_XDP tests. An AF_XDP socket in copy mode is
// left out: where the kernel gives it no NAPI to poll, frames would wait for the timer.
func (s Spec) deferral() rig.Deferral {
	if s.options()["wait"] != "busypoll" || s.Arm.Engine == compare.XDP && s.Arm.Variant != "zerocopy" {
		return rig.Deferral{}
	}
	return rig.Deferral{Irqs: 2, Timeout: 200 * time.Microsecond}
}

func (s Spec) maxSize() int {
	m := 0
	for _, z := range s.Load.Sizes {
		m = max(m, z)
	}
	return m
}

// Limits beyond which a trial says nothing about its arm. They are the same for every arm.
const (
	// maxGeneratorGap is the longest time a generator may stand still. Its catch-up is bounded, so a shorter one shows as
	// lateness only.
	maxGeneratorGap = 20 * time.Millisecond
	// maxStallShare is the share of a trial in which the machine under a reader may stand still.
	maxStallShare = 0.01
	// maxDisturbedShare is the share of a trial for which other tasks may keep a reader from its CPU. An idle virtual machine's
	// own housekeeping takes one to three per cent of it, a few hundred microseconds at a time, which rings outlast.
	maxDisturbedShare = 0.05
	// leastDisturbance is what other tasks may take from a reader in any trial, however short: as much as receive rings hold.
	leastDisturbance = 5 * time.Millisecond
	// maxRateError is how far the offered rate may be from the one asked for.
	maxRateError = 0.01
)

// drain: how long no frame must have come, and how long is waited at most. A reader that does 5 us of work per packet needs
// 50 ms for a full socket buffer of 8 MiB.
const (
	drainQuiet = 60 * time.Millisecond
	drainLimit = 20 * time.Second
)

func rateError(pps, asked float64) string {
	if asked == 0 {
		return ""
	}
	if d := pps/asked - 1; d < -maxRateError || d > maxRateError {
		return fmt.Sprintf("rate not offered: %.0f of %.0f frames/s (%+.1f %%)", pps, asked, 100*d)
	}
	return ""
}
