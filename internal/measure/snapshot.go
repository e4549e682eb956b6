// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"maps"
	"slices"
	"strings"
)

// Snapshot is all counters of one side at one moment. Names are dotted: link.rx_packets, ethtool.rx_queue_0_drops,
// udp.RcvbufErrors, softnet.dropped ... A counter that a source does not have is absent, not 0.
type Snapshot struct {
	At       int64             `json:"at"` // ns CLOCK_MONOTONIC when the reading began
	Counters map[string]uint64 `json:"counters"`
}

// Changes is what happened between two snapshots.
type Changes struct {
	Nanoseconds int64             `json:"nanoseconds"` // between the two readings
	Counters    map[string]uint64 `json:"counters"`    // after - before of each counter in both
	// Reset names counters that went backwards and are not 32-bit ones: the driver or a reload began them anew. Their
	// value in Counters is what they showed after, a lower bound.
	Reset []string `json:"reset,omitempty"`
	// Missing names counters found in only one of the two; they are not in Counters.
	Missing []string `json:"missing,omitempty"`
}

// wraps32 says whether a counter is 32 bits wide in the kernel and so may pass 2^32 within a trial: softnet_stat and
// /proc/net/stat print unsigned int, SO_MEMINFO's sk_drops is an atomic_t and tpacket_stats is u32. The SNMP tables
// are unsigned long, 64 bits on the two architectures supported.
func wraps32(name string) bool {
	source, _, _ := strings.Cut(name, ".")
	switch source {
	case "softnet", "stat", "sock", "packet":
		return true
	}
	return false
}

// bornAtOne says whether the kernel prints a counter only once it is not 0 (icmpmsg_put and snmp6_seq_show_icmpv6msg):
// then its absence means 0.
func bornAtOne(name string) bool {
	return strings.HasPrefix(name, "icmpmsg.") || strings.HasPrefix(name, "icmp6.InType") || strings.HasPrefix(name, "icmp6.OutType")
}

// Delta subtracts two snapshots of the same side. No value is ever negative.
func Delta(before, after Snapshot) Changes {
	c := Changes{Nanoseconds: after.At - before.At, Counters: make(map[string]uint64, len(after.Counters))}
	for name, a := range after.Counters {
		b, ok := before.Counters[name]
		switch {
		case !ok && !bornAtOne(name):
			c.Missing = append(c.Missing, name)
		case a >= b:
			c.Counters[name] = a - b
		case wraps32(name):
			c.Counters[name] = uint64(uint32(a - b)) // also right for a sum over CPUs, of which one wrapped
		default:
			c.Counters[name] = a
			c.Reset = append(c.Reset, name)
		}
	}
	for name := range before.Counters {
		if _, ok := after.Counters[name]; !ok {
			c.Missing = append(c.Missing, name)
		}
	}
	slices.Sort(c.Reset)
	slices.Sort(c.Missing)
	return c
}

// Add merges extra counters (socket, XSK, program, reader) into a snapshot; a name already there is overwritten.
func (s *Snapshot) Add(counters map[string]uint64) {
	if s.Counters == nil {
		s.Counters = make(map[string]uint64, len(counters))
	}
	maps.Copy(s.Counters, counters)
}
