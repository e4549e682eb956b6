// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// wants checks a verdict; parts must be in its because or its notes.
func wants(t *testing.T, c *Comparison, metric string, word Word, bound Bound, parts ...string) {
	t.Helper()
	if c == nil || c.Metric != metric || c.Word != word || c.Bound != bound {
		t.Errorf("got %s; want %s -> %s, bound %s", describe(c), metric, word, bound)
		return
	}
	if plain := word == Faster || word == Slower; !plain && c.Because == "" {
		t.Errorf("%s without a reason", word)
	}
	text := c.Because + " | " + strings.Join(c.Notes, " | ")
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q lacks %q", text, part)
		}
	}
}

// pair is a machine with a kernel and an xdp arm.
func pair(offered, kernel, xdp float64) *machine {
	return &machine{offered: offered, capacity: map[string]float64{"kernel:recvmmsg": kernel, "xdp:auto": xdp},
		work: map[string]float64{"kernel:recvmmsg": 800, "xdp:auto": 400}}
}

func TestVerdictOnReceivedRate(t *testing.T) {
	d := pair(1488095, 310533, 6e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Faster, LowerBound, "B (xdp:auto) took all that was offered", "lost: A 79.1 %, B 0 %")
	if v := d.Verdict; !near(math.Round(Val(v.Ratio)*1000), 4792) || v.A != "kernel:recvmmsg" || v.B != "xdp:auto" || v.RatioIs != "b/a" || v.ValidTrials != 24 || v.Trials != 24 || v.Blocks != 6 {
		t.Error(describe(v))
	}
	// Both lose: the ratio is what it is.
	wants(t, pair(1488095, 310533, 1e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto").Verdict, MetricReceived, Faster, NoBound)
	// The kernel wins, and the record says so.
	d = pair(1488095, 1e6, 500000).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Slower, NoBound)
	if r := Val(d.Verdict.Ratio); math.Abs(r-0.5) > 1e-6 {
		t.Errorf("ratio %v", r)
	}
	wants(t, pair(1488095, 6e6, 500000).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto").Verdict, MetricReceived, Slower, LowerBound, "A (kernel:recvmmsg) took all")
}

func TestVerdictOnCPUWork(t *testing.T) {
	m := pair(300000, 1e6, 6e6)
	d := m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricWork, Faster, NoBound)
	if v := d.Verdict; v.RatioIs != "a/b" || math.Abs(Val(v.Ratio)-2) > 1e-6 || math.Abs(Val(v.AValue)-800) > 1e-6 {
		t.Error(describe(v))
	}
	if len(d.Comparisons) != 2 || d.Comparisons[1].Metric != MetricReceived || d.Comparisons[1].Word != Equivalent {
		t.Errorf("%d comparisons, %s", len(d.Comparisons), describe(&d.Comparisons[1]))
	}
	m = pair(300000, 1e6, 6e6)
	m.work["xdp:auto"] = 1600
	wants(t, m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto").Verdict, MetricWork, Slower, NoBound)
	// A loss below the margin cannot move the received rate beyond it: the cost decides, the loss is noted.
	m = pair(300000, 297000, 6e6)
	wants(t, m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto").Verdict, MetricWork, Faster, NoBound, "lost: A 1 %, B 0 %")
	// Without a CPU figure the rate is all there is.
	m = pair(300000, 1e6, 6e6)
	m.work = nil
	d = m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Equivalent, NoBound, "within 2 %")
	if len(d.Comparisons) != 1 {
		t.Errorf("%d comparisons", len(d.Comparisons))
	}
}

func TestVerdictNeedsBlocks(t *testing.T) {
	d := pair(1488095, 310533, 6e6).measure(t, 5, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Insufficient, LowerBound, "5 blocks", "needs 6", "20 of 20 trials")
	// A block whose xdp trials stay invalid is none; one lost trial of two is no matter.
	m := pair(1488095, 310533, 6e6)
	m.invalid = func(s TrialSpec) bool {
		return s.Label == "xdp:auto" && (s.Block == 3 || s.Block == 4 && s.Position < 3)
	}
	d = m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Insufficient, LowerBound, "5 blocks")
	if a := findArm(d.Arms, "xdp:auto"); a.Valid != 9 || a.Trials != 9+3*3 || a.Sent != 9*1488095 {
		t.Errorf("%d of %d trials, sent %d", a.Valid, a.Trials, a.Sent)
	}
	m.invalid = func(s TrialSpec) bool { return s.Label == "xdp:auto" }
	d = m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, NotComparable, NoBound, "xdp:auto has no valid trial")
}

func TestVerdictNeedsTheSameConditions(t *testing.T) {
	for name, c := range map[string]struct {
		change func(a, b *Arm, d *Document)
		part   string
	}{
		"placement":    {func(a, b *Arm, d *Document) { a.Effective.Placement, b.Effective.Placement = PlaceShared, PlaceSplit }, `"shared" for A and "split" for B`},
		"queues":       {func(a, b *Arm, d *Document) { a.Effective.Queues, b.Effective.Queues = 1, 2 }, "A had 1 queues"},
		"cpus":         {func(a, b *Arm, d *Document) { a.Effective.CPUs, b.Effective.CPUs = []int{0}, []int{0, 1} }, "A ran on CPUs [0], B on CPUs [0 1]"},
		"xdp attached": {func(a, b *Arm, d *Document) { a.Effective.Attach = "native" }, "kernel:recvmmsg ran with an XDP program attached (native)"},
		"offered": {func(a, b *Arm, d *Document) {
			for i := range d.Trials {
				if tr := &d.Trials[i]; tr.Arm == b.Name {
					tr.Sent, tr.Received = tr.Sent*98/100, tr.Received*98/100
				}
			}
		}, "the offered loads differ by 2 %"},
	} {
		d := pair(1488095, 310533, 6e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
		c.change(&d.Arms[0], &d.Arms[1], d)
		Conclude(d)
		if d.Verdict.Word != NotComparable || !strings.Contains(d.Verdict.Because, c.part) {
			t.Errorf("%s: %s", name, describe(d.Verdict))
		}
	}
	// The same CPUs in another order are the same CPUs.
	d := pair(1488095, 310533, 6e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	d.Arms[0].Effective.CPUs, d.Arms[1].Effective.CPUs = []int{1, 0}, []int{0, 1}
	Conclude(d)
	wants(t, d.Verdict, MetricReceived, Faster, LowerBound)
}

func TestVerdictNotesModes(t *testing.T) {
	d := pair(1488095, 310533, 6e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	d.Arms[0].Effective = Effective{Attach: "none", Wait: "block", Sched: "other", NAPI: "threaded"}
	d.Arms[1].Requested = map[string]string{"variant": "zerocopy", "wait": "poll"}
	d.Arms[1].Effective = Effective{Attach: "native", Bind: "copy", Wait: "spin", Sched: "fifo:50", NAPI: "threaded", Csum: "off"}
	Conclude(d)
	wants(t, d.Verdict, MetricReceived, Faster, LowerBound, "bound copy, not zerocopy as asked", "waited by spin, not poll", "did not verify checksums", "NAPI scheduling: other for A, fifo:50 for B")
}

func TestVerdictOfAClosedLoop(t *testing.T) {
	d := pair(0, 800000, 4e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Faster, NoBound)
	if math.Abs(Val(d.Verdict.Ratio)-5) > 1e-6 {
		t.Error(describe(d.Verdict))
	}
}

func TestHeadlineIsBestAgainstBest(t *testing.T) {
	m := &machine{offered: 5e6, capacity: map[string]float64{"kernel:epoll": 8e5, "kernel:recvmmsg": 9e5, "kernel:nosocket": 3e6, "xdp:copy": 3e6, "xdp:generic": 1e6, "xdp:asavie": 4.5e6}}
	d := m.measure(t, 6, 1, "kernel:epoll", "kernel:recvmmsg", "kernel:nosocket", "xdp:asavie", "xdp:generic", "xdp:copy")
	if v := d.Verdict; v.A != "kernel:recvmmsg" || v.B != "xdp:copy" || v.Word != Faster {
		t.Error(describe(v))
	}
	seen := map[string]bool{}
	for _, c := range d.Comparisons {
		seen[c.B] = true
	}
	for _, name := range []string{"xdp:asavie", "kernel:epoll", "kernel:nosocket", "xdp:generic"} {
		if !seen[name] {
			t.Errorf("%s is not compared", name)
		}
	}
	// Equal in rate, the cheaper one stands for its engine.
	m = &machine{offered: 3e5, capacity: map[string]float64{"kernel:epoll": 1e6, "kernel:recvmmsg": 1e6, "xdp:auto": 1e6},
		work: map[string]float64{"kernel:epoll": 900, "kernel:recvmmsg": 700, "xdp:auto": 500}}
	if v := m.measure(t, 6, 1, "kernel:epoll", "kernel:recvmmsg", "xdp:auto").Verdict; v.A != "kernel:recvmmsg" {
		t.Error(describe(v))
	}
	// Of one engine, the first against the best of the rest.
	m = &machine{offered: 5e6, capacity: map[string]float64{"kernel:epoll": 8e5, "kernel:recvmmsg": 9e5, "kernel:packet": 6e5}}
	if v := m.measure(t, 6, 1, "kernel:epoll", "kernel:packet", "kernel:recvmmsg").Verdict; v.A != "kernel:epoll" || v.B != "kernel:recvmmsg" || v.Word != Faster {
		t.Error(describe(v))
	}
	// One arm alone has no verdict.
	m = &machine{offered: 5e6, capacity: map[string]float64{"xdp:auto": 8e5}}
	if d := m.measure(t, 6, 1, "xdp:auto"); d.Verdict != nil || len(d.Comparisons) != 0 || d.Arms[0].Received != 12*800000 {
		t.Errorf("%s, %+v", describe(d.Verdict), d.Arms[0])
	}
	// The library as it is against ours: asked for, so answered.
	m = &machine{offered: 5e6, capacity: map[string]float64{"xdp:auto": 3e6, "xdp:asavie": 2e6}}
	if v := m.measure(t, 6, 1, "xdp:asavie", "xdp:auto").Verdict; v == nil || v.A != "xdp:asavie" || v.Word != Faster {
		t.Error(describe(v))
	}
}

// What the same arm shows against itself is not called a difference of others.
func TestVerdictClearsTheNoiseFloor(t *testing.T) {
	m := pair(1488095, 500000, 600000)
	m.capacity["kernel:recvmmsg#2"] = 650000
	d := m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto", "kernel:recvmmsg")
	wants(t, d.Verdict, MetricReceived, Inconclusive, NoBound, "the A/A control differs from itself by up to 30 %")
	if !d.Comparisons[0].Control || d.Comparisons[0].B != "kernel:recvmmsg#2" {
		t.Error(describe(&d.Comparisons[0]))
	}
	m.capacity["xdp:auto"] = 1.2e6
	wants(t, m.measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto", "kernel:recvmmsg").Verdict, MetricReceived, Faster, NoBound)
}

func TestVerdictOfASilentArm(t *testing.T) {
	d := pair(1488095, 0, 6e6).measure(t, 6, 1, "kernel:recvmmsg", "xdp:auto")
	wants(t, d.Verdict, MetricReceived, Faster, LowerBound, "12 trials received nothing")
	if r := Val(d.Verdict.Ratio); math.Abs(r-2*1488095) > 1 {
		t.Errorf("ratio %v", r)
	}
}

func TestInconclusiveSaysWhy(t *testing.T) {
	logs := func(v ...float64) (Word, string) {
		return word(Summarise(v, 1, Resamples), &Comparison{}, terms{margin: 0.02})
	}
	for name, c := range map[string]struct {
		logs []float64
		word Word
		part string
	}{
		"clear":       {[]float64{.5, .51, .49, .5, .52, .5}, Faster, ""},
		"reverse":     {[]float64{-.5, -.51, -.49, -.5, -.52, -.5}, Slower, ""},
		"same":        {[]float64{.001, -.002, .003, -.001, 0, .001}, Equivalent, "lies within 2 % of equal"},
		"noise":       {[]float64{.5, -.4, .1, -.2, .3, -.6}, Inconclusive, "reaches across 1"},
		"small":       {[]float64{.021, .022, .016, .02, .025, .019}, Inconclusive, "does not clear the margin"},
		"almost":      {[]float64{.3, .6, .2, .5, .1, .4}, Inconclusive, "excludes equal at 95 %, but not at the 99.9 %"},
		"one against": {[]float64{.5, .5, .5, .5, .5, -.5}, Inconclusive, "reaches across 1"},
	} {
		if w, because := logs(c.logs...); w != c.word || !strings.Contains(because, c.part) || (c.part == "") != (because == "") {
			t.Errorf("%s: %s, %q", name, w, because)
		}
	}
}

// A/A on a noisy machine: 20 runs of each of 4 kinds of noise at each of 3
// scales. A claim needs 99.9 %, so of 240 runs at most one may be called
// faster or slower; a single set of 20 has none but by a rare chance.
func TestAAIsNotCalledADifference(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	false95, claims, runs := 0, 0, 0
	for _, sd := range []float64{0.02, 0.1, 0.3} {
		for _, kind := range []string{"normal", "stalls", "bimodal", "rare"} {
			m := &machine{offered: 1488095, capacity: map[string]float64{"xdp:auto": 4e5, "xdp:auto#2": 4e5}, noise: noises(rng, sd)[kind]}
			for run := range 20 {
				v := m.measure(t, 6, uint64(run), "xdp:auto", "xdp:auto").Verdict
				runs++
				if v == nil || !v.Control || v.A != "xdp:auto" || v.B != "xdp:auto#2" {
					t.Fatal(describe(v))
				}
				if v.CI[0] > 1 || v.CI[1] < 1 {
					false95++
				}
				if v.Word == Faster || v.Word == Slower {
					claims++
					t.Logf("%s, sd %v: %s", kind, sd, describe(v))
				}
			}
		}
	}
	if claims > 1 {
		t.Errorf("%d of %d A/A runs are called a difference", claims, runs)
	}
	if share := float64(false95) / float64(runs); share > 0.08 {
		t.Errorf("the 95 %% interval misses in %.1f %% of A/A runs", 100*share)
	}
}

// And yet a real difference is found.
func TestRealDifferencesAreCalled(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	for _, c := range []struct{ ratio, sd float64 }{{1.05, 0.002}, {1.5, 0.03}, {4.79, 0.1}} {
		called := 0
		for run := range 20 {
			m := &machine{offered: 1488095, capacity: map[string]float64{"kernel:recvmmsg": 2e5, "xdp:auto": 2e5 * c.ratio}, noise: noises(rng, c.sd)["normal"]}
			switch v := m.measure(t, 6, uint64(run), "kernel:recvmmsg", "xdp:auto").Verdict; v.Word {
			case Faster:
				called++
			case Slower, Equivalent:
				t.Errorf("ratio %v: %s", c.ratio, describe(v))
			}
		}
		if called < 18 {
			t.Errorf("a ratio of %v at a noise of %v is called in %d of 20 runs", c.ratio, c.sd, called)
		}
	}
}

func TestConcludeTwiceIsTheSame(t *testing.T) {
	d := richDocument(t)
	d.Arms[0].Candidates = nil
	before := *d
	before.Arms = append([]Arm(nil), d.Arms...)
	Conclude(d)
	if !reflect.DeepEqual(*d, before) {
		t.Error("another conclusion from the same trials")
	}
}

// Arm totals obey the same identities as trials.
func TestArmTotalsAddUp(t *testing.T) {
	d := richDocument(t)
	for _, a := range d.Arms {
		sum := a.Unexplained
		for _, row := range a.Ledger {
			sum += row.Packets
		}
		if sum != a.Lost || a.Received+a.Lost != a.Sent || a.Sent == 0 {
			t.Errorf("%s: sent %d, received %d, lost %d, ledger %d", a.Name, a.Sent, a.Received, a.Lost, sum)
		}
	}
	if k := findArm(d.Arms, "kernel:recvmmsg"); len(k.Ledger) != 2 || k.Ledger[1].Grade != Bounded || !near(Val(k.NsPerPacket), 1e9/310000) || !near(Val(k.WireBPS), 310000*672) {
		t.Errorf("%+v", k)
	}
}

func TestAdjustSweep(t *testing.T) {
	cell := func(p float64, w Word) Document { return Document{Verdict: &Comparison{P: Num(p), Word: w}} }
	docs := []Document{cell(0.0005, Faster), cell(0.0001, Slower), cell(0.5, Inconclusive), {}}
	AdjustSweep(docs)
	if docs[0].Verdict.Word != Faster || !near(Val(docs[0].Verdict.PHolm), 0.001) || docs[1].Verdict.Word != Slower {
		t.Errorf("three cells: %+v", docs[0].Verdict)
	}
	docs = nil
	for range 100 {
		docs = append(docs, cell(0.0009, Faster))
	}
	AdjustSweep(docs)
	if v := docs[7].Verdict; v.Word != Inconclusive || !strings.Contains(v.Because, "100 cells") {
		t.Errorf("a hundred cells: %s", describe(v))
	}
}

func TestComparisonsGolden(t *testing.T) {
	d := richDocument(t)
	var b strings.Builder
	for i := range d.Comparisons {
		b.WriteString(describe(&d.Comparisons[i]) + "\n")
	}
	b.WriteString("verdict: " + describe(d.Verdict) + "\n")
	for _, r := range d.Requirements {
		b.WriteString("require: " + r.Text + ": " + r.Because + "\n")
	}
	path := filepath.Join("testdata", "comparisons.golden")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
