// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"twopath/compare"
)

// verdictText is the headline: the sentence, what it rests on, and the word.
// Each part is kept whole where lines must be broken.
func (v *view) verdictParts(c *compare.Comparison) []string {
	claim, interval := v.sentence(c)
	return nonEmpty(claim, strings.Join(nonEmpty(interval, basis(c)), ", "))
}

// sentence says which arm does how much better. It names the better one first,
// so that the number is above 1 whoever wins.
func (v *view) sentence(c *compare.Comparison) (sentence, interval string) {
	a, b := v.call(c.A), v.call(c.B)
	if c.Word == compare.NotComparable {
		return a + " and " + b + " are not comparable" + because(c), ""
	}
	if c.Ratio == nil || !finite(*c.Ratio) || *c.Ratio <= 0 {
		return v.noRatio(c, a, b), ""
	}
	ratio, ci, bounds := *c.Ratio, c.CI, c.Range
	winner, loser := b, a
	// Where no one won, B stays first: turning it round would suggest one did.
	if ratio < 1 && c.Word != compare.Equivalent && c.Word != compare.Inconclusive {
		winner, loser, ratio = a, b, 1/ratio
		if ci != nil && ci[0] > 0 && ci[1] > 0 {
			ci = &[2]float64{1 / ci[1], 1 / ci[0]}
		} else {
			ci = nil
		}
		if bounds != nil && bounds[0] > 0 && bounds[1] > 0 {
			bounds = &[2]float64{1 / bounds[1], 1 / bounds[0]}
		}
	}
	atLeast := ""
	if c.Bound == compare.LowerBound {
		atLeast = "at least "
	}
	interval = "no interval"
	switch {
	case bounds != nil:
		interval = fmt.Sprintf("[%s .. %s] by the bounds", ratioNumber(bounds[0]), ratioNumber(bounds[1]))
	case c.Metric == compare.MetricConditional:
		interval = "a bound is missing"
	}
	if ci != nil {
		interval = fmt.Sprintf("[%s .. %s], %s %%", ratioNumber(ci[0]), ratioNumber(ci[1]), trimZeros(fixed(c.CILevel*100, 1)))
	}
	return v.claim(c.Metric, winner, loser, atLeast, ratioText(ratio)), interval
}

// claim words "the winner does ratio x as well as the loser" for a metric.
func (v *view) claim(metric, winner, loser, atLeast, ratio string) string {
	switch kindOf(metric) {
	case receivedRate:
		verb := "receives"
		switch {
		case v.doc.Sends():
			verb = "brings over"
		case connects(v.doc):
			verb = "completes"
		}
		return fmt.Sprintf("%s %s %s%s %s", winner, verb, atLeast, ratio, loser)
	case cpuCost:
		unit, _ := v.unit()
		return fmt.Sprintf("%s does %s%s %s's %s per CPU second", winner, atLeast, ratio, loser, unit)
	case timeCost:
		return fmt.Sprintf("%s takes %s%s as long as %s (%s)", loser, atLeast, ratio, winner, metricText(metric))
	case searched:
		return fmt.Sprintf("%s bears %s%s %s's load", winner, atLeast, ratio, loser)
	case lossFree:
		return fmt.Sprintf("%s's highest rate without loss is %s%s %s's", winner, atLeast, ratio, loser)
	}
	return fmt.Sprintf("%s reaches %s%s %s (%s)", winner, atLeast, ratio, loser, metricText(metric))
}

type metricKind uint8

const (
	otherRate metricKind = iota
	receivedRate
	cpuCost
	timeCost
	lossFree
	searched
)

// kindOf sorts metric names by how a ratio of them is put into words.
func kindOf(metric string) metricKind {
	switch {
	case metric == "received_pps":
		return receivedRate
	case strings.Contains(metric, "work_ns") || strings.Contains(metric, "cpu"):
		return cpuCost
	case strings.Contains(metric, "latency") || strings.Contains(metric, "ns_per") || strings.HasSuffix(metric, "_ns"):
		return timeCost
	case metric == compare.MetricConditional:
		return searched
	case metric == "lower_pps":
		return lossFree
	}
	return otherRate
}

// metricText is a metric's name for a reader.
func metricText(metric string) string {
	switch metric {
	case "received_pps":
		return "packets received per second"
	case "lower_pps":
		return "highest rate without loss"
	case compare.MetricConditional:
		return "conditional throughput"
	case "cpu.work_ns_per_packet", "cpu_work_ns_per_packet", "work_ns_per_packet":
		return "CPU work per packet"
	case "latency_p50_ns":
		return "median latency"
	case "latency_p99_ns":
		return "99th percentile of latency"
	}
	return oneLine(strings.ReplaceAll(metric, "_", " "))
}

// metricUnit is the unit of a metric's values.
func metricUnit(metric string) string {
	switch kindOf(metric) {
	case receivedRate, lossFree, searched:
		return "pps"
	case cpuCost, timeCost:
		return "ns"
	}
	switch {
	case strings.HasSuffix(metric, "_pps"):
		return "pps"
	case strings.HasSuffix(metric, "_bps"):
		return "b/s"
	case strings.Contains(metric, "per_second"):
		return "per s"
	}
	return ""
}

// noRatio words a comparison that has none, for example because one arm
// received nothing at all.
func (v *view) noRatio(c *compare.Comparison, a, b string) string {
	if c.AValue != nil && c.BValue != nil {
		unit := metricUnit(c.Metric)
		if unit != "" {
			unit = " " + unit
		}
		return fmt.Sprintf("no ratio of %s: %s %s%s, %s %s%s%s", metricText(c.Metric), a, pps(*c.AValue), unit, b, pps(*c.BValue), unit, because(c))
	}
	return fmt.Sprintf("no ratio of %s between %s and %s%s", metricText(c.Metric), a, b, because(c))
}

func because(c *compare.Comparison) string {
	if c.Because == "" {
		return ""
	}
	return ": " + c.Because
}

// basis is what the interval rests on: blocks and trials.
func basis(c *compare.Comparison) string {
	var parts []string
	if c.Blocks > 0 {
		parts = append(parts, plural(int64(c.Blocks), "ABBA block"))
	}
	if c.Trials > 0 {
		parts = append(parts, fmt.Sprintf("%s of %s trials valid", thousands(int64(c.ValidTrials)), thousands(int64(c.Trials))))
	}
	return strings.Join(parts, ", ")
}

// wordText is the decision, seen from B as the record has it; when the kernel
// path is the better one it says so in so many words.
func (v *view) wordText(c *compare.Comparison) string {
	if c.Word == "" {
		return "no word"
	}
	s := string(c.Word)
	a, b := v.arm(c.A), v.arm(c.B)
	if a == nil || b == nil || engineOf(a) == engineOf(b) {
		return s
	}
	winner := ""
	switch c.Word {
	case compare.Faster:
		winner = engineOf(b)
	case compare.Slower:
		winner = engineOf(a)
	}
	if winner == "kernel" {
		s += ": the kernel path (" + v.call(kernelOf(a, b).Name) + ") wins"
	}
	return s
}

func kernelOf(a, b *compare.Arm) *compare.Arm {
	if engineOf(a) == "kernel" {
		return a
	}
	return b
}

func wordColour(w compare.Word) colour {
	switch w {
	case compare.Faster, compare.Slower:
		return green
	case compare.NotComparable:
		return red
	}
	return yellow
}

// explanations are the lines under the verdict: what the metric was chosen
// for, why it is only a bound, why nothing could be shown.
func (v *view) explanations(c *compare.Comparison) []string {
	var out []string
	if len(v.arms) > 2 {
		a, b := v.arm(c.A), v.arm(c.B)
		if a != nil && b != nil && engineOf(a) != engineOf(b) {
			out = append(out, fmt.Sprintf("%s is %s, the best %s arm; %s is %s, the best %s arm", v.call(c.A), c.A, engineOf(a), v.call(c.B), c.B, engineOf(b)))
		}
	}
	if c.Bound == compare.LowerBound {
		out = append(out, v.boundText(c))
	}
	if kindOf(c.Metric) == cpuCost && c.AValue != nil && c.BValue != nil {
		out = append(out, fmt.Sprintf("%sCPU work per packet is compared: %s %s ns, %s %s ns, without empty polls",
			v.whyCost(c), v.call(c.A), nanoseconds(*c.AValue), v.call(c.B), nanoseconds(*c.BValue)))
	}
	if kindOf(c.Metric) == timeCost && c.AValue != nil && c.BValue != nil {
		out = append(out, fmt.Sprintf("%s of a trial: %s %s us, %s %s us", metricText(c.Metric), v.call(c.A), micros(*c.AValue), v.call(c.B), micros(*c.BValue)))
	}
	if tail := v.tailText(c); tail != "" {
		out = append(out, tail)
	}
	if c.Because != "" && c.Word != compare.NotComparable && c.Ratio != nil {
		out = append(out, v.reletter(c, c.Because))
	}
	for _, n := range c.Notes {
		if !saidElsewhere(n) {
			out = append(out, v.reletter(c, n))
		}
	}
	return out
}

// saidElsewhere says whether a note of the comparison repeats what the screen
// has in another place: the bound, the row of losses, the remarks on modes.
func saidElsewhere(note string) bool {
	return strings.Contains(note, "took all that was offered") || strings.HasPrefix(note, "lost: ") ||
		strings.Contains(note, "did not verify checksums") || strings.HasSuffix(note, "as asked")
}

// reletter puts the screen's letters into a sentence of the record, which
// calls the two arms of its comparison A and B whatever their place is here.
func (v *view) reletter(c *compare.Comparison, s string) string {
	a, b := v.call(c.A), v.call(c.B)
	if a == "A" && b == "B" {
		return s
	}
	var out strings.Builder
	for i := range len(s) {
		alone := (i == 0 || !wordByte(s[i-1])) && (i+1 == len(s) || !wordByte(s[i+1]))
		switch {
		case alone && s[i] == 'A':
			out.WriteString(a)
		case alone && s[i] == 'B':
			out.WriteString(b)
		default:
			out.WriteByte(s[i])
		}
	}
	return out.String()
}

// wordByte says whether a letter beside this byte is part of something longer;
// "A/A control" is not about arm A.
func wordByte(c byte) bool {
	return c == '/' || c == '_' || c == '-' || c == '#' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// whyCost says why received rates are not compared, when that is so.
func (v *view) whyCost(c *compare.Comparison) string {
	lost := false
	for _, name := range []string{c.A, c.B} {
		a := v.arm(name)
		if a == nil || a.LossRatio == nil || a.AvoidableLoss() > c.Margin {
			return ""
		}
		lost = lost || a.AvoidableLoss() > 0
	}
	if lost && v.undeliverable() != "" {
		return "neither lost more than " + percent(c.Margin) + " of what could be received, so "
	}
	if lost {
		return "neither lost more than " + percent(c.Margin) + ", so "
	}
	if v.undeliverable() != "" {
		return "neither lost a datagram that could be received, so "
	}
	return "neither lost a packet, so "
}

func (v *view) boundText(c *compare.Comparison) string {
	better := c.B
	if c.Ratio != nil && *c.Ratio < 1 {
		better = c.A
	}
	if v.doc.Search != nil {
		return "lower bound: " + v.call(better) + " bore the highest load there is, so the ratio may be larger"
	}
	s := "lower bound: " + v.call(better) + " took all that was offered"
	if v.doc.Sends() {
		s = "lower bound: " + v.call(better) + " sent all that was asked for"
	}
	if l := v.doc.Limit; l != nil && l.PPS != nil && finite(*l.PPS) {
		s += fmt.Sprintf(" (%s here: %s)", limitText(l.Name), shortRate(*l.PPS))
	}
	return s + ". A higher --rate tells more"
}

func limitText(name string) string {
	switch name {
	case compare.LimitDrop:
		return "XDP_DROP"
	case compare.LimitReflect:
		return "XDP_TX"
	case compare.LimitLive:
		return "XDP live frames"
	}
	return name
}

// controlTexts describe the A/A comparisons: the noise floor.
func (v *view) controlTexts() []string {
	var out []string
	for i := range v.doc.Comparisons {
		c := &v.doc.Comparisons[i]
		if !c.Control {
			continue
		}
		s := v.call(c.A) + " against itself: " + opt(c.Ratio, ratioText)
		if c.CI != nil {
			s += fmt.Sprintf(" [%s .. %s]", ratioNumber(c.CI[0]), ratioNumber(c.CI[1]))
		}
		s += ", " + string(c.Word)
		switch c.Word {
		case compare.Faster, compare.Slower:
			s += ": a difference where none can be, so no verdict of this run can be trusted"
		}
		out = append(out, s)
	}
	return out
}
