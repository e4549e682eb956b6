// SPDX-License-Identifier: Apache-2.0

package host

import (
	"strings"
)

// cpuModel takes the model from the text of /proc/cpuinfo: "model name" on x86; arm64 has numbers only, so there the
// device tree's model names the board.
func cpuModel(cpuinfo, deviceTree string) string {
	field := cpuinfoFields(cpuinfo)
	if m := field["model name"]; m != "" {
		return m
	}
	if deviceTree = strings.TrimRight(deviceTree, "\x00\n"); deviceTree != "" {
		return deviceTree
	}
	if field["CPU implementer"] != "" {
		return "implementer " + field["CPU implementer"] + " part " + field["CPU part"]
	}
	return ""
}

// cpuinfoFields reads the first processor's fields.
func cpuinfoFields(cpuinfo string) map[string]string {
	out := make(map[string]string)
	for line := range strings.Lines(cpuinfo) {
		k, v, ok := strings.Cut(line, ":")
		if k = strings.TrimSpace(k); ok && out[k] == "" {
			out[k] = strings.TrimSpace(v)
		}
	}
	return out
}

// virtualHints is what betrays a hypervisor.
type virtualHints struct {
	flag         bool   // the hypervisor bit of CPUID, as /proc/cpuinfo shows it (x86)
	xenType      string // /sys/hypervisor/type
	vendor       string // DMI system vendor
	product      string // DMI product name
	deviceTree   string // hypervisor/compatible of the device tree (arm64)
	clocksources string // available ones
}

// hypervisor names it; "" means bare metal, as far as can be seen.
func (h virtualHints) hypervisor() string {
	dmi := strings.ToLower(h.vendor + " " + h.product)
	for _, known := range []struct{ text, name string }{
		{"firecracker", "firecracker"}, {"vmware", "vmware"}, {"virtualbox", "virtualbox"}, {"microsoft corporation virtual", "hyper-v"},
		{"qemu", "qemu"}, {"kvm", "kvm"}, {"amazon ec2", "amazon-ec2"}, {"google compute", "google"}, {"parallels", "parallels"}, {"xen", "xen"},
	} {
		if strings.Contains(dmi, known.text) && (h.flag || known.name != "amazon-ec2") { // EC2 has bare metal too
			return known.name
		}
	}
	switch {
	case h.xenType != "":
		return h.xenType
	case h.deviceTree != "":
		return strings.TrimRight(h.deviceTree, "\x00\n")
	case !h.flag:
		return ""
	case strings.Contains(h.clocksources, "kvm-clock"):
		return "kvm"
	case strings.Contains(h.clocksources, "hyperv"):
		return "hyper-v"
	}
	return "unknown hypervisor"
}

// vulnerable joins the mitigations that cost something: those of flaws this CPU has.
func vulnerable(byName map[string]string, order []string) string {
	var out []string
	for _, n := range order {
		if v := byName[n]; v != "" && v != "Not affected" {
			out = append(out, n+": "+v)
		}
	}
	return strings.Join(out, "; ")
}
