// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"twopath/compare"
	"twopath/internal/reproduce"
)

// skipped is the record of a step that was not run.
func skipped(source, step, why string) compare.Document {
	return compare.Document{Schema: compare.SchemaID, Test: "udp-rx", Incomplete: true, Reason: why, Reproduces: &compare.Reproduction{Source: source, Step: step}}
}

// lineRateDocuments are the steps of line-rate-64 as a quick run leaves them: the kernel loses kernel64 at 64 bytes, bypass
// bypass64.
func lineRateDocuments(kernel64, bypass64 float64) []compare.Document {
	step := func(id string, size, queues int) compare.Document {
		rate := 1e9 / float64((size+20)*8)
		k, x := recvmmsg(), xdpAuto()
		k.name, k.sent, x.sent = "kernel:nosocket", 300_000, 300_000
		k.received, x.received, k.losses, x.losses = 300_000, 300_000, nil, nil
		lose := func(f *armFixture, ratio float64) {
			if lost := uint64(math.Round(ratio * 300_000)); lost > 0 && size == 64 {
				f.received -= lost
				f.losses = []loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "", lost, compare.Exact}}
			}
		}
		lose(&k, kernel64)
		lose(&x, bypass64)
		doc := fixture(rate, 1, k, x)
		doc.Argv = []string{"twopath", "reproduce", "line-rate-64", "--quick"}
		doc.Traffic.Size, doc.Traffic.FrameBytes, doc.Traffic.Queues = compare.Size{Bytes: size}, float64(size), queues
		doc.Limit.LossRatioAtLoad = num(bypass64)
		doc.Host.Facts = map[string]string{"net.core.dev_weight": "64"}
		doc.Reproduces = &compare.Reproduction{Source: reproduce.LineRate64, Step: id}
		return *doc
	}
	var docs []compare.Document
	for _, size := range []int{500, 400, 300, 200, 100, 64} {
		docs = append(docs, step(reproduce.StepSweep, size, 1))
	}
	weight := step(reproduce.StepWeight4096, 64, 1)
	for i := range weight.Arms {
		weight.Arms[i].Requested["dev_weight"] = "4096"
	}
	fragments := step("fragments", 1518, 1)
	fragments.Test = "fragments"
	return append(docs, fragments, skipped(reproduce.LineRate64, "replay", "its capture was not published"), step(reproduce.StepQueues, 64, 2), skipped(reproduce.LineRate64, reproduce.StepRing, "a veth's ring has 256 slots and no knob"), weight)
}

// udpReceiveDocuments are the steps of udp-receive as a quick run on two CPUs leaves them.
func udpReceiveDocuments() []compare.Document {
	step := func(id string, names ...string) compare.Document {
		var arms []armFixture
		for _, name := range names {
			f := recvmmsg()
			if name[0] == 'x' {
				f = xdpAuto()
			}
			f.name, f.sent, f.received, f.losses = name, 2_500_000, 2_500_000, nil
			arms = append(arms, f)
		}
		arms[0].received -= 2_000
		arms[0].losses = []loss{{"udp.rcvbuf_full", "sut SO_MEMINFO drops", "the reader fell behind", 2_000, compare.Exact}}
		if id == reproduce.StepOneCore {
			arms[0].received -= 1_500_000
			arms[0].losses = append(arms[0].losses, loss{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "", 1_500_000, compare.Exact})
		}
		doc := fixture(0, 1, arms...)
		doc.Argv = []string{"twopath", "reproduce", "udp-receive", "--quick"}
		doc.Traffic.Size, doc.Traffic.FrameBytes, doc.Traffic.PayloadBytes = compare.Size{Bytes: 1070}, 1070, 1024
		doc.Rig.Placement = compare.PlaceSender
		for i := range doc.Trials {
			t := &doc.Trials[i]
			t.Counters = map[string]uint64{"sut.reader.context_switches": 4200, "sut.syscalls.epoll_wait": 2600, "sut.syscalls.read": 2_510_000}
			t.ByCPU = []compare.CPUShare{{CPU: 0, Reader: 0.83, Idle: 0.17}, {CPU: 1, Softirq: 0.71, Other: 0.29}}
			if t.Arm == "kernel:epoll+rcvbuf=104k" {
				t.Milestones = []compare.Milestone{{Index: 1, Packets: 1_000_020, Bytes: 1024 * 1_000_020, ElapsedNs: 1.21e9, Waits: 1040, Calls: 1_001_060},
					{Index: 2, Packets: 1_000_010, Bytes: 1024 * 1_000_010, ElapsedNs: 1.19e9, Waits: 1030, Calls: 1_001_040}}
			}
		}
		for i := range doc.Arms {
			if a := &doc.Arms[i]; strings.Contains(a.Name, "reuseport") {
				a.Requested["reuseport"], a.PerWorker, a.Effective.CPUs = "2", []uint64{a.Received / 2, a.Received - a.Received/2}, []int{0}
			}
		}
		doc.Reproduces = &compare.Reproduction{Source: reproduce.UDPReceive, Step: id}
		return *doc
	}
	one := step(reproduce.StepOneCore, "kernel:epoll+rcvbuf=104k", "xdp:auto")
	one.Rig.Placement = compare.PlaceShared
	return []compare.Document{step(reproduce.StepFlood, "kernel:epoll+rcvbuf=104k", "kernel:epoll+rcvbuf=8M", "xdp:auto"), one,
		step(reproduce.StepReusePort, "kernel:epoll+rcvbuf=104k", "kernel:epoll+rcvbuf=104k+reuseport=2", "xdp:auto")}
}

func TestReproduceGolden(t *testing.T) {
	for name, docs := range map[string][]compare.Document{"line-rate": lineRateDocuments(0.0097, 0), "udp-receive": udpReceiveDocuments()} {
		for i := range docs {
			if err := assertFixture(&docs[i]); err != nil {
				t.Fatal(err)
			}
		}
		for _, width := range []int{120, 160} {
			var b bytes.Buffer
			if err := TextAll(&b, docs, TextOptions{Width: width, Saved: "twopath-udp-rx-1412.json"}); err != nil {
				t.Fatal(err)
			}
			if width == 120 {
				golden(t, "reproduce-"+name, b.Bytes())
			} else {
				golden(t, "reproduce-"+name+"-160", b.Bytes())
			}
		}
	}
}

// The closing sentence says what the rows say, not what the source found.
func TestLineRateClosing(t *testing.T) {
	for _, c := range []struct {
		kernel, bypass float64
		want           string
	}{
		{0.0097, 0, "It shows here"},
		{0.4, 0.2, "It does not show here: the kernel loses 40.00 % at 64 bytes, and bypass"},
		{0.4, 0.05, "The gap shows here, but not the zero"},
		{0.0005, 0, "It does not show here: the kernel loses 0.05 %"},
	} {
		docs := lineRateDocuments(c.kernel, c.bypass)
		for i := range docs {
			if docs[i].Limit != nil {
				docs[i].Limit.LossRatioAtLoad = num(0)
			}
		}
		if got := strings.Join(lineRateClosing(docs), " "); !strings.Contains(got, c.want) {
			t.Errorf("kernel %v, bypass %v: %s", c.kernel, c.bypass, got)
		}
	}
	docs := lineRateDocuments(0.1, 0)
	for i := range docs {
		if docs[i].Traffic.Size.Bytes > 64 && len(docs[i].Arms) > 0 {
			docs[i].Arms[0].LossRatio = num(0.02)
		}
	}
	if got := strings.Join(lineRateClosing(docs), " "); !strings.Contains(got, "begins earlier") {
		t.Errorf("larger frames lost too: %s", got)
	}
	if got := strings.Join(lineRateClosing(docs[:3]), " "); !strings.Contains(got, "Not enough rows") {
		t.Errorf("no row of 64 bytes: %s", got)
	}
}

// Steps that did not run, cut ones and missing numbers make no report fail, in any form.
func TestReproduceOfLittle(t *testing.T) {
	for name, docs := range map[string][]compare.Document{
		"nothing ran": {skipped(reproduce.LineRate64, reproduce.StepSweep, "no root"), skipped(reproduce.LineRate64, reproduce.StepQueues, "no root")},
		"one step":    {skipped(reproduce.UDPReceive, reproduce.StepFlood, "no root")},
		"unknown":     {skipped("tomorrow's", "step", "why not")},
		"no trials":   {{Test: "udp-rx", Arms: []compare.Arm{{Name: "kernel:epoll"}, {Name: "xdp:auto"}}, Reproduces: &compare.Reproduction{Source: reproduce.UDPReceive, Step: reproduce.StepFlood}}},
	} {
		var b bytes.Buffer
		if err := TextAll(&b, docs, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(b.String(), "NaN") || strings.Contains(b.String(), "Inf") {
			t.Errorf("%s:\n%s", name, b.String())
		}
		if name != "no trials" && !strings.Contains(b.String(), docs[0].Reason) {
			t.Errorf("%s: the reason is not told:\n%s", name, b.String())
		}
		if err := HTML(&b, docs); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
