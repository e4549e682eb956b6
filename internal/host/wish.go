// SPDX-License-Identifier: Apache-2.0

package host

import (
	"slices"
	"strconv"
	"strings"

	"twopath/internal/knob"
)

// wish is what a profile wants of a knob, and what there is to know about it.
type wish struct {
	want      func(now knob.Reading, cpus []int) string // nil: whatever it is
	why, risk string
}

// is wants one value.
func is(v string) func(knob.Reading, []int) string {
	return func(knob.Reading, []int) string { return v }
}

// least wants a number, or more.
func least(n int) func(knob.Reading, []int) string {
	return func(now knob.Reading, _ []int) string {
		if have, err := strconv.Atoi(now.Value); err == nil && have < n {
			return strconv.Itoa(n)
		}
		return ""
	}
}

// single wants no more than one; 0 is left alone, as that of a driver which does not count (and with a time of 0 as well a
// driver may never interrupt: include/uapi/linux/ethtool.h, struct ethtool_coalesce).
func single(now knob.Reading, _ []int) string {
	if n, err := strconv.Atoi(now.Value); err == nil && n > 1 {
		return "1"
	}
	return ""
}

// most wants as much as the driver has.
func most(now knob.Reading, _ []int) string {
	if now.Most == 0 {
		return ""
	}
	return strconv.FormatUint(now.Most, 10)
}

// spread wants each interrupt on one CPU, in turn.
func spread(now knob.Reading, cpus []int) string {
	n := now.Places
	if n == 0 || len(cpus) == 0 {
		return ""
	}
	var out []string
	for i := range n {
		out = append(out, strconv.Itoa(cpus[i%len(cpus)]))
	}
	if len(slices.Compact(slices.Clone(out))) == 1 {
		return out[0]
	}
	return strings.Join(out, " ")
}

// wishFor says what a profile wants. Both want what makes arms comparable: fixed frequencies, no merging in hardware, no
// pause frames, nothing that adapts by itself. Throughput adds room, latency takes waiting away.
func wishFor(name, profile string) wish {
	fast := profile == Latency
	choose := func(throughput, latency func(knob.Reading, []int) string) func(knob.Reading, []int) string {
		if fast {
			return latency
		}
		return throughput
	}
	switch name {
	case "dev_weight":
		return wish{nil, "only a CPU's backlog looks at it: what RPS hands on, and devices without NAPI; a NIC's own NAPI takes 64", "other packets wait longer"}
	case "netdev_budget":
		return wish{choose(least(600), nil), "how long the receive softirq goes on before others get the CPU; NAPI in threads has no budget", "programs on that CPU wait longer under a flood"}
	case "netdev_budget_usecs":
		return wish{nil, "how long a round of the receive softirq may take; NAPI in threads has no such limit", "programs on that CPU wait longer under a flood"}
	case "netdev_max_backlog":
		return wish{choose(least(10000), nil), "room for what RPS hands on, and for devices without NAPI", "more memory, and older packets, under a flood"}
	case "busy_poll", "busy_read":
		return wish{choose(nil, is("50")), "a reader that looks for packets itself does not wait for an interrupt and a wake-up", "every program that waits for packets burns its CPU for so long each time"}
	case "rmem_max":
		return wish{least(bufferBytes), "lets programs without CAP_NET_ADMIN have the receive buffer the kernel arms use", "other programs may ask for larger buffers, too"}
	case "wmem_max":
		return wish{least(bufferBytes), "lets programs without CAP_NET_ADMIN have as large a send buffer", "other programs may ask for larger buffers, too"}
	case "rmem_default":
		return wish{nil, "receive buffer of programs that ask for none (a larger one cures some of the loss of bursts)", "every socket of every program may hold so much"}
	case "wmem_default":
		return wish{nil, "bounds what AF_XDP in copy mode and AF_PACKET may have on the way", "every socket of every program may hold so much"}
	case "governor":
		return wish{is("performance"), "a CPU that changes its frequency makes arms differ by when they ran", "takes more power"}
	case "numa_balancing":
		return wish{is("0"), "moving pages between nodes stalls the program they belong to", "programs on other nodes may slow down"}
	case "queues":
		return wish{nil, "an AF_XDP socket reads one queue; set as many as are measured (--queues)", "the link may go down for a second or two, and queues lose their settings"}
	case "rx_ring":
		return wish{choose(most, nil), "a larger ring bridges longer stalls, and falls out of the cache sooner", "the link may go down for a second or two"}
	case "tx_ring":
		return wish{choose(most, nil), "room for what is sent in bursts", "the link may go down for a second or two"}
	case "rx_usecs":
		return wish{choose(nil, is("0")), "how long the NIC keeps frames back to save interrupts", "more interrupts"}
	case "rx_frames":
		return wish{choose(nil, single), "how many frames the NIC keeps back to save interrupts", "more interrupts"}
	case "tx_usecs", "tx_frames":
		return wish{nil, "how long the NIC keeps completions back", "more interrupts when lower"}
	case "adaptive_rx", "adaptive_tx":
		return wish{is("off"), "moderation that adapts makes arms differ by what ran before", "the driver no longer follows the load"}
	case "pause_autoneg", "pause_rx", "pause_tx":
		return wish{is("off"), "pause frames turn loss into delay: the sender is slowed down, and no counter says so", "a switch or a peer that relied on them loses frames; the link may go down for a second or two"}
	case "promisc":
		return wish{nil, "takes frames to every address, as counting without a socket does (kernel:nosocket does it by itself)", "the host sees, and handles, its neighbours' frames"}
	case "offload_gro":
		return wish{nil, "the stack merges packets of a flow: fewer trips through it, for the kernel engine only", "bulk TCP costs more when off"}
	case "offload_gro_hw":
		return wish{is("off"), "merges packets before anybody counts them", "bulk TCP costs more"}
	case "offload_lro":
		return wish{is("off"), "merges packets before anybody counts them, and keeps XDP from attaching", "bulk TCP costs more"}
	case "offload_gso", "offload_tso":
		return wish{nil, "large packets are cut late: the kernel engine's advantage in bulk TCP, which AF_XDP does not have", "bulk TCP costs more when off"}
	case "offload_rxvlan":
		return wish{is("off"), "takes the VLAN tag off for the kernel engine, while AF_XDP sees the frame with or without it, by driver", "VLANs on the port cost a little more"}
	case "napi_defer_hard_irqs", "gro_flush_timeout":
		return wish{nil, "keeps interrupts off while somebody polls; trials that busy-poll set it themselves on the veth rig", "packets wait for the timer"}
	case "rps_cpus":
		return wish{is("none"), "hands packets on to other CPUs than the trial counts on", "receive processing goes back to the CPUs that take the interrupts"}
	case "xps_cpus":
		return wish{nil, "which CPUs send by which queue", "senders on other CPUs contend for a queue"}
	case "irq_cpus":
		return wish{spread, "an interrupt that may go to many CPUs moves in the middle of a trial", "irqbalance may move them again (stop it)"}
	case "threaded":
		return wish{nil, "receive processing in threads, which can be placed and scheduled; trials place it themselves", "shares the CPU with other programs by the scheduler's rules"}
	}
	return wish{}
}
