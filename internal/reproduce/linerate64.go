// SPDX-License-Identifier: Apache-2.0

package reproduce

import (
	"fmt"
	"strings"

	"twopath/compare"
)

// LineRateRow is one row of "64 bytes at line rate": kernel stack, i350 to 82599EB at 1 Gb/s, counted in promiscuous mode.
type LineRateRow struct {
	Bytes   int // with FCS
	PPS     float64
	Mbps    float64 // on the wire
	Seconds float64 // 0 is not given
	Sockets int     // CPU sockets
	Cores   int     // that receive
	Queues  int
	Ring    int // descriptors
	Weight  int // net.core.dev_weight
	Sent    uint64
	Got     uint64
	Step    string // ours beside it; several rows may have one
}

// LineRate64 is the source's name on the command line.
const LineRate64 = "line-rate-64"

// Steps of line-rate-64.
const (
	StepSweep      = "sweep"
	StepQueues     = "queues"
	StepRing       = "ring"
	StepWeight512  = "dev_weight=512"
	StepWeight4096 = "dev_weight=4096"
	StepLong       = "long"
	StepBypass     = "bypass"
)

// LineRateRows are the source's, in its order. Its DPDK program lost none at any length, up to 1,000,000,000 frames of 64 B.
func LineRateRows() []LineRateRow {
	const ten, hundred = 10_000_000, 100_000_000
	return []LineRateRow{
		{500, 230_000, 960, 0, 1, 1, 24, 512, 64, ten, ten, StepSweep},
		{400, 284_000, 950, 0, 1, 1, 24, 512, 64, ten, ten, StepSweep},
		{300, 367_000, 940, 0, 1, 1, 24, 512, 64, ten, ten, StepSweep},
		{200, 542_000, 952, 0, 1, 1, 24, 512, 64, ten, ten, StepSweep},
		{100, 1_039_000, 997, 9.62, 1, 1, 24, 512, 64, ten, ten, StepSweep},
		{64, 1_483_000, 996, 6.74, 1, 1, 24, 512, 64, ten, 9_907_134, StepSweep},
		{64, 1_483_000, 996, 67.4, 1, 1, 24, 512, 64, hundred, 99_147_516, StepLong},
		{64, 1_483_000, 996, 67.4, 1, 1, 1, 512, 64, hundred, 99_671_467, StepLong},
		{64, 1_483_000, 996, 67.4, 1, 2, 24, 512, 64, hundred, 99_252_877, StepQueues},
		{64, 1_483_000, 996, 67.4, 1, 4, 24, 512, 64, hundred, 99_084_322, StepQueues},
		{64, 1_483_000, 996, 67.4, 2, 8, 24, 512, 64, hundred, 99_177_716, StepQueues},
		{64, 1_483_000, 996, 67.4, 2, 24, 24, 512, 64, hundred, 99_110_338, StepQueues},
		{64, 1_483_000, 996, 67.4, 2, 8, 24, 4096, 64, hundred, 99_177_716, StepRing},
		{64, 1_483_000, 996, 67.4, 2, 24, 24, 4096, 64, hundred, 98_947_571, StepRing},
		{64, 1_483_000, 996, 67.4, 2, 24, 24, 4096, 4096, hundred, 98_992_914, StepWeight4096},
	}
}

// Loss is the row's loss ratio.
func (r LineRateRow) Loss() float64 { return float64(r.Sent-r.Got) / float64(r.Sent) }

const armNoSocket = "kernel:nosocket"

func lineRate64() Source {
	return Source{Name: LineRate64,
		Title: `"64 bytes at line rate: kernel vs DPDK" ([development][dpdk][pktgen] 网卡收发包性能测试-详细数据)`,
		About: "1 Gb/s in frames of 500 to 64 bytes, counted without a socket; then 64 bytes with each knob, and bypass",
		steps: lineRateSteps}
}

func lineRateSteps(sc Scale) []Step {
	gigabit := []compare.Rate{{Unit: compare.Line, Value: 1, LinkBPS: 1e9}}
	step := func(id, title string, count uint64, arms ...string) Step {
		p := sc.plan(arms...)
		p.Rates, p.Count, p.Sizes = gigabit, count, []compare.Size{{Bytes: 64}}
		return Step{ID: id, Title: title, Plan: p, Skip: needs(arms...)}
	}
	with := func(option string) []string { return []string{armNoSocket + "+" + option, armXDP + "+" + option} }
	quick := sc.count(100_000_000, 300_000)

	sweep := step(StepSweep, "500 to 64 bytes at 1 Gb/s", sc.count(10_000_000, 300_000), armNoSocket, armXDP)
	sweep.Plan.Sizes = []compare.Size{{Bytes: 500}, {Bytes: 400}, {Bytes: 300}, {Bytes: 200}, {Bytes: 100}, {Bytes: 64}}
	steps := []Step{sweep}
	if !sc.Quick {
		steps = append(steps, step(StepLong, "64 bytes, 100,000,000 frames", quick, armNoSocket, armXDP))
	}
	queues := step(StepQueues, "64 bytes over two queues", quick, armNoSocket, armXDP)
	queues.Plan.Queues = compare.Queues{2}
	steps = append(steps, queues)

	ring := step(StepRing, "64 bytes, the device's ring 4096 long", quick, with("rx_ring=4096")...)
	if sc.Base.NIC == "" {
		ring.Skip = "a veth's ring has 256 slots and no knob"
	}
	steps = append(steps, ring,
		step(StepWeight512, "64 bytes with net.core.dev_weight 512", quick, with("dev_weight=512")...),
		step(StepWeight4096, "64 bytes with net.core.dev_weight 4096", quick, with("dev_weight=4096")...))
	if !sc.Quick {
		steps = append(steps, step(StepBypass, "64 bytes, 1,000,000,000 frames, bypass alone", 1_000_000_000, armXDP))
	}
	return append(steps, furtherSteps(sc)...)
}

// FurtherTests are those that the source names beside its tables, with no figures but for the replay's.
func FurtherTests() []string { return []string{"fragments", "dns", "replay"} }

// furtherSteps run the further tests with their own defaults, a second a trial.
func furtherSteps(sc Scale) []Step {
	var steps []Step
	for _, name := range FurtherTests() {
		st := Step{ID: name, Title: name + ", with that test's own load"}
		test, ok := compare.LookupTest(name)
		switch {
		case !ok:
			st.Skip = "this version has no test of that name"
		case name == "replay":
			st.Skip = "its capture of 4.4 GB was not published; with one of your own: twopath compare replay FILE"
		default:
			st.Plan = sc.planOf(name, test.Default...)
		}
		steps = append(steps, st)
	}
	return steps
}

// Knob is what the source's row had beside the plainest setting, in a few words. All rows with a knob are of 100 M frames.
func (r LineRateRow) Knob() string {
	var parts []string
	add := func(format string, a ...any) { parts = append(parts, fmt.Sprintf(format, a...)) }
	if r.Cores > 1 {
		add("%d cores", r.Cores)
	}
	if r.Queues == 1 {
		add("1 queue")
	}
	if r.Ring != 512 {
		add("ring %d", r.Ring)
	}
	if r.Weight != 64 {
		add("dev_weight %d", r.Weight)
	}
	if r.Sent > 10_000_000 && len(parts) == 0 {
		add("%d M frames", r.Sent/1_000_000)
	}
	return strings.Join(parts, ", ")
}
