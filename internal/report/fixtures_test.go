// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"time"

	"twopath/compare"
)

func num(v float64) *float64 { return &v }

// loss is one ledger row of a fixture: packets lost per trial.
type loss struct {
	at, witness, note string
	packets           uint64
	grade             compare.Grade
}

// armFixture describes an arm by what one of its trials saw.
type armFixture struct {
	name           string
	sent, received uint64
	losses         []loss
	unexplained    uint64
	unsent         []loss  // where the SUT sends: what never left, beside sent
	work, spin     float64 // ns per packet; work 0 is "not measured"
	effective      compare.Effective
}

// fixture builds a document whose numbers are consistent: arms' totals are
// sums over trials, and every ledger closes.
func fixture(rate float64, blocks int, arms ...armFixture) *compare.Document {
	cpu1 := 1
	started := time.Date(2026, 11, 30, 14, 12, 0, 0, time.UTC)
	doc := &compare.Document{
		Schema: compare.SchemaID, Version: "0.1.0", Started: started, Argv: []string{"twopath", "compare", "udp-rx", "--rate", "line:1g"},
		Test: "udp-rx", Seed: 7,
		Traffic: compare.Traffic{Size: compare.Size{Bytes: 64}, FrameBytes: 64, PayloadBytes: 18, IPVersion: 4, Flows: 1, Queues: 1,
			Rate: compare.Rate{Unit: compare.MaxRate}},
		Rig: compare.Rig{Kind: "veth", SUT: "sut0", Peer: "peer0", Driver: "veth", Placement: compare.PlaceShared,
			CPUs:      compare.CPUs{"sut": {0}, "napi": {0}, "peer": {1}},
			Generator: compare.Generator{Method: "xdp-live-frames", CPU: &cpu1, OfferedPPS: num(4.9e6)}},
		Host:  compare.Host{Name: "bench", OS: "Debian 12", Kernel: "6.18", Arch: "x86_64", CPUModel: "AMD EPYC", CPUs: 2, Virtual: "kvm", MemoryBytes: 8 << 30},
		Limit: &compare.Limit{Name: "xdp_drop", PPS: num(6.2e6)},
	}
	if len(arms) > 0 && arms[0].unsent != nil {
		doc.Test, doc.Argv = "udp-tx", []string{"twopath", "compare", "udp-tx"}
		doc.Rig.Generator = compare.Generator{}
		doc.Limit = &compare.Limit{Name: compare.LimitLive, PPS: num(4.9e6)}
	}
	if rate > 0 {
		doc.Traffic.Rate = compare.Rate{Unit: compare.Line, Value: 1, LinkBPS: 1e9}
		doc.Traffic.PPS = num(rate)
		doc.Traffic.WireBPS = num(rate * 84 * 8)
		doc.Rig.Generator.Headroom = num(4.9e6 / rate)
	}
	for i, f := range arms {
		engine := "kernel"
		if f.name[0] == 'x' {
			engine = "xdp"
		}
		_, variant := f.name[:len(engine)], f.name[len(engine)+1:]
		a := compare.Arm{Name: f.name, Engine: engine, Requested: map[string]string{"variant": variant}, Effective: f.effective}
		for b := range blocks {
			for half := range 2 {
				seconds := float64(f.sent) / 1488095
				if rate > 0 {
					seconds = float64(f.sent) / rate
				}
				t := compare.Trial{Arm: f.name, Kind: compare.Measured, Block: b + 1, Position: 1 + (i+3*half)%4, Attempt: 1, RunID: uint32(100*i + 2*b + half),
					Started: started.Add(time.Duration(b) * time.Second), Seconds: seconds, Offered: f.sent, Sent: f.sent, Received: f.received, Lost: f.sent - f.received,
					Unexplained: f.unexplained, Valid: true}
				for _, l := range f.losses {
					t.Ledger = append(t.Ledger, compare.LedgerRow{At: l.at, Packets: l.packets, Witness: l.witness, Grade: l.grade, Note: l.note})
				}
				if doc.Test == "udp-tx" {
					handed := f.sent
					for _, l := range f.unsent {
						handed += l.packets
						t.Unsent = append(t.Unsent, compare.LedgerRow{At: l.at, Packets: l.packets, Witness: l.witness, Grade: l.grade, Note: l.note})
					}
					t.Handed = &handed
				}
				if f.work > 0 {
					t.CPU = &compare.CPU{WorkNsPerPacket: num(f.work), SpinNsPerPacket: num(f.spin)}
				}
				doc.Trials = append(doc.Trials, t)
			}
		}
		total(doc, &a)
		if f.work > 0 {
			a.CPU = compare.CPU{WorkNsPerPacket: num(f.work), SpinNsPerPacket: num(f.spin), Cores: num(1), CoresPerMpps: num(f.work / 1000), Method: "cpuacct"}
		}
		doc.Arms = append(doc.Arms, a)
	}
	return doc
}

// total sums an arm's valid trials up.
func total(doc *compare.Document, a *compare.Arm) {
	byAt := map[string]int{}
	var seconds float64
	for i := range doc.Trials {
		t := &doc.Trials[i]
		if t.Arm != a.Name || t.Kind != compare.Measured {
			continue
		}
		a.Trials++
		if !t.Valid {
			continue
		}
		a.Valid++
		seconds += t.Seconds
		a.Sent, a.Received, a.Lost, a.Unexplained = a.Sent+t.Sent, a.Received+t.Received, a.Lost+t.Lost, a.Unexplained+t.Unexplained
		if t.Handed != nil {
			if a.Handed == nil {
				a.Handed = new(uint64)
			}
			*a.Handed += *t.Handed
			for _, row := range t.Unsent {
				if len(a.Unsent) == 0 {
					row.Packets = 0
					a.Unsent = append(a.Unsent, row)
				}
				a.Unsent[0].Packets += t.Unsent[0].Packets
			}
		}
		for _, row := range t.Ledger {
			k, ok := byAt[row.At]
			if !ok {
				k = len(a.Ledger)
				byAt[row.At] = k
				row.Packets = 0
				a.Ledger = append(a.Ledger, row)
			}
			a.Ledger[k].Packets += t.Ledger[indexOf(t.Ledger, row.At)].Packets
		}
	}
	if a.Valid == 0 {
		return
	}
	a.OfferedPPS, a.ReceivedPPS = num(float64(a.Sent)/seconds), num(float64(a.Received)/seconds)
	a.LossRatio, a.WireBPS = num(float64(a.Lost)/float64(a.Sent)), num(float64(a.Received)/seconds*84*8)
	if a.Received > 0 {
		a.NsPerPacket = num(1e9 * seconds / float64(a.Received))
	}
}

func indexOf(rows []compare.LedgerRow, at string) int {
	for i := range rows {
		if rows[i].At == at {
			return i
		}
	}
	panic("no row " + at)
}

// compared adds the headline.
func compared(doc *compare.Document, c compare.Comparison) *compare.Document {
	if c.A == "" {
		c.A, c.B = doc.Arms[0].Name, doc.Arms[1].Name
	}
	if c.Metric == "" {
		c.Metric = compare.MetricReceived
	}
	if c.RatioIs == "" {
		c.RatioIs = "b/a"
	}
	if c.CILevel == 0 {
		c.CILevel = 0.95
	}
	if c.Bound == "" {
		c.Bound = compare.NoBound
	}
	if c.Trials == 0 {
		for _, t := range doc.Trials {
			if t.Kind == compare.Measured && (t.Arm == c.A || t.Arm == c.B) {
				c.Trials++
				if t.Valid {
					c.ValidTrials++
				}
			}
		}
	}
	c.Margin = compare.DefaultMargin
	doc.Comparisons = append(doc.Comparisons, c)
	doc.Verdict = &doc.Comparisons[len(doc.Comparisons)-1]
	return doc
}

func recvmmsg() armFixture {
	return armFixture{name: "kernel:recvmmsg", sent: 1500000, received: 313017,
		losses: []loss{
			{"udp.rcvbuf_full", "sut SO_MEMINFO drops", "the reader fell behind", 28220, compare.Exact},
			{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 1158763, compare.Exact},
		},
		work:      3220,
		effective: compare.Effective{Attach: "none", Wait: "block", NAPI: "threaded", Sched: "other", Placement: "shared", Batch: 64, RcvbufBytes: 16 << 20, GRO: "on", Csum: "verified", Sockets: 1, Queues: 1, CPUs: []int{0}, NAPICPUs: []int{0}}}
}

func xdpAuto() armFixture {
	return armFixture{name: "xdp:auto", sent: 1500000, received: 1500000, losses: []loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 0, compare.Exact}},
		work: 417, spin: 255,
		effective: compare.Effective{Attach: "native", Bind: "copy", Wait: "spin", NAPI: "threaded", Sched: "fifo:50", Placement: "shared", Batch: 64, Ring: 8192, GRO: "on", Csum: "verified", Queues: 1, CPUs: []int{0}, NAPICPUs: []int{0}, Driver: "veth"}}
}

// sendmmsgGSO and sendXDP are arms of a test in which the SUT sends.
func sendmmsgGSO() armFixture {
	return armFixture{name: "kernel:sendmmsg", sent: 2300000, received: 2300000, work: 402,
		unsent:    []loss{{"tx.device_drop", "SUT rtnl tx_dropped", "on veth: the receiver's 256-entry ring was full, so the receiver fell behind; also link down or frame too long", 200000, compare.Exact}},
		effective: compare.Effective{Attach: "none", Batch: 64, Sockets: 1, Queues: 1, CPUs: []int{0}, Other: map[string]string{"sndbuf_bytes": "212992", "segmentation": "UDP_SEGMENT", "peer_napi": "threaded on CPU 1", "peer_xdp": "native"}}}
}

func sendXDP() armFixture {
	return armFixture{name: "xdp:auto", sent: 1750000, received: 1750000, work: 490, spin: 80,
		effective: compare.Effective{Attach: "none", Bind: "copy", Batch: 128, Ring: 256, Sockets: 1, Queues: 1, CPUs: []int{0}, Other: map[string]string{"tx_budget": "128", "peer_napi": "threaded on CPU 1", "peer_xdp": "native"}}}
}

const line1g = 1488095.0

func faster() compare.Comparison {
	return compare.Comparison{AValue: num(310533), BValue: num(1488095), Ratio: num(4.79), CI: &[2]float64{4.71, 4.88}, Blocks: 6, P: num(0.03125), Bound: compare.LowerBound, Word: compare.Faster}
}

// documents are the cases every renderer must cope with.
func documents() map[string]*compare.Document {
	out := map[string]*compare.Document{}
	out["sending"] = compared(fixture(0, 6, sendmmsgGSO(), sendXDP()),
		compare.Comparison{AValue: num(1000), BValue: num(1000), Ratio: num(0.76), CI: &[2]float64{0.75, 0.77}, Blocks: 6, P: num(0.001), Word: compare.Slower})

	out["normal"] = compared(fixture(line1g, 6, recvmmsg(), xdpAuto()), faster())
	out["normal"].Warnings = []compare.Warning{{ID: "steal", Text: "the hypervisor took the CPU for 40 ms in all"}}

	out["invalid"] = func() *compare.Document {
		doc := fixture(line1g, 6, recvmmsg(), xdpAuto())
		bad := doc.Trials[3]
		bad.Valid, bad.InvalidBecause = false, "the peer could not offer the load: 1,203,114 of 1,488,095 pps"
		bad2 := bad
		bad2.Attempt = 2
		bad3 := doc.Trials[14]
		bad3.Valid, bad3.InvalidBecause = false, "the reader stalled for 48 ms while the fill ring ran empty; the machine was suspended in the middle of it, as two clocks that should agree do not"
		doc.Trials = append(doc.Trials, bad, bad2, bad3)
		for range 3 {
			pilot := bad3
			pilot.Kind, pilot.Block, pilot.Position = compare.Pilot, 0, 0
			doc.Trials = append(doc.Trials, pilot)
		}
		for i := range 7 {
			more := bad3
			more.Block, more.InvalidBecause = 6, fmt.Sprintf("the generator stood still for %d ms", 40+i)
			doc.Trials = append(doc.Trials, more)
		}
		for i := range doc.Arms {
			a := doc.Arms[i]
			doc.Arms[i] = compare.Arm{Name: a.Name, Engine: a.Engine, Requested: a.Requested, Effective: a.Effective, CPU: a.CPU}
			total(doc, &doc.Arms[i])
		}
		return compared(doc, faster())
	}()

	out["incomplete"] = func() *compare.Document {
		doc := fixture(line1g, 3, recvmmsg(), xdpAuto())
		doc.Incomplete, doc.Reason = true, "interrupted in block 4 of 6"
		c := faster()
		c.Blocks, c.Word, c.Because = 3, compare.Insufficient, "3 blocks, 6 are needed"
		return compared(doc, c)
	}()

	out["insufficient"] = func() *compare.Document {
		c := faster()
		c.Blocks, c.Word, c.CI, c.Because = 2, compare.Insufficient, nil, "2 blocks, 6 are needed"
		return compared(fixture(line1g, 2, recvmmsg(), xdpAuto()), c)
	}()

	out["kernel-wins"] = func() *compare.Document {
		k, x := recvmmsg(), xdpAuto()
		k.name, k.received, k.losses = "kernel:recvmmsg+gro=udp", 1499998, []loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 2, compare.Exact}}
		k.work, k.effective.GRO = 310, "udp"
		x.received, x.losses = 1210000, []loss{{"xsk.rx_ring_full", "sut XDP_STATISTICS rx_ring_full", "the reader fell behind", 289000, compare.Exact}, {"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 998, compare.Bounded}}
		x.unexplained = 2
		x.effective.Attach, x.effective.Csum, x.effective.Wait = "generic", "off", "poll"
		return compared(fixture(line1g, 6, k, x), compare.Comparison{AValue: num(1488093), BValue: num(1200397), Ratio: num(0.8067), CI: &[2]float64{0.79, 0.82}, Blocks: 6, Bound: compare.NoBound, Word: compare.Slower})
	}()

	out["neither-lost"] = func() *compare.Document {
		k, x := recvmmsg(), xdpAuto()
		k.sent, k.received, k.losses, k.work = 200000, 200000, nil, 3410
		x.sent, x.received, x.losses, x.work, x.spin = 200000, 200000, nil, 760.4, 4230
		doc := fixture(200000, 6, k, x)
		doc.Rig.Placement, doc.Host.CPUs, doc.Host.Virtual = compare.PlaceSplit, 8, ""
		doc.Rig.CPUs = compare.CPUs{"sut": {2}, "napi": {3}, "peer": {1}}
		return compared(doc, compare.Comparison{Metric: compare.MetricWork, RatioIs: "a/b", AValue: num(3410), BValue: num(760.4), Ratio: num(4.484), CI: &[2]float64{4.40, 4.56}, Blocks: 6, Word: compare.Faster})
	}()

	out["equivalent"] = func() *compare.Document {
		k := recvmmsg()
		k2 := recvmmsg()
		k2.name = "kernel:recvmmsg+batch=128"
		doc := compared(fixture(line1g, 6, k, k2), compare.Comparison{AValue: num(310533), BValue: num(310533), Ratio: num(0.9987), CI: &[2]float64{0.991, 1.006}, Blocks: 6, Word: compare.Equivalent})
		doc.Comparisons = append(doc.Comparisons, compare.Comparison{A: "kernel:recvmmsg", B: "kernel:recvmmsg#2", Metric: compare.MetricReceived, Ratio: num(1.001), CI: &[2]float64{0.995, 1.007}, Word: compare.Equivalent, Control: true, Blocks: 6})
		return doc
	}()

	out["closed-loop"] = func() *compare.Document {
		k, x := recvmmsg(), xdpAuto()
		k.sent, k.received, k.losses = 800000, 800000, nil
		x.sent, x.received = 3900000, 3899990
		x.losses = []loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 10, compare.Exact}}
		doc := fixture(0, 6, k, x)
		for i := range doc.Trials {
			doc.Trials[i].Seconds = 1
		}
		for i := range doc.Arms {
			a := doc.Arms[i]
			doc.Arms[i] = compare.Arm{Name: a.Name, Engine: a.Engine, Requested: a.Requested, Effective: a.Effective, CPU: a.CPU}
			total(doc, &doc.Arms[i])
		}
		doc.Rig.Placement = compare.PlaceSender
		return compared(doc, compare.Comparison{AValue: num(800000), BValue: num(3899990), Ratio: num(4.875), CI: &[2]float64{4.6, 5.1}, Blocks: 6, Word: compare.Faster})
	}()

	out["everything-lost"] = func() *compare.Document {
		k, x := recvmmsg(), xdpAuto()
		k.received, k.losses, k.work = 0, []loss{{"udp.no_port", "sut Udp NoPorts", "", 1500000, compare.Exact}}, 0
		x.received, x.losses, x.work = 0, []loss{{"some.new_place", "tracepoint", "", 1499999, compare.Exact}}, 0
		x.unexplained = 1
		doc := fixture(line1g, 6, k, x)
		return compared(doc, compare.Comparison{AValue: num(0), BValue: num(0), Blocks: 0, Word: compare.Inconclusive, Because: "neither arm received anything"})
	}()

	out["nulls"] = &compare.Document{Schema: compare.SchemaID, Test: "udp-rx",
		Arms:    []compare.Arm{{Name: "kernel:recvmmsg"}, {Name: "xdp:auto"}},
		Verdict: &compare.Comparison{A: "kernel:recvmmsg", B: "xdp:auto", Metric: compare.MetricReceived, Word: compare.NotComparable, Because: "no valid trial"}}

	out["empty"] = &compare.Document{}

	out["run"] = func() *compare.Document {
		doc := fixture(line1g, 3, xdpAuto())
		doc.Argv = []string{"twopath", "run", "udp-rx", "xdp:auto"}
		doc.Arms[0].Candidates = []compare.Candidate{{Setting: "wait=poll sched=other"}, {Setting: "wait=spin sched=fifo:50", Chosen: true}}
		doc.Arms[0].TSCPerPacket = num(1743)
		doc.Arms[0].Duplicate, doc.Arms[0].Late = 3, 12
		return doc
	}()

	out["five-arms"] = func() *compare.Document {
		epoll := recvmmsg()
		epoll.name, epoll.received, epoll.work, epoll.effective.Batch = "kernel:epoll", 250000, 4100, 1
		epoll.losses = []loss{{"udp.rcvbuf_full", "sut SO_MEMINFO drops", "the reader fell behind", 50000, compare.Exact}, {"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 1200000, compare.Exact}}
		packet := recvmmsg()
		packet.name, packet.received, packet.work = "kernel:packet", 420000, 2300
		packet.losses = []loss{{"packet.ring_full", "sut PACKET_STATISTICS tp_drops", "the reader fell behind", 80000, compare.Exact}, {"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", 1000000, compare.Exact}}
		generic := xdpAuto()
		generic.name, generic.received, generic.work = "xdp:generic", 900000, 1100
		generic.losses = []loss{{"xsk.rx_ring_full", "sut XDP_STATISTICS rx_ring_full", "the reader fell behind", 600000, compare.Exact}}
		generic.effective.Attach = "generic"
		doc := fixture(line1g, 6, epoll, recvmmsg(), packet, xdpAuto(), generic)
		for _, c := range []struct {
			b     string
			ratio float64
			word  compare.Word
		}{{"kernel:epoll", 0.595, compare.Slower}, {"kernel:recvmmsg", 0.745, compare.Slower}, {"xdp:generic", 2.14, compare.Faster}} {
			doc.Comparisons = append(doc.Comparisons, compare.Comparison{A: "kernel:packet", B: c.b, Metric: compare.MetricReceived, RatioIs: "b/a", Ratio: num(c.ratio), CI: &[2]float64{c.ratio * 0.98, c.ratio * 1.02}, CILevel: 0.95, Blocks: 6, Word: c.word})
		}
		c := faster()
		c.A, c.B, c.Ratio, c.CI = "kernel:packet", "xdp:auto", num(3.571), &[2]float64{3.52, 3.61}
		return compared(doc, c)
	}()

	out["search"] = func() *compare.Document {
		doc := searchDocument(300_000, 1.5e6, "quick", "loss=0,exceed=0,sum=1s,width=1%")
		doc.Requirements = []compare.RequirementResult{{Text: "xdp:auto.lower_pps>=1M", Value: num(1.5e6), OK: true}, {Text: "kernel.lower_pps>=1M", Value: num(182000), Because: "kernel:recvmmsg.lower_pps is 182000"}}
		return doc
	}()
	out["search-lower-only"] = searchDocument(300_000, 1e9, "quick")
	return out
}

// sweepDocuments is S3's sweep in small.
func sweepDocuments() []compare.Document {
	var docs []compare.Document
	for _, size := range []int{500, 300, 100, 64} {
		rate := 1e9 / float64((size+20)*8)
		k, x := recvmmsg(), xdpAuto()
		k.sent, x.sent, x.received = uint64(rate), uint64(rate), uint64(rate)
		k.losses = nil
		k.received = min(k.sent, 350000)
		if lost := k.sent - k.received; lost > 0 {
			k.losses = []loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "what empties the ring (NAPI with the stack or the XDP program) fell behind", lost, compare.Exact}}
		}
		doc := fixture(rate, 6, k, x)
		doc.Argv = []string{"twopath", "compare", "udp-rx", "--size", "500,300,100,64", "--rate", "line:1g"}
		doc.Traffic.Size, doc.Traffic.FrameBytes, doc.Traffic.PayloadBytes = compare.Size{Bytes: size}, float64(size), float64(size-46)
		doc.Traffic.WireBPS = num(1e9)
		if k.received == k.sent {
			compared(doc, compare.Comparison{Metric: compare.MetricWork, RatioIs: "a/b", AValue: num(3220), BValue: num(417), Ratio: num(7.72), CI: &[2]float64{7.5, 7.9}, Blocks: 6, PHolm: num(0.03), Word: compare.Faster})
		} else {
			r := float64(x.received) / float64(k.received)
			compared(doc, compare.Comparison{AValue: doc.Arms[0].ReceivedPPS, BValue: doc.Arms[1].ReceivedPPS, Ratio: num(r), CI: &[2]float64{r * 0.99, r * 1.01}, Blocks: 6, PHolm: num(0.03), Bound: compare.LowerBound, Word: compare.Faster})
		}
		docs = append(docs, *doc)
	}
	for i, lost := range []float64{0, 0, 0.00004, 0.0007} {
		docs[i].Limit.LossRatioAtLoad = num(lost)
	}
	docs[1].Incomplete, docs[1].Reason = true, "interrupted"
	return docs
}

// queueDocuments are cells over 1, 2 and 4 queues, with CPUs enough to tell how the arms scale, or without.
func queueDocuments(enough bool) []compare.Document {
	var docs []compare.Document
	for i, n := range []int{1, 2, 4} {
		k, x := recvmmsg(), xdpAuto()
		k.received = uint64(313017 * (1 + 0.6*float64(n-1)))
		k.losses = []loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "", k.sent - k.received, compare.Exact}}
		x.received = uint64(min(370000*n, 1500000))
		x.losses = []loss{{"xsk.rx_ring_full", "sut XDP_STATISTICS rx_ring_full", "the reader fell behind", x.sent - x.received, compare.Exact}}
		for _, f := range []*armFixture{&k, &x} {
			f.effective.Queues, f.effective.CPUs, f.effective.NAPICPUs = n, []int{0}, []int{0}
			if enough {
				f.effective.CPUs, f.effective.NAPICPUs = []int{0, 1, 2, 3}[:n], []int{0, 1, 2, 3}[:n]
			}
		}
		doc := fixture(line1g, 6, k, x)
		doc.Argv = []string{"twopath", "compare", "udp-rx", "--queues", "1,2,4"}
		doc.Traffic.Queues, doc.Traffic.Flows = n, compare.SpreadFlows
		for j := range doc.Arms {
			a := &doc.Arms[j]
			a.TSCPerPacket = num([]float64{8200, 1000}[j] * []float64{1, 1.26 - 0.25*float64(j), 1.9 - 0.88*float64(j)}[i])
			if n > 1 {
				for w := range n {
					a.PerWorker = append(a.PerWorker, a.Received/uint64(n)+uint64(w))
				}
			}
		}
		if n == 2 {
			doc.Arms[0].PerWorker = []uint64{a0(doc) / 4, a0(doc) - a0(doc)/4}
		}
		docs = append(docs, *doc)
	}
	return docs
}

func a0(doc *compare.Document) uint64 { return doc.Arms[0].Received }

// assertFixture fails loudly when a fixture does not keep the identities the
// product promises; a golden file of nonsense would prove nothing.
func assertFixture(doc *compare.Document) error {
	for i := range doc.Trials {
		if err := doc.Trials[i].Check(); err != nil {
			return fmt.Errorf("trial %d: %w", i, err)
		}
	}
	return nil
}
