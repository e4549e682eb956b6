// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"twopath/compare"
)

// armGrid lays up to two arms out as columns: the place where A and B are read
// against each other, with a column for remarks.
func armGrid(p *page, v *view) *grid {
	g := &grid{page: p, noteLast: true, columns: []align{justified}}
	for range v.arms {
		g.columns = append(g.columns, right)
	}
	g.columns = append(g.columns, left)
	// What is left of the width after labels and a readable remark, per arm.
	cellWidth := min(max((p.options.Width-24-46)/max(len(v.arms), 1)-2, 18), 34)
	lastWidth := min(p.options.Width-24-(cellWidth+2)*(len(v.arms)-1)-2, 60)

	names := make([]string, len(v.arms))
	effective := make([]string, len(v.arms))
	for i, a := range v.arms {
		names[i] = letter(i) + " " + a.Name
		effective[i] = v.effective(a)
	}
	for _, cells := range brokenCells(names, cellWidth, lastWidth) {
		r := g.row(append([]string{""}, cells...)...).toLeft()
		for i := range cells {
			r.colour(i+1, bold)
		}
	}
	label := "  effective"
	for _, cells := range brokenCells(effective, cellWidth, lastWidth) {
		g.row(append([]string{label}, cells...)...).toLeft()
		label = ""
	}
	return g
}

// brokenCells turns one row of long texts into rows of short ones.
// The last one may be wider: nothing stands beside it.
func brokenCells(texts []string, width, lastWidth int) [][]string {
	var out [][]string
	for i, s := range texts {
		if i == len(texts)-1 {
			width = max(width, lastWidth)
		}
		for k, line := range breakCell(s, width) {
			for len(out) <= k {
				out = append(out, make([]string, len(texts)))
			}
			out[k][i] = line
		}
	}
	return out
}

// metric is one row of the arms table.
type metric struct {
	name, unit string
	value      func(*compare.Arm) string
	note       string
	show       bool
}

// metrics are the rows that say something for this document.
func (v *view) metrics() []metric {
	packets := v.packetTest() && v.doc.Search == nil
	of := func(get func(*compare.Arm) *float64, format func(float64) string) func(*compare.Arm) string {
		return func(a *compare.Arm) string { return opt(get(a), format) }
	}
	some := func(get func(*compare.Arm) *float64) bool {
		return v.any(func(a *compare.Arm) bool { return get(a) != nil })
	}
	count := func(get func(*compare.Arm) uint64) func(*compare.Arm) string {
		return func(a *compare.Arm) string {
			if !has(a) {
				return missing
			}
			return uthousands(get(a))
		}
	}
	nonzero := func(get func(*compare.Arm) uint64) bool {
		return v.any(func(a *compare.Arm) bool { return get(a) != 0 })
	}
	offered := func(a *compare.Arm) *float64 { return a.OfferedPPS }
	received := func(a *compare.Arm) *float64 { return a.ReceivedPPS }
	wire := func(a *compare.Arm) *float64 { return a.WireBPS }
	loss := func(a *compare.Arm) *float64 { return a.LossRatio }
	cores := func(a *compare.Arm) *float64 { return a.CPU.CoresPerMpps }
	cpu := func(a *compare.Arm) *float64 { return cpuPerPacket(a.CPU) }
	tsc := func(a *compare.Arm) *float64 { return a.TSCPerPacket }
	lower := func(a *compare.Arm) *float64 { return a.LowerPPS }
	upper := func(a *compare.Arm) *float64 { return a.UpperPPS }
	conditional := func(a *compare.Arm) *float64 { return a.ConditionalPPS }
	p50 := func(a *compare.Arm) *float64 { return a.LatencyP50Ns }
	p99 := func(a *compare.Arm) *float64 { return a.LatencyP99Ns }
	completed := func(a *compare.Arm) *float64 {
		return v.perSecond(a, func(t *compare.Trial) *uint64 { return t.Completed })
	}
	requests := func(a *compare.Arm) *float64 {
		return v.perSecond(a, func(t *compare.Trial) *uint64 { return t.Requests })
	}
	errors := func(a *compare.Arm) *uint64 {
		return v.total(a, func(t *compare.Trial) *uint64 {
			if t.Errors == nil {
				return nil
			}
			return &t.Errors.Total
		})
	}

	echo := v.echoes()
	dials := connects(v.doc)
	_, unit := v.unit()
	each := func(a *compare.Arm) *float64 { return v.packetsEach(a) }
	all := []metric{
		{"connections", "per s", of(completed, pps), "opened, used and closed", some(completed)},
		{"requests", "per s", of(requests, pps), "", some(requests)},
		{v.errorLabel(), v.errorUnit(), func(a *compare.Arm) string {
			if n := errors(a); n != nil {
				return uthousands(*n)
			}
			return missing
		}, v.errorKinds(), v.any(func(a *compare.Arm) bool { return errors(a) != nil })},
		{"per connection", "packets", of(each, significant), "both ways, at the SUT's device", some(each)},
		{v.sentLabel(), "pps", of(offered, pps), v.sentNote(), packets || some(offered) && !dials},
		{"not sent", "", of(unsentRatio, percent), "handed over, and dropped before it left", some(unsentRatio) && v.doc.Sends()},
		{"received", "pps", of(received, pps), v.receivedNote(), packets || some(received) && !dials},
		{"on the wire", "Gb/s", of(wire, gbps), "", packets || some(wire)},
		{"lost", "", of(loss, percent), v.lossNote(), packets || some(loss) && !dials},
		{"no loss up to", "pps", of(lower, pps), "RFC 9971 relevant lower bound", some(lower)},
		{"loss from", "pps", of(upper, pps), "RFC 9971 relevant upper bound", some(upper)},
		{"conditional", "pps", of(conditional, pps), "RFC 9971 conditional throughput", some(conditional)},
		{"latency p50", "ns", of(p50, nanoseconds), v.latencyBase(), some(p50) && !echo},
		{"latency p99", "ns", of(p99, nanoseconds), "", some(p99) && !echo},
		{"CPU/" + unit, "ns", of(cpu, nanoseconds), v.spinNote(), packets || some(cpu)},
		{"cores per Mpps", "", of(cores, significant), v.coresNote(), packets || some(cores) && !dials},
		{"TSC/" + unit, "cycles", of(tsc, pps), v.threads(), some(tsc)},
		{"by worker", "", workerText, "", v.multiWorker()},
	}
	for _, c := range []struct {
		name, note string
		get        func(*compare.Arm) uint64
	}{
		{"duplicate", "read more than once; not in received", func(a *compare.Arm) uint64 { return a.Duplicate }},
		{"reordered", "received, but after a later one", func(a *compare.Arm) uint64 { return a.Reordered }},
		{"corrupt", "reached the reader damaged; lost", func(a *compare.Arm) uint64 { return a.Corrupt }},
		{"foreign", "not of this run; in no other count", func(a *compare.Arm) uint64 { return a.Foreign }},
		{"wasted", "fragments that came and are in no datagram received", func(a *compare.Arm) uint64 {
			if a.Fragments == nil {
				return 0
			}
			return a.Fragments.Wasted
		}},
		{"sent late", "more than 1 ms after their time", func(a *compare.Arm) uint64 { return a.Late }},
	} {
		unit := "packets"
		if c.name == "wasted" {
			unit = "fragments"
		}
		all = append(all, metric{c.name, unit, count(c.get), c.note, nonzero(c.get)})
	}
	if echo {
		at := slices.IndexFunc(all, func(m metric) bool { return m.name == "CPU/packet" })
		all = slices.Insert(all, at, v.latencyMetrics()...)
		if len(v.arms) > 2 { // what is left out is in the record
			all = slices.DeleteFunc(all, func(m metric) bool {
				return slices.Contains([]string{"on the wire", "cores per Mpps", "TSC/packet"}, m.name)
			})
		}
	}
	shown := all[:0]
	for _, m := range all {
		if m.show {
			shown = append(shown, m)
		}
	}
	return shown
}

// packetTest says whether rates of packets are what the test is about: not so
// for connection tests, which count connections.
func (v *view) packetTest() bool {
	for i := range v.doc.Trials {
		if t := &v.doc.Trials[i]; t.Completed != nil || t.Requests != nil {
			return false
		}
	}
	return true
}

// spinNote tells empty polls from work, per arm.
func (v *view) spinNote() string {
	var parts []string
	some := false
	for i, a := range v.arms {
		parts = append(parts, letter(i)+" "+opt(a.CPU.SpinNsPerPacket, nanoseconds))
		some = some || (a.CPU.SpinNsPerPacket != nil && *a.CPU.SpinNsPerPacket > 0)
	}
	if !some {
		return "softirq and NAPI threads included"
	}
	return "of that empty polls: " + strings.Join(parts, ", ")
}

// receivedNote explains a rate below what offered and lost would make it:
// packets read out of a buffer after the last was sent count over the time that took.
func (v *view) receivedNote() string {
	late := v.any(func(a *compare.Arm) bool {
		return a.OfferedPPS != nil && a.ReceivedPPS != nil && a.LossRatio != nil && *a.ReceivedPPS < *a.OfferedPPS*(1-*a.LossRatio)*0.99
	})
	if late {
		return "over the time until the last one was read"
	}
	return ""
}

// lossNote says when loss means nothing.
func (v *view) lossNote() string {
	if v.doc.ClosedLoop() {
		return "closed loop: not judged"
	}
	if n := v.undeliverable(); n != "" {
		return n
	}
	return ""
}

// coresNote says which arm holds a core whatever the rate.
func (v *view) coresNote() string {
	var spinning []string
	for i, a := range v.arms {
		if a.Effective.Wait == "spin" || a.Effective.Wait == "busypoll" {
			spinning = append(spinning, letter(i))
		}
	}
	switch len(spinning) {
	case 0:
		return ""
	case 1:
		return "without empty polls; " + spinning[0] + " holds its core at any rate"
	}
	return "without empty polls; " + strings.Join(spinning, ", ") + " hold their cores at any rate"
}

// latencyBase says what latency was counted from.
func (v *view) latencyBase() string {
	for i := range v.doc.Trials {
		l := v.doc.Trials[i].LatencyNs
		switch {
		case l == nil || l.Base == "":
		case l.Base == "intended":
			return "from the intended send time"
		case l.Base == "sent":
			return "ping-pong: from the send, next one waits"
		default:
			return "from " + l.Base
		}
	}
	return ""
}

// errorLabel says what an error is in this test.
func (v *view) errorLabel() string {
	if v.doc.Test == "dns" {
		return "wrong answers"
	}
	return "errors"
}

// errorKinds lists the commonest kinds of a connection test's errors.
func (v *view) errorKinds() string {
	by := map[string]uint64{}
	for _, a := range v.arms {
		for _, t := range v.trialsOf(a) {
			if t.Errors != nil {
				for k, n := range t.Errors.By {
					by[k] += n
				}
			}
		}
	}
	var parts []string
	for _, k := range byCount(by) {
		if by[k] > 0 && len(parts) < 4 {
			parts = append(parts, fmt.Sprintf("%s %s", k, uthousands(by[k])))
		}
	}
	return strings.Join(parts, ", ")
}

// armRows adds the metric rows to the grid.
func armRows(g *grid, v *view) {
	for _, m := range v.metrics() {
		label := "  " + m.name
		if m.unit != "" {
			label += "\t" + m.unit
		}
		cells := []string{label}
		for _, a := range v.arms {
			cells = append(cells, m.value(a))
		}
		g.row(append(cells, m.note)...)
	}
}
