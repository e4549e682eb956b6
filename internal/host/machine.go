// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"twopath/compare"
)

// machineChecks looks at kernel, CPUs and clock.
func machineChecks(h compare.Host, cpus []int) []Check {
	return []Check{kernelCheck(h), cpuCheck(h, cpus), clockCheck(h), governorCheck(h), smtCheck(h, cpus), virtualCheck(h)}
}

// kernelVersion reads major and minor of "6.18.44-fc".
func kernelVersion(release string) (major, minor int, ok bool) {
	a, rest, ok := strings.Cut(release, ".")
	if !ok {
		return 0, 0, false
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(rest[:end])
	return major, minor, err1 == nil && err2 == nil
}

func kernelCheck(h compare.Host) Check {
	c := Check{ID: "kernel.version", Status: Pass, What: "Linux " + h.Kernel + " " + h.Arch,
		Why: "5.18 brought XDP live frames (the fast generator), 6.8 the netlink family that tells where NAPI runs; features are tried below"}
	major, minor, ok := kernelVersion(h.Kernel)
	switch {
	case !ok:
		c.Status, c.What = Skip, fmt.Sprintf("kernel release %q has no version", h.Kernel)
	case major < 5 || (major == 5 && minor < 18):
		c.Status, c.Cure = Warn, "use Linux 5.18 or newer: this one has no XDP live frames to send with"
	}
	return c
}

func cpuCheck(h compare.Host, cpus []int) Check {
	c := Check{ID: "cpu.count", Status: Pass, What: fmt.Sprintf("%d CPUs of %d may be used (%s)", len(cpus), max(h.CPUs, len(cpus)), h.CPUModel),
		Why: "generator and receiver need a CPU each, receive processing one more to run apart"}
	switch {
	case len(cpus) < 2:
		c.Status, c.Cure = Fail, "use a machine with two CPUs (taskset or a cpuset may hide one), or put the peer on another host"
	case len(cpus) == 2:
		c.What += ": receive processing shares the reader's"
		c.Cure = "with a third CPU they would be apart (--placement split)"
	}
	return c
}

func clockCheck(h compare.Host) Check {
	source := h.Facts["clocksource"]
	c := Check{ID: "clock.source", Status: Pass, What: "clocksource is " + source, Why: "the clock is read for every packet: some clocks need a system call or an exit to the hypervisor"}
	switch source {
	case "tsc", "arch_sys_counter":
	case "kvm-clock", "hyperv_clocksource_tsc_page":
		c.What += ", read in user space by way of the hypervisor's page"
	case "":
		c.Status, c.What = Skip, "clocksource is not to be seen"
	default:
		c.Status, c.Cure = Warn, "see what there is: cat "+clocksourceDir+"available_clocksource; tsc is the fast one (the kernel log says why it was dropped)"
	}
	return c
}

func governorCheck(h compare.Host) Check {
	g := h.Facts["cpu.governor"]
	c := Check{ID: "cpu.governor", Status: Pass, What: "frequency governor is " + g, Why: "a CPU that changes its frequency makes arms differ by when they ran"}
	switch g {
	case "":
		c.What = "the kernel does not set the CPU's frequency here"
	case "performance":
	default:
		c.Status, c.Cure = Warn, "for the time of the measurement: cpupower frequency-set -g performance"
	}
	return c
}

func smtCheck(h compare.Host, cpus []int) Check {
	c := Check{ID: "cpu.smt", Status: Pass, What: "no two CPUs share a core", Why: "two threads on one core slow each other: generator and receiver would not be independent"}
	for _, cpu := range cpus {
		list := read(fmt.Sprintf("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", cpu))
		if list == "" {
			c.Status, c.What = Skip, "which CPUs share a core is not to be seen"
			return c
		}
		if strings.ContainsAny(list, ",-") {
			c.Status, c.What = Warn, "CPUs "+list+" share a core"
			c.Cure = "give the sides CPUs of different cores (--cpus sut=..,peer=..)"
			return c
		}
	}
	if h.Virtual != "" {
		c.What += ", as far as the hypervisor tells"
	}
	return c
}

func virtualCheck(h compare.Host) Check {
	c := Check{ID: "machine.virtual", Status: Pass, What: "bare metal, as far as can be seen", Why: "on a virtual machine others take CPU time, and absolute rates mean little; ratios from one run hold"}
	if h.Virtual != "" {
		c.What = "virtual machine (" + h.Virtual + ")"
		c.Cure = "quote ratios, not rates"
	}
	return c
}

// AllowedCPUs lists the CPUs this process may use.
func AllowedCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, fmt.Errorf("read affinity: %w", err)
	}
	var out []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			out = append(out, c)
		}
	}
	return out, nil
}
