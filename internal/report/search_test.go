// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	"twopath/compare"
)

// searchDocument is a search of two arms: knees in frames/s; 0 bears nothing.
func searchDocument(kernel, xdp float64, goals ...string) *compare.Document {
	doc := fixture(0, 0, recvmmsg(), xdpAuto())
	doc.Trials, doc.Rig.Placement = nil, compare.PlaceShared
	doc.Traffic.Rate, doc.Traffic.PPS, doc.Traffic.WireBPS = compare.Rate{Unit: compare.MaxRate}, nil, nil
	doc.Argv = append([]string{"twopath", "search", "udp-rx"}, goals...)
	o := compare.SearchOptions{MinLoad: 1000, MaxLoad: 4_655_000}
	for _, s := range goals {
		g, err := compare.ParseGoal(s)
		if err != nil {
			panic(err)
		}
		o.Goals = append(o.Goals, g)
	}
	doc.Search = &compare.SearchInfo{Goals: o.Goals, MinLoadPPS: num(o.MinLoad), MaxLoadPPS: num(o.MaxLoad), MaxLoadIs: "generator", Seconds: 96}
	knees := map[string]float64{"kernel:recvmmsg": kernel, "xdp:auto": xdp}
	var searches []compare.Searcher
	for _, a := range doc.Arms {
		s, err := compare.NewSearch(o)
		if err != nil {
			panic(err)
		}
		searches = append(searches, compare.Searcher{Label: a.Name, Search: s})
	}
	out, err := compare.RunSearches(context.Background(), searches, compare.SearchRunOptions{}, func(_ context.Context, s compare.SearchTrial) (compare.Trial, error) {
		n := uint64(s.Input.Load * s.Input.Seconds)
		t := compare.Trial{Started: doc.Started.Add(time.Duration(s.Round) * time.Second), Seconds: s.Input.Seconds, Offered: n, Sent: n, Received: min(n, uint64(knees[s.Label]*s.Input.Seconds)), Valid: true}
		if t.Lost = t.Sent - t.Received; t.Lost > 0 {
			t.Ledger = []compare.LedgerRow{{At: "veth.ring_full", Packets: t.Lost, Witness: "peer ethtool tx_queue_N_xdp_xmit_errors", Grade: compare.Exact}}
		}
		return t, nil
	})
	if err != nil {
		panic(err)
	}
	doc.Trials = out.Trials
	for i := range doc.Arms {
		a := &doc.Arms[i]
		*a = compare.Arm{Name: a.Name, Engine: a.Engine, Requested: a.Requested, Effective: a.Effective}
		a.SetGoals(searches[i].Search.Results())
	}
	compare.ConcludeSearch(doc)
	return doc
}

// searchText is a search's screen with its line breaks undone.
func searchText(t *testing.T, docs ...compare.Document) string {
	t.Helper()
	var b bytes.Buffer
	if err := TextAll(&b, docs, TextOptions{Width: 200}); err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func TestSearchTextSaysWhatIsMissing(t *testing.T) {
	for _, c := range []struct {
		name         string
		kernel, xdp  float64
		want, absent []string
	}{
		{"both bounds", 300_000, 1.5e6, []string{"Goal quick: loss ratio 0.50 %, exceed ratio 50.00 %", "device ring full", "by the bounds", "-> faster", "-> faster"}, []string{"BOUND ONLY", "IRREGULAR", "Inf", "no interval"}},
		{"the generator tops out", 300_000, 1e9, []string{"LOWER BOUND ONLY", "4655000 packets/s, was borne, and the generator tops out there", "at least", "bore the highest load"}, []string{"NaN"}},
		{"nothing is borne", 0, 1e6, []string{"NO LOWER BOUND", "1000 packets/s, was not borne", "not comparable"}, []string{"NaN"}},
	} {
		got := searchText(t, *searchDocument(c.kernel, c.xdp, "quick"))
		for _, w := range c.want {
			if !strings.Contains(got, w) {
				t.Errorf("%s: lacks %q:\n%s", c.name, w, got)
			}
		}
		for _, w := range c.absent {
			if strings.Contains(got, w) {
				t.Errorf("%s: says %q:\n%s", c.name, w, got)
			}
		}
	}
}

// TestSearchTurnedRound: when A bears more, the range is turned with the ratio.
func TestSearchTurnedRound(t *testing.T) {
	got := searchText(t, *searchDocument(1e6, 500_000, "quick"))
	if !strings.Contains(got, "A bears") || !strings.Contains(got, "x B's load") || !strings.Contains(got, "slower: the kernel path (A) wins") {
		t.Error(got)
	}
	if !strings.Contains(got, "[1.9") && !strings.Contains(got, "[2.0") {
		t.Errorf("the range is not above 1: %s", got)
	}
}

func TestSearchSweepIsOneTable(t *testing.T) {
	var docs []compare.Document
	for _, size := range []int{64, 512} {
		d := searchDocument(300_000, 1.5e6, "quick")
		d.Traffic.Size, d.Traffic.FrameBytes = compare.Size{Bytes: size}, float64(size)
		docs = append(docs, *d)
	}
	got := searchText(t, docs...)
	for _, w := range []string{"2 cells", "bytes lower bound upper bound conditional", "A kernel:recvmmsg", "VERDICT per cell"} {
		if !strings.Contains(got, w) {
			t.Errorf("lacks %q:\n%s", w, got)
		}
	}
	var page bytes.Buffer
	if err := HTML(&page, docs); err != nil {
		t.Fatal(err)
	}
	if err := wellFormed(page.Bytes()); err != nil || !strings.Contains(page.String(), "What each arm bears") {
		t.Error(err)
	}
}

func TestCSVGoals(t *testing.T) {
	var b bytes.Buffer
	if err := CSVGoals(&b, []compare.Document{*searchDocument(300_000, 1e9, "quick", "loss=0,exceed=0,sum=1s")}); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	if len(lines) != 5 || !strings.HasSuffix(lines[0], "lower_pps,upper_pps,conditional_pps") || !strings.Contains(lines[3], "max_load") || !strings.HasSuffix(lines[3], "4.655e+06,,4.655e+06") {
		t.Errorf("%d lines:\n%s", len(lines), b.String())
	}
}
