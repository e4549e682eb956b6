// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/binary"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/compare"
)

func TestCPUModel(t *testing.T) {
	for _, c := range []struct{ cpuinfo, tree, want string }{
		{"processor\t: 0\nmodel name\t: EPYC 7\n\nmodel name\t: other\n", "", "EPYC 7"},
		{"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd08\n", "Raspberry Pi 4 Model B Rev 1.4\x00", "Raspberry Pi 4 Model B Rev 1.4"},
		{"processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n", "", "implementer 0x41 part 0xd0c"},
		{"", "", ""},
	} {
		if got := cpuModel(c.cpuinfo, c.tree); got != c.want {
			t.Errorf("%q: got %q, want %q", c.cpuinfo, got, c.want)
		}
	}
}

func TestHypervisor(t *testing.T) {
	for want, h := range map[string]virtualHints{
		"":                   {vendor: "Dell Inc.", product: "PowerEdge R740"},
		"qemu":               {flag: true, vendor: "QEMU", product: "Standard PC"},
		"kvm":                {flag: true, clocksources: "tsc kvm-clock acpi_pm"},
		"hyper-v":            {flag: true, vendor: "Microsoft Corporation", product: "Virtual Machine"},
		"amazon-ec2":         {flag: true, vendor: "Amazon EC2", product: "c5.large"},
		"xen":                {xenType: "xen"},
		"linux,dummy-virt":   {deviceTree: "linux,dummy-virt\x00"},
		"unknown hypervisor": {flag: true},
	} {
		if got := h.hypervisor(); got != want {
			t.Errorf("%+v: got %q, want %q", h, got, want)
		}
	}
	if got := (virtualHints{vendor: "Amazon EC2", product: "c5.metal"}).hypervisor(); got != "" {
		t.Errorf("EC2 bare metal: got %q", got)
	}
}

func TestSmallParsers(t *testing.T) {
	if got := osName("NAME=\"x\"\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n"); got != "Debian GNU/Linux 12" {
		t.Errorf("os %q", got)
	}
	if kib, ok := meminfo("MemTotal:       16 kB\nMemFree: 3 kB\n", "MemFree"); kib != 3 || !ok {
		t.Errorf("memory %d, %t", kib, ok)
	}
	if _, ok := meminfo("MemTotal:\n", "MemTotal"); ok {
		t.Error("no number was taken for one")
	}
	if got := vulnerable(map[string]string{"a": "Not affected", "b": "Mitigation: X", "c": ""}, []string{"a", "b", "c"}); got != "b: Mitigation: X" {
		t.Errorf("mitigations %q", got)
	}
	stat := "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 80 9 10\ncpu11 1 2 3 4 5 6 7 81 9 10\ncpux 1 2 3 4 5 6 7 8\nintr 1\n"
	if got := stealTicks(stat); !reflect.DeepEqual(got, map[int]uint64{0: 80, 11: 81}) {
		t.Errorf("steal %v", got)
	}
	for in, want := range map[string][2]int{"6.18.44-fc": {6, 18}, "5.4": {5, 4}, "5.15-generic": {5, 15}} {
		if a, b, ok := kernelVersion(in); !ok || [2]int{a, b} != want {
			t.Errorf("%s: %d.%d, %t", in, a, b, ok)
		}
	}
	for _, in := range []string{"", "6", "x.y", "6."} {
		if _, _, ok := kernelVersion(in); ok {
			t.Errorf("%q has a version", in)
		}
	}
}

func TestMachineChecks(t *testing.T) {
	h := func(kernel, clock, governor string) compare.Host {
		return compare.Host{Kernel: kernel, Facts: map[string]string{"clocksource": clock, "cpu.governor": governor}}
	}
	for _, c := range []struct {
		got  Check
		want Status
	}{
		{kernelCheck(h("6.18.1", "", "")), Pass}, {kernelCheck(h("5.18.0", "", "")), Pass}, {kernelCheck(h("5.17.9", "", "")), Warn},
		{kernelCheck(h("4.19.0", "", "")), Warn}, {kernelCheck(h("odd", "", "")), Skip},
		{clockCheck(h("", "tsc", "")), Pass}, {clockCheck(h("", "arch_sys_counter", "")), Pass}, {clockCheck(h("", "kvm-clock", "")), Pass},
		{clockCheck(h("", "hpet", "")), Warn}, {clockCheck(h("", "", "")), Skip},
		{governorCheck(h("", "", "performance")), Pass}, {governorCheck(h("", "", "powersave")), Warn}, {governorCheck(h("", "", "")), Pass},
		{cpuCheck(h("", "", ""), []int{0}), Fail}, {cpuCheck(h("", "", ""), []int{0, 1}), Pass}, {cpuCheck(h("", "", ""), []int{0, 1, 2}), Pass},
	} {
		if c.got.Status != c.want {
			t.Errorf("%+v, want %s", c.got, c.want)
		}
	}
}

func TestCapabilityChecks(t *testing.T) {
	all := uint64(1)<<41 - 1
	for _, c := range capabilities() {
		got := map[string]Check{}
		without := all &^ (1 << c.bit)
		for _, check := range sound(t, capabilityChecks(without, true)) {
			got[check.ID] = check
		}
		for _, other := range capabilities() {
			want := Pass
			if other.name == c.name && (c.instead < 0) {
				if want = Fail; c.optional {
					want = Warn
				}
			}
			if id := "cap." + strings.ToLower(other.name); got[id].Status != want {
				t.Errorf("without %s, %s is %+v, want %s", c.name, other.name, got[id], want)
			}
		}
	}
	for _, c := range capabilityChecks(0, false) {
		if c.Status == Pass || !strings.Contains(c.Cure, "sudo") {
			t.Errorf("a user with none: %+v", c)
		}
	}
	if c := memlockCheck(1 << unix.CAP_IPC_LOCK); c.Status != Pass {
		t.Errorf("memlock with CAP_IPC_LOCK: %+v", c)
	}
	if c := rmemCheck(1 << unix.CAP_NET_ADMIN); c.Status == Warn {
		t.Errorf("rmem_max with CAP_NET_ADMIN: %+v", c)
	}
}

func attr(kind uint16, value uint64) []byte {
	b := binary.NativeEndian.AppendUint16(nil, 12)
	b = binary.NativeEndian.AppendUint16(b, kind)
	return binary.NativeEndian.AppendUint64(b, value)
}

func TestParseXDPFeatures(t *testing.T) {
	msg := append([]byte{1, 1, 0, 0}, attr(devXDP, 0x8b)...)
	msg = append(msg, attr(devRXMetadata, 2)...)
	msg = append(msg, attr(devXSK, 3)...)
	f, err := parseXDPFeatures(msg)
	want := XDPFeatures{XDP: []string{"basic", "redirect", "xsk-zerocopy", "bit-7"}, RXMetadata: []string{"hash"}, XSK: []string{"tx-timestamp", "tx-checksum"}}
	if err != nil || !reflect.DeepEqual(f, want) {
		t.Errorf("got %+v, %v, want %+v", f, err, want)
	}
	if !f.Has("redirect") || f.Has("ndo-xmit") || f.Has("xsk") {
		t.Error("Has does not match whole names")
	}
}

func FuzzParsers(f *testing.F) {
	f.Add(append([]byte{1, 1, 0, 0}, attr(devXDP, 7)...), "cpu0 1 2 3 4 5 6 7 8")
	f.Add([]byte{1}, "MemTotal: x")
	f.Add([]byte{1, 1, 0, 0, 3, 0, 3, 0}, "6.1")
	f.Fuzz(func(t *testing.T, b []byte, s string) {
		if len(b) > 4096 {
			return
		}
		if x, err := parseXDPFeatures(b); err != nil && len(x.XDP) > 64 {
			t.Error("more features than bits")
		}
		stealTicks(s)
		if kib, ok := meminfo(s, "MemTotal"); !ok && kib != 0 {
			t.Errorf("%d from %q", kib, s)
		}
		if a, b, ok := kernelVersion(s); ok && (a < 0 && !strings.HasPrefix(s, "-") || b < 0) {
			t.Errorf("version %d.%d from %q", a, b, s)
		}
		osName(s)
		cpuModel(s, s)
	})
}
