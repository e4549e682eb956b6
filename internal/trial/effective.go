// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"encoding/json"
	"fmt"
	"slices"

	"twopath/compare"
	"twopath/internal/packet"
	"twopath/internal/rig"
)

// effective is how the arm really ran: what the agent obtained, and where NAPI was.
func (r *running) effective(threads []rig.NAPIThread) (compare.Effective, error) {
	var e compare.Effective
	raw, err := json.Marshal(r.got.Effective)
	if err != nil {
		return e, fmt.Errorf("effective settings: %w", err)
	}
	if err := json.Unmarshal(raw, &e); err != nil {
		return e, fmt.Errorf("effective settings: %w", err)
	}
	e.Placement = string(r.b.CPUs.Placement)
	e.CPUs = slices.Clone(r.b.CPUs.Readers)
	e.Queues = r.b.Queues
	e.NAPI = "softirq"
	if e.GRO == "" {
		e.GRO = "on" // of the device, for all arms: without it a veth has no NAPI
	}
	for _, t := range threads {
		if t.PID == 0 {
			continue
		}
		e.NAPI = "threaded"
		e.Sched = string(t.Policy)
		if t.Policy == rig.FIFO {
			e.Sched = fmt.Sprintf("%s:%d", t.Policy, t.Priority)
		}
		e.NAPICPUs = append(e.NAPICPUs, t.CPUs...)
	}
	return e, nil
}

// foreignMAC is no address of the rig: frames to it are dropped by the receiving stack as another host's, which is where
// S3's counting without a socket ends.
func foreignMAC() []byte { return []byte{2, 't', 'p', 0xff, 0xff, 0xff} }

// flow is the load's flow as this arm gets it. The nosocket arm alone gets frames to another host's MAC address: to its
// own, the stack would look for a socket and answer with ICMP.
func (b *Bench) flow(s Spec) packet.Flow {
	f := s.Load.Flow
	if s.Arm.Engine == compare.Kernel && s.Arm.Variant == "nosocket" {
		f.DstMAC = foreignMAC()
	}
	return f
}
