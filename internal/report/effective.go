// SPDX-License-Identifier: Apache-2.0

package report

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"twopath/compare"
)

// effective is how an arm really ran, in a few words. A host knob that any arm
// sets is told of all of them: its value without is the other half of the A/B.
func (v *view) effective(a *compare.Arm) string {
	var knobs []string
	for _, k := range compare.KnobNames() {
		if slices.ContainsFunc(v.arms, func(b *compare.Arm) bool { return b.Requested[k] != "" }) {
			knobs = append(knobs, k)
		}
	}
	return effectiveText(a, knobs...)
}

// effectiveText is how an arm really ran, in a few words, with what was asked
// for when that is not the same, and the settings named in also.
func effectiveText(a *compare.Arm, also ...string) string {
	e := &a.Effective
	var parts []string
	add := func(s string) { parts = append(parts, s) }
	xdp := engineOf(a) == "xdp"
	if e.Attach != "" && e.Attach != "none" {
		add(e.Attach)
	}
	if e.Bind != "" {
		add(bindText(e.Bind))
	}
	if !xdp && e.Batch > 0 {
		add("batch " + thousands(int64(e.Batch)))
	}
	if e.RcvbufBytes > 0 {
		// The kernel reports twice what was set (socket(7), SO_RCVBUF).
		add(memoryText(float64(e.RcvbufBytes)/2) + " buffer")
	}
	// A kernel arm blocks unless it says otherwise.
	if e.Wait != "" && (xdp || e.Wait != "block") {
		add(waitText(e.Wait))
	}
	if e.GRO == "udp" {
		add("UDP_GRO")
	}
	if n, err := strconv.Atoi(e.Other["sndbuf_bytes"]); err == nil && n > 0 {
		add(memoryText(float64(n)) + " sndbuf")
	}
	if g := e.Other["segmentation"]; g != "" {
		add(g)
	}
	if e.Ring > 0 && a.Requested["ring"] != "" {
		add("ring " + thousands(int64(e.Ring)))
	}
	if e.Csum == "off" {
		add("checksums not verified")
	}
	if e.Sockets > 1 {
		add(plural(int64(e.Sockets), "socket"))
	}
	// Of what has no field of its own, what was asked for; --wide has it all.
	for _, k := range slices.Sorted(maps.Keys(e.Other)) {
		if _, asked := a.Requested[k]; asked || slices.Contains(also, k) {
			add(k + "=" + e.Other[k])
		}
	}
	if asked := askedText(a); asked != "" {
		if len(parts) == 0 {
			return asked
		}
		return strings.Join(parts, ", ") + " (asked: " + asked + ")"
	}
	if len(parts) == 0 {
		return missing
	}
	return strings.Join(parts, ", ")
}

// askedText is what was asked of an xdp arm when it does not say by itself
// what it got.
func askedText(a *compare.Arm) string {
	asked := a.Requested["variant"]
	if engineOf(a) != "xdp" || asked == "" || asked == a.Effective.Bind || asked == a.Effective.Attach {
		return ""
	}
	return asked
}

// fellBack says whether an arm asked for a mode by name and got another.
func fellBack(a *compare.Arm) (asked, got string, fell bool) {
	asked = a.Requested["variant"]
	switch asked {
	case "zerocopy", "copy":
		got = a.Effective.Bind
	case "generic", "native":
		got = a.Effective.Attach
	}
	return asked, got, got != "" && got != asked
}

func bindText(s string) string {
	if s == "zerocopy" {
		return "zero-copy"
	}
	return s
}

func waitText(s string) string {
	if s == "busypoll" {
		return "busy poll"
	}
	return s
}

// memoryText prints bytes in binary units, as socket buffers are sized.
func memoryText(b float64) string {
	switch {
	case b >= 1<<30:
		return trimZeros(fixed(b/(1<<30), 1)) + " GiB"
	case b >= 1<<20:
		return trimZeros(fixed(b/(1<<20), 1)) + " MiB"
	case b >= 1<<10:
		return trimZeros(fixed(b/(1<<10), 1)) + " KiB"
	}
	return fixed(b, 0) + " B"
}

// settings are all effective settings as name and value, for the wide screen
// and the HTML page. What does not apply is left out.
func settings(a *compare.Arm) [][2]string {
	e := &a.Effective
	var out [][2]string
	add := func(name, value string) {
		if value != "" {
			out = append(out, [2]string{name, value})
		}
	}
	number := func(name string, n int, unit string) {
		if n > 0 {
			add(name, strings.TrimSpace(thousands(int64(n))+" "+unit))
		}
	}
	add("attach", e.Attach)
	add("bind", e.Bind)
	add("wait", e.Wait)
	add("NAPI", e.NAPI)
	add("NAPI sched", e.Sched)
	add("placement", e.Placement)
	number("batch", e.Batch, "packets")
	number("rcvbuf read back", e.RcvbufBytes, "B (twice what was set)")
	number("ring", e.Ring, "descriptors")
	add("GRO", e.GRO)
	add("checksums", e.Csum)
	number("sockets", e.Sockets, "")
	number("queues", e.Queues, "")
	add("reader CPUs", cpuList(e.CPUs))
	add("NAPI CPUs", cpuList(e.NAPICPUs))
	add("driver", e.Driver)
	for _, k := range slices.Sorted(maps.Keys(e.Other)) {
		add(k, e.Other[k])
	}
	return out
}

func cpuList(cpus []int) string {
	var parts []string
	for _, c := range cpus {
		parts = append(parts, thousands(int64(c)))
	}
	return strings.Join(parts, " ")
}
