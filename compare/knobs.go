// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scopes of a host knob.
const (
	Machine = "machine" // one value for the whole host
	Port    = "port"    // a value of the SUT's port
)

// Knobs are the host's settings that are options of every arm: set for that arm's trials, read back, and put back after
// each. Their names are those of the kernel's sysctl or sysfs file, or of ethtool's parameter.
func Knobs() []ArmOption {
	const most = 1<<31 - 1 // the kernel keeps them in an int
	machine := func(o ArmOption) ArmOption { o.Scope = Machine; return o }
	port := func(o ArmOption) ArmOption { o.Scope = Port; return o }
	flag := func(name, help string) ArmOption {
		return port(ArmOption{Name: name, Kind: Choice, Values: []string{"on", "off"}, Help: help})
	}
	number := func(name string, least, most uint64, help string) ArmOption {
		return ArmOption{Name: name, Kind: Number, Min: least, Max: most, Help: help}
	}
	return []ArmOption{
		machine(number("dev_weight", 1, 65536, "packets a visit of the backlog, per CPU (net.core.dev_weight)")),
		machine(number("netdev_budget", 1, most, "packets a round of the receive softirq (net.core.netdev_budget)")),
		machine(number("netdev_budget_usecs", 1, most, "time of a round of the receive softirq, us")),
		machine(number("netdev_max_backlog", 1, most, "packets that wait for another CPU's softirq, or for a device's without NAPI")),
		machine(number("busy_poll", 0, 1_000_000, "time poll, select and epoll look for packets themselves, us")),
		machine(number("busy_read", 0, 1_000_000, "time a read of a new socket looks for packets itself, us")),
		machine(ArmOption{Name: "rmem_max", Kind: Bytes, Min: 2304, Max: most, Help: "largest receive buffer a program may ask for"}),
		machine(ArmOption{Name: "rmem_default", Kind: Bytes, Min: 2304, Max: most, Help: "receive buffer of a new socket"}),
		machine(ArmOption{Name: "wmem_max", Kind: Bytes, Min: 4608, Max: most, Help: "largest send buffer a program may ask for"}),
		machine(ArmOption{Name: "wmem_default", Kind: Bytes, Min: 4608, Max: most, Help: "send buffer of a new socket, AF_XDP in copy mode included"}),
		machine(ArmOption{Name: "governor", Kind: Choice, Help: "who sets the CPUs' frequency",
			Values: []string{"performance", "powersave", "schedutil", "ondemand", "conservative"}}),
		machine(number("numa_balancing", 0, 3, "moving pages between memory nodes (kernel.numa_balancing)")),
		port(number("rx_ring", 1, 1<<20, "receive ring, descriptors (ethtool -G)")),
		port(number("tx_ring", 1, 1<<20, "transmit ring, descriptors (ethtool -G)")),
		port(number("rx_usecs", 0, 1_000_000, "how long the NIC may keep a received frame back, us (ethtool -C)")),
		port(number("rx_frames", 0, 1<<20, "how many received frames the NIC may keep back (ethtool -C)")),
		port(number("tx_usecs", 0, 1_000_000, "how long the NIC may keep a completion back, us (ethtool -C)")),
		port(number("tx_frames", 0, 1<<20, "how many completions the NIC may keep back (ethtool -C)")),
		flag("adaptive_rx", "the driver chooses rx_usecs as it goes (ethtool -C)"),
		flag("adaptive_tx", "the driver chooses tx_usecs as it goes (ethtool -C)"),
		flag("pause_autoneg", "agree on pause frames with the other end (ethtool -A)"),
		flag("pause_rx", "obey the other end's pause frames (ethtool -A)"),
		flag("pause_tx", "send pause frames when the ring is full (ethtool -A)"),
		flag("promisc", "take frames to every address"),
		flag("offload_gro", "the stack merges packets (ethtool -K gro)"),
		flag("offload_gro_hw", "the NIC merges packets as GRO would (ethtool -K rx-gro-hw)"),
		flag("offload_lro", "the NIC merges packets (ethtool -K lro)"),
		flag("offload_gso", "the stack cuts large packets late (ethtool -K gso)"),
		flag("offload_tso", "the NIC cuts TCP segments (ethtool -K tso)"),
		flag("offload_rxvlan", "the NIC takes VLAN tags off (ethtool -K rxvlan)"),
		port(number("napi_defer_hard_irqs", 0, most, "empty polls before the port's interrupt comes back")),
		port(ArmOption{Name: "gro_flush_timeout", Kind: Nanoseconds, Max: 1_000_000_000, Help: "time after a poll that the kernel polls by itself, ns or as in 200us"}),
		port(ArmOption{Name: "rps_cpus", Kind: CPUList, Help: "CPUs that received packets are handed on to; none is off (RPS)"}),
		port(ArmOption{Name: "xps_cpus", Kind: CPUList, Help: "CPUs that send by each queue (XPS)"}),
		port(ArmOption{Name: "irq_cpus", Kind: CPUList, Help: "CPUs that take the port's interrupts"}),
	}
}

// planKnobs are host settings that are the plan's, the same for every arm, and where to set them.
func planKnobs() map[string]string {
	return map[string]string{
		"threaded": "where receive processing runs is the same for all arms: --placement, --softirq-sched",
		"queues":   "how many queues there are is the same for all arms: --queues",
		"rss":      "how many queues there are is the same for all arms: --queues",
	}
}

// ParseKnob gives the canonical value of a host knob; every error is a [*UsageError].
func ParseKnob(name, value string) (string, error) {
	for _, k := range Knobs() {
		if k.Name == name {
			return k.parse(value, true)
		}
	}
	return "", unknown("knob", name, "no such knob", KnobNames())
}

// KnobNames lists the host knobs.
func KnobNames() []string {
	var out []string
	for _, k := range Knobs() {
		out = append(out, k.Name)
	}
	return out
}

// Knobs are the host knobs of an arm with their canonical values, in the grammar's order.
func (a ArmSpec) Knobs() []KnobValue {
	var out []KnobValue
	for _, k := range Knobs() {
		if v, ok := a.Options[k.Name]; ok {
			out = append(out, KnobValue{k.Name, v, k.Scope})
		}
	}
	return out
}

// KnobValue is a host knob as an arm asks for it.
type KnobValue struct {
	Name, Value string
	Scope       string // Machine or Port
}

func (k KnobValue) String() string { return k.Name + "=" + k.Value }

// ParseCPUList reads CPUs as the kernel lists them: "0-3,5"; "none" and "" are the empty list.
func ParseCPUList(s string) ([]int, error) {
	if s == "none" || s == "" {
		return nil, nil
	}
	return parseCPUList(strings.ReplaceAll(s, ",", "+"))
}

// FormatCPUs writes CPUs as the kernel lists them: "0-3,5"; an empty list is "none".
func FormatCPUs(cpus []int) string {
	if len(cpus) == 0 {
		return "none"
	}
	sorted := slices.Clone(cpus)
	slices.Sort(sorted)
	sorted = slices.Compact(sorted)
	var parts []string
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		part := strconv.Itoa(sorted[i])
		if j > i {
			part += "-" + strconv.Itoa(sorted[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}

// parseNanoseconds reads a whole number of ns, or a duration as in 200us.
func parseNanoseconds(s string) (uint64, error) {
	if n, err := strconv.ParseUint(s, 10, 63); err == nil {
		return n, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("no duration: %q", s)
	}
	return uint64(d.Nanoseconds()), nil
}
