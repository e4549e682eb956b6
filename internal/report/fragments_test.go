// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"

	"twopath/compare"
)

// fragmentsDocument is a comparison of datagrams of which two fifths cannot be delivered.
func fragmentsDocument() *compare.Document {
	sent := []loss{
		{"fragments.missing", "SUT Ip ReasmTimeout, as many as were sent so", "no loss of the receiver's: nobody could put it together", 2000, compare.Exact},
		{"fragments.overlap", "SUT IpExt ReasmOverlaps", "no loss of the receiver's where it was sent so", 2000, compare.Exact},
	}
	kernel := armFixture{name: "kernel:recvmmsg", sent: 10_000, received: 5_990, losses: append([]loss{{"veth.ring_full", "peer ethtool tx_queue_N_xdp_xmit_errors", "", 10, compare.Bounded}}, sent...), work: 4000,
		effective: compare.Effective{Attach: "none", Wait: "block", Batch: 64, Placement: "shared"}}
	xdp := armFixture{name: "xdp:auto", sent: 10_000, received: 6_000, losses: sent, work: 3000, spin: 500,
		effective: compare.Effective{Attach: "native", Bind: "copy", Wait: "spin", Placement: "shared", Csum: "verified"}}
	doc := fixture(10_000, 6, kernel, xdp)
	doc.Test, doc.Limit, doc.Rig.Generator.OfferedPPS, doc.Rig.Generator.Headroom = compare.TestFragments, nil, nil, nil
	doc.Traffic.Size, doc.Traffic.FrameBytes, doc.Traffic.PayloadBytes = compare.Size{Bytes: 4162}, 4162, 4000
	doc.Traffic.WireBPS = num(10_000 * 4182 * 8)
	doc.Traffic.Fragments = &compare.FragmentTraffic{Pattern: "mix", MTU: 1500, Fragments: 3, Datagrams: 10_000, TimeoutSeconds: 1, MemoryBytes: 64 << 20, Distance: 64}
	for i := range doc.Trials {
		t := &doc.Trials[i]
		t.Fragments = &compare.TrialFragments{Sent: 32_000, Received: 32_000, Wasted: 32_000 - 3*t.Received, Undeliverable: 4000}
	}
	doc.Plan.Margin, doc.Plan.Test = 0.02, compare.TestFragments
	compare.Conclude(doc)
	return doc
}

func TestFragmentsGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, fragmentsDocument(), TextOptions{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "text-fragments", b.Bytes())
}
