// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"

	"twopath/compare"
)

// echoFixture is an echo test of n arms whose answers took us and ten times that at the tail.
func echoFixture(mode string, us ...float64) *compare.Document {
	var arms []armFixture
	for i := range us {
		arms = append(arms, armFixture{name: []string{"kernel:recvmmsg", "xdp:auto", "kernel:epoll"}[i], sent: 10_000, received: 9990, work: 5000,
			losses: []loss{{at: compare.ReplyRow + "tx.device_drop", witness: "SUT rtnl tx_dropped", packets: 4, grade: compare.Exact}, {at: "veth.ring_full", witness: "peer ethtool", packets: 6, grade: compare.Exact}}})
	}
	doc := fixture(10_000, 6, arms...)
	doc.Test, doc.Plan.Test, doc.Plan.Mode = "udp-echo", "udp-echo", mode
	latency := func(us float64, n uint64) *compare.Latency {
		ns := uint64(us * 1000)
		l := &compare.Latency{Count: n, Min: num(us * 900), Max: num(us * 20_000), Mean: num(us * 1000), Base: "intended", Jitter: num(us * 50), JitterCount: n,
			Buckets: [][3]uint64{{ns, ns + 100, n - n/50}, {10 * ns, 10*ns + 1000, n / 50}}}
		l.Fill()
		return l
	}
	for i := range doc.Trials {
		t := &doc.Trials[i]
		for k := range arms {
			if arms[k].name == t.Arm {
				t.LatencyNs, t.LateMeanNs, t.LateMaxNs = latency(us[k], t.Received), num(150), 90_000
			}
		}
	}
	doc.Limit = &compare.Limit{Name: compare.LimitReflect, LatencyNs: latency(7, 60_000)}
	compare.Conclude(doc)
	return doc
}

func TestEchoScreen(t *testing.T) {
	screen := func(doc *compare.Document) string {
		var b bytes.Buffer
		if err := Text(&b, doc, TextOptions{Width: 120}); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	want := func(got string, lines ...string) {
		t.Helper()
		flat := strings.Join(strings.Fields(got), " ")
		for _, l := range lines {
			if !strings.Contains(flat, l) {
				t.Errorf("the screen lacks %q:\n%s", l, got)
			}
		}
	}
	got := screen(echoFixture("", 40.5, 20))
	want(got, "latency p50 us 40.6 20.1 from the intended send time; XDP_TX: 7.10", "latency p99 us 406.0 201.0 XDP_TX: 71.0",
		"latency max us 810.0 400.0", "jitter us 2.02 1.00 mean difference", "answers 119,880 119,880", "asked late us 0.150 0.150 the sender's own lateness, in the above; at most 90.0 us",
		"answered 119,880 119,880", "answer: sender: device 48 48", "device ring full 72 72", "unexplained 0 0",
		"A takes 2.02 x as long as B (median latency)", "-> faster", "99th percentile of a trial: A 406.0 us, B 201.0 us", "metered on the SUT's core")
	if strings.Contains(got, "unpaced") || strings.Contains(got, "ping-pong") {
		t.Errorf("an open loop at a rate:\n%s", got)
	}
	doc := echoFixture(compare.ModePingPong, 40.5, 20, 30)
	doc.Traffic.PPS, doc.Traffic.WireBPS, doc.Traffic.Rate = nil, nil, compare.Rate{Unit: compare.MaxRate}
	got = screen(doc)
	want(got, "ping-pong: one request at a time, 1 flow", "latency p50", "latency p99.9", "so a stall counts once")
	if strings.Contains(got, "unpaced") || strings.Contains(got, "asked late") {
		t.Errorf("ping-pong:\n%s", got)
	}
}

func TestEchoSweepAndTables(t *testing.T) {
	docs := []compare.Document{*echoFixture("", 40, 20), *echoFixture("", 50, 25)}
	docs[1].Traffic.PPS, docs[1].Traffic.Rate = num(20_000), compare.Rate{Unit: compare.PPS, Value: 20_000}
	var b bytes.Buffer
	if err := TextAll(&b, docs, TextOptions{Width: 160}); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"p50 us", "p99.9 us", "max us", "answer: sender: device"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("the sweep lacks %q:\n%s", s, b.String())
		}
	}
	b.Reset()
	if err := CSV(&b, docs); err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(b.String(), "\n")
	for _, s := range []string{"latency_count", "latency_min_ns", "latency_p90_ns", "latency_p9999_ns", "latency_jitter_ns", "latency_base", "late_mean_ns"} {
		if !strings.Contains(","+head+",", ","+s+",") {
			t.Errorf("CSV lacks %s: %s", s, head)
		}
	}
	b.Reset()
	if err := HTML(&b, docs[:1]); err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"Latency, ns", "XDP_TX", "p99.99", "jitter"} {
		if !strings.Contains(b.String(), s) {
			t.Errorf("the page lacks %q", s)
		}
	}
}
