// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strings"

	"twopath/compare"
	"twopath/internal/reproduce"
)

// lineRate sets "64 bytes at line rate" beside ours: losses side by side, then our rows in the source's columns.
func (p *page) lineRate(docs []compare.Document) {
	p.line("")
	p.line(p.paint(bold, "Lost, theirs and ours"))
	p.lines(p.lossTable(docs).lines(0, p.options.Width))
	p.line("")
	p.line(p.paint(bold, "Our rows in the source's columns (theirs: its figures of the kernel stack)"))
	p.lines(p.lineRateRows(docs).lines(0, p.options.Width))
	if g := p.furtherTests(docs); g != nil {
		p.line("")
		p.lines(g.lines(0, p.options.Width))
	}
	p.line("")
	for i, s := range lineRateClosing(docs) {
		word := ""
		if i == 0 {
			word = "FOUND"
		}
		p.label(word, bold, s)
	}
}

// lossTable has a line for each of the source's rows. Its DPDK program lost none at any length.
func (p *page) lossTable(docs []compare.Document) *grid {
	g := &grid{page: p, noteLast: true, columns: []align{right, left, right, right, right, right, right, left}}
	g.row("", "", "kernel:", "", "bypass:", "", "XDP_DROP", "")
	g.row("  bytes", "their setting", "theirs", "ours", "DPDK", "xdp:auto", "ours", "ours: setting, and where the kernel's frames went").toLeft()
	for _, r := range reproduce.LineRateRows() {
		d := cellFor(docs, r)
		cells := []string{"  " + thousands(int64(r.Bytes)), r.Knob(), percent(r.Loss())}
		if d == nil {
			why := notRun(docs, r.Step)
			switch {
			case why != "":
			case r.Step == reproduce.StepLong && !cutShort(docs):
				why = "takes the full counts (leave out --quick)"
			default:
				why = "cut short"
			}
			g.row(append(cells, missing, "0.00 %", missing, missing, "not run: "+why)...)
			continue
		}
		v := newView(d)
		kernel, xdp := v.engine("kernel"), v.engine("xdp")
		loss := func(a *compare.Arm) string {
			if a == nil {
				return missing
			}
			return opt(a.LossRatio, percent)
		}
		drop := missing
		if d.Limit != nil {
			drop = opt(d.Limit.LossRatioAtLoad, percent)
		}
		note := ourSetting(d)
		if kernel != nil {
			note = strings.Join(nonEmpty(note, lostWhere(kernel)), ": ")
		}
		g.row(append(cells, loss(kernel), "0.00 %", loss(xdp), drop, note)...)
	}
	return g
}

// cutShort says whether the last step with trials was not carried out to its end.
func cutShort(docs []compare.Document) bool {
	ran := stepsThatRan(docs)
	return len(ran) == 0 || ran[len(ran)-1].Incomplete
}

// cellFor is our cell beside one of the source's rows.
func cellFor(docs []compare.Document, r reproduce.LineRateRow) *compare.Document {
	for _, d := range ofStep(docs, r.Step) {
		if d.Traffic.Size.Bytes == r.Bytes {
			return d
		}
	}
	return nil
}

// ourSetting is what differed from the plainest of our rows.
func ourSetting(d *compare.Document) string {
	var parts []string
	if d.Traffic.Queues > 1 {
		parts = append(parts, plural(int64(d.Traffic.Queues), "queue"))
	}
	switch step := d.Reproduces.Step; step {
	case reproduce.StepSweep, reproduce.StepQueues, reproduce.StepLong:
	default:
		parts = append(parts, step)
	}
	return strings.Join(parts, ", ")
}

// lineRateRows are the source's table with our rows in it.
func (p *page) lineRateRows(docs []compare.Document) *grid {
	g := &grid{page: p, noteLast: true, columns: []align{right, left, right, right, right, right, right, right, right, right, right, left}}
	g.row("  bytes", "", "queues", "ring", "weight", "pps", "Mb/s", "s", "sent", "received", "lost", "lost where")
	seen := map[*compare.Document]bool{}
	ours := func(d *compare.Document) {
		if d == nil || seen[d] {
			return
		}
		seen[d] = true
		v := newView(d)
		for _, a := range v.arms {
			if !has(a) {
				g.row("", "ours "+oneLine(a.Name), thousands(int64(d.Traffic.Queues)), ringText(d), weightText(d, a), missing, missing, missing, missing, missing, missing, "no valid trial")
				continue
			}
			g.row("", "ours "+oneLine(a.Name), thousands(int64(d.Traffic.Queues)), ringText(d), weightText(d, a), opt(a.OfferedPPS, pps), opt(offeredBits(d, a), megabits), fixed(v.seconds(a), 2),
				uthousands(a.Sent), uthousands(a.Received), opt(a.LossRatio, percent), lostWhere(a))
		}
	}
	for _, r := range reproduce.LineRateRows() {
		seconds := missing
		if r.Seconds > 0 {
			seconds = significant(r.Seconds)
		}
		cores := plural(int64(r.Cores), "core")
		if r.Sockets > 1 {
			cores += ", " + plural(int64(r.Sockets), "socket")
		}
		g.row("  "+thousands(int64(r.Bytes)), "theirs, "+cores, thousands(int64(r.Queues)), thousands(int64(r.Ring)), thousands(int64(r.Weight)), pps(r.PPS), fixed(r.Mbps, 0), seconds,
			uthousands(r.Sent), uthousands(r.Got), percent(r.Loss()), "")
		ours(cellFor(docs, r))
	}
	g.row("  64", "theirs, DPDK", missing, missing, missing, "1,483,000", "996", missing, "1,000,000,000", "1,000,000,000", "0.00 %", "")
	for _, step := range []string{reproduce.StepWeight512, reproduce.StepBypass} {
		for _, d := range ofStep(docs, step) {
			ours(d)
		}
	}
	return g
}

// furtherTests are those that the source names without figures, on both engines; nil when none of them ran.
func (p *page) furtherTests(docs []compare.Document) *grid {
	g := &grid{page: p, noteLast: true, columns: []align{left, left, right, right, right, right, left}}
	g.text("Further tests that the source names", bold)
	g.row("  test", "arm", "pps", "sent", "received", "lost", "lost where")
	some := false
	for _, name := range reproduce.FurtherTests() {
		for _, d := range ofStep(docs, name) {
			for _, a := range newView(d).arms {
				some = true
				if !has(a) {
					g.row("  "+name, oneLine(a.Name), missing, missing, missing, missing, "no valid trial")
					continue
				}
				g.row("  "+name, oneLine(a.Name), opt(a.OfferedPPS, pps), uthousands(a.Sent), uthousands(a.Received), opt(a.LossRatio, percent), lostWhere(a))
			}
		}
	}
	if !some {
		return nil
	}
	return g
}

// ringText is the device's receive ring where it is known: a veth's is a constant of its driver.
func ringText(d *compare.Document) string {
	if d.Rig.Driver == "veth" {
		return "256"
	}
	if s := d.Host.Facts["nic.rx_ring"]; s != "" {
		return oneLine(s)
	}
	return missing
}

func weightText(d *compare.Document, a *compare.Arm) string {
	if s := a.Requested["dev_weight"]; s != "" {
		return oneLine(s)
	}
	if s := d.Host.Facts["net.core.dev_weight"]; s != "" {
		return oneLine(s)
	}
	return missing
}

// Losses beyond which a finding shows: the source's least loss of the kernel at 64 bytes is 0.33 %, and at 100 bytes and
// more it lost none of ten million.
const (
	showsLoss = 0.001
	noLoss    = 0.0001
)

// lineRateClosing says whether the source's finding shows here, and if not, why.
func lineRateClosing(docs []compare.Document) []string {
	small, large := math.NaN(), math.NaN() // the kernel's loss at 64 B, and its worst at 100 B and more
	bypass, bypassOver := math.NaN(), math.NaN()
	worst := 0
	for _, d := range ofStep(docs, reproduce.StepSweep) {
		v := newView(d)
		k, x := v.engine("kernel"), v.engine("xdp")
		if x != nil && x.LossRatio != nil && !(*x.LossRatio <= bypass) {
			bypass = *x.LossRatio
			bypassOver = bypass
			if d.Limit != nil && d.Limit.LossRatioAtLoad != nil {
				bypassOver = bypass - *d.Limit.LossRatioAtLoad
			}
		}
		if k == nil || k.LossRatio == nil {
			continue
		}
		if d.Traffic.Size.Bytes == 64 {
			small = *k.LossRatio
		} else if !(*k.LossRatio <= large) {
			large, worst = *k.LossRatio, d.Traffic.Size.Bytes
		}
	}
	if math.IsNaN(small) || math.IsNaN(bypass) {
		return []string{"Not enough rows ran to say whether the source's finding shows here: it needs the kernel's and the bypass' loss at 64 bytes."}
	}
	finding := "The source: at 64 bytes the kernel loses 0.33 to 1.05 %, whatever the knob, and none at 100 bytes and more; bypass loses none."
	var out []string
	kernelShows, bypassShows := small > showsLoss, bypassOver <= noLoss || bypass <= noLoss
	switch {
	case kernelShows && bypassShows && !(large > noLoss):
		out = append(out, finding+fmt.Sprintf(" It shows here: the kernel loses %s at 64 bytes and %s at the others, bypass at most %s.", percent(small), lossOr(large), percent(bypass)))
	case kernelShows && bypassShows:
		out = append(out, finding+fmt.Sprintf(" The gap shows here and begins earlier: the kernel loses %s at 64 bytes and up to %s at larger ones (%d bytes), bypass at most %s.", percent(small), lossOr(large), worst, percent(bypass)))
	case kernelShows && small > 3*bypass:
		out = append(out, finding+fmt.Sprintf(" The gap shows here, but not the zero: the kernel loses %s at 64 bytes, bypass up to %s.", percent(small), percent(bypass)))
	case kernelShows:
		out = append(out, finding+fmt.Sprintf(" It does not show here: the kernel loses %s at 64 bytes, and bypass up to %s.", percent(small), percent(bypass)))
	default:
		out = append(out, finding+fmt.Sprintf(" It does not show here: the kernel loses %s at 64 bytes, no more than the source's least.", percent(small)))
	}
	return append(out, lineRateWhy(docs)...)
}

func lossOr(v float64) string {
	if math.IsNaN(v) {
		return "(not measured)"
	}
	return percent(v)
}

// lineRateWhy is what makes ours differ from theirs, gravest first.
func lineRateWhy(docs []compare.Document) []string {
	ran := stepsThatRan(docs)
	if len(ran) == 0 {
		return nil
	}
	d := &ran[0]
	var parts []string
	switch d.Rig.Placement {
	case compare.PlaceShared:
		parts = append(parts, "NAPI shares its CPU with the reader and with what else runs here, where the source's receiving cores were isolated")
	case compare.PlaceSender:
		parts = append(parts, "the stack runs on the sender's CPU and slows it down")
	}
	if d.Rig.Driver == "veth" {
		parts = append(parts, "a veth's ring holds 256 frames = 0.17 ms at this rate, the source's NIC 512 to 4096 = 0.35 to 2.8 ms")
	}
	if d.Host.Virtual != "" {
		parts = append(parts, "a virtual machine stands still for longer than that now and then, whoever receives: see the column XDP_DROP")
	}
	if len(parts) == 0 {
		return nil
	}
	out := []string{"What differs here: " + strings.Join(parts, "; ") + "."}
	if !hasStep(docs, reproduce.StepWeight4096) {
		return out
	}
	return append(out, "net.core.dev_weight bounds the backlog of devices without NAPI; a device with NAPI has a weight of its own (64), so this knob cannot cure its loss, as the source found.")
}

func hasStep(docs []compare.Document, step string) bool { return len(ofStep(docs, step)) > 0 }
