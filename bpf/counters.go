// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// MaxQueues is how many receive queues the programs tell apart (QUEUES in c/flow.h); the last counter takes the rest.
const MaxQueues = 64

// reasonName names enum reason of c/flow.h: why a program was done with a frame.
func reasonName(r redirectReason) string {
	switch r {
	case redirectReasonREASON_REDIRECTED:
		return "redirected"
	case redirectReasonREASON_NO_SOCKET:
		return "no_socket"
	case redirectReasonREASON_DROPPED:
		return "dropped"
	case redirectReasonREASON_COUNTED:
		return "counted"
	case redirectReasonREASON_TOO_SHORT:
		return "too_short"
	case redirectReasonREASON_VLAN:
		return "vlan"
	case redirectReasonREASON_ARP:
		return "arp"
	case redirectReasonREASON_FOREIGN_L2:
		return "foreign_l2"
	case redirectReasonREASON_FOREIGN_MAC:
		return "foreign_mac"
	case redirectReasonREASON_FOREIGN_IP:
		return "foreign_ip"
	case redirectReasonREASON_IP_OPTIONS:
		return "ip_options"
	case redirectReasonREASON_FRAGMENT:
		return "fragment"
	case redirectReasonREASON_FOREIGN_L4:
		return "foreign_l4"
	case redirectReasonREASON_FOREIGN_PORT:
		return "foreign_port"
	case redirectReasonREASON_FOREIGN_RUN:
		return "foreign_run"
	}
	return ""
}

// ours tells the exits for the run's own frames, which differ by program, from those for all other frames.
func ours(r redirectReason) bool {
	return r <= redirectReasonREASON_COUNTED
}

// readReasons sums the per-CPU counters. Of the exits for the run's own frames only those named in own are reported.
func readReasons(m *ebpf.Map, own ...redirectReason) (map[string]uint64, error) {
	out := make(map[string]uint64)
	for r := range redirectReasonREASONS {
		wanted := !ours(r)
		for _, o := range own {
			wanted = wanted || o == r
		}
		if !wanted {
			continue
		}
		n, err := sumPerCPU(m, uint32(r))
		if err != nil {
			return nil, fmt.Errorf("read counter %s: %w", reasonName(r), err)
		}
		out[reasonName(r)] = n
	}
	return out, nil
}

// readQueues returns the run's frames by receive queue, MaxQueues of them.
func readQueues(m *ebpf.Map) ([]uint64, error) {
	out := make([]uint64, MaxQueues)
	for q := range out {
		n, err := sumPerCPU(m, uint32(q))
		if err != nil {
			return nil, fmt.Errorf("read counter of queue %d: %w", q, err)
		}
		out[q] = n
	}
	return out, nil
}

func sumPerCPU(m *ebpf.Map, key uint32) (uint64, error) {
	var per []uint64
	if err := m.Lookup(key, &per); err != nil {
		return 0, err
	}
	var sum uint64
	for _, n := range per {
		sum += n
	}
	return sum, nil
}
