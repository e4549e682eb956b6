// SPDX-License-Identifier: Apache-2.0

package host

import (
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/knob"
)

// Facts describes this machine for the record. What can not be read is left out. The dotted names in Facts: cpu.*,
// clocksource, kernel.*, net.core.*, numa.nodes, go.version, memory.*; their values are the kernel's own text.
func Facts() compare.Host {
	var u unix.Utsname
	_ = unix.Uname(&u) // only fails for a bad pointer
	cpuinfo := read("/proc/cpuinfo")
	h := compare.Host{
		Name:     unix.ByteSliceToString(u.Nodename[:]),
		OS:       osName(read("/etc/os-release")),
		Kernel:   unix.ByteSliceToString(u.Release[:]),
		Arch:     unix.ByteSliceToString(u.Machine[:]),
		CPUModel: cpuModel(cpuinfo, read("/proc/device-tree/model")),
		CPUs:     runtime.NumCPU(),
		Virtual:  hints(cpuinfo).hypervisor(),
		Facts:    make(map[string]string),
	}
	if kib, ok := meminfo(read("/proc/meminfo"), "MemTotal"); ok {
		h.MemoryBytes = kib << 10
	}
	set := func(name, value string) {
		if value != "" {
			h.Facts[name] = value
		}
	}
	const cpu = "/sys/devices/system/cpu/"
	set("cpu.online", read(cpu+"online"))
	set("cpu.isolated", read(cpu+"isolated"))
	set("cpu.smt", read(cpu+"smt/control"))
	set("cpu.governor", governors())
	set("cpu.boost", firstOf(cpu+"cpufreq/boost", cpu+"intel_pstate/no_turbo"))
	set("cpu.idle_driver", read(cpu+"cpuidle/current_driver"))
	set("cpu.mitigations", mitigations(cpu+"vulnerabilities"))
	set("clocksource", read(clocksourceDir+"current_clocksource"))
	set("numa.nodes", read("/sys/devices/system/node/online"))
	set("kernel.version", unix.ByteSliceToString(u.Version[:]))
	set("kernel.cmdline", read("/proc/cmdline"))
	_, err := os.Stat("/sys/kernel/btf/vmlinux")
	set("kernel.btf", strconv.FormatBool(err == nil))
	for _, n := range knob.Names() {
		if knob.Scope(n) != compare.Machine || n == "governor" { // which is cpu.governor
			continue
		}
		if r, err := knob.Read(n, knob.At{}); err == nil {
			prefix := "net.core."
			if n == "numa_balancing" {
				prefix = "kernel."
			}
			set(prefix+n, r.Value)
		}
	}
	for _, s := range []string{"bpf_jit_enable", "default_qdisc"} {
		set("net.core."+s, read("/proc/sys/net/core/"+s))
	}
	if j, err := knob.Load("", knob.Tune); err == nil && j != nil && !j.Rebooted() {
		set("tuned", describe(j))
	}
	set("memory.hugepages", read("/proc/sys/vm/nr_hugepages"))
	set("go.version", runtime.Version())
	return h
}

const clocksourceDir = "/sys/devices/system/clocksource/clocksource0/"

// read returns a file's text without the space around it, or "" when it can not be read.
func read(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// firstOf returns the name and value of the first file there is.
func firstOf(paths ...string) string {
	for _, p := range paths {
		if v := read(p); v != "" {
			return filepath.Base(p) + "=" + v
		}
	}
	return ""
}

func osName(release string) string {
	for line := range strings.Lines(release) {
		if v, ok := strings.CutPrefix(line, "PRETTY_NAME="); ok {
			return strings.Trim(strings.TrimSpace(v), `"'`)
		}
	}
	return ""
}

// meminfo reads a field of /proc/meminfo, in KiB.
func meminfo(text, field string) (kib uint64, ok bool) {
	for line := range strings.Lines(text) {
		if v, found := strings.CutPrefix(line, field+":"); found {
			f := strings.Fields(v)
			if len(f) == 0 {
				return 0, false
			}
			n, err := strconv.ParseUint(f[0], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

func hints(cpuinfo string) virtualHints {
	const dmi = "/sys/class/dmi/id/"
	return virtualHints{
		flag:         slices.Contains(strings.Fields(cpuinfoFields(cpuinfo)["flags"]), "hypervisor"),
		xenType:      read("/sys/hypervisor/type"),
		vendor:       read(dmi + "sys_vendor"),
		product:      read(dmi + "product_name"),
		deviceTree:   read("/proc/device-tree/hypervisor/compatible"),
		clocksources: read(clocksourceDir + "available_clocksource"),
	}
}

// governors lists the frequency governors in use, each once; "" where the frequency is not the kernel's to set.
func governors() string {
	paths, _ := filepath.Glob("/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
	var out []string
	for _, p := range paths {
		if g := read(p); g != "" {
			out = append(out, g)
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ",")
}

func mitigations(dir string) string {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return ""
	}
	byName, order := make(map[string]string), []string(nil)
	for _, e := range entries {
		byName[e.Name()] = read(filepath.Join(dir, e.Name()))
		order = append(order, e.Name())
	}
	return vulnerable(byName, order)
}

// PortFacts adds a port of the calling thread's network namespace to facts, as it is set now: what Describe knows, and every
// knob that is there. The names begin with prefix ("nic." or "peer.nic.").
func PortFacts(facts map[string]string, prefix, port string) error {
	d, err := Describe(port)
	if err != nil {
		return err
	}
	maps.Copy(facts, d.Facts(prefix))
	for _, n := range knob.Names() {
		if knob.Scope(n) != compare.Port {
			continue
		}
		if r, err := knob.Read(n, knob.At{Port: d.Name}); err == nil {
			facts[prefix+n] = r.Value
		}
	}
	return nil
}
