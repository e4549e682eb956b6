// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// device is a simulated SUT: it forwards up to its knee, and loses more the more it is overloaded.
type device struct {
	knee   float64
	noise  func() float64                   // factor on the knee of a trial; nil is none
	lossy  func(load, seconds float64) bool // an odd region: a tenth is lost there
	trials int
}

func (d *device) loss(in TrialInput) float64 {
	d.trials++
	knee := d.knee
	if d.noise != nil {
		knee *= d.noise()
	}
	if d.lossy != nil && d.lossy(in.Load, in.Seconds) {
		return 0.1
	}
	if in.Load <= knee {
		return 0
	}
	return 1 - knee/in.Load
}

// drive runs a search on a device to its end.
func drive(t *testing.T, o SearchOptions, d *device) *Search {
	t.Helper()
	s, err := NewSearch(o)
	if err != nil {
		t.Fatal(err)
	}
	for {
		in, ok := s.Next()
		if !ok {
			return s
		}
		if in.Load < o.MinLoad || in.Load > o.MaxLoad || in.Load != math.Trunc(in.Load) {
			t.Fatalf("asks for %v packets/s, allowed are whole numbers in %v..%v", in.Load, o.MinLoad, o.MaxLoad)
		}
		s.Add(LoadTrial{Load: in.Load, Seconds: in.Seconds, LossRatio: d.loss(in)})
		if d.trials > 5000 {
			t.Fatalf("no end after %d trials; %+v", d.trials, s.Results())
		}
	}
}

func mustGoal(t testing.TB, s string) Goal {
	t.Helper()
	g, err := ParseGoal(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// regular checks a result that must have both bounds, around the knee.
func regular(t *testing.T, what string, r GoalResult, knee float64) {
	t.Helper()
	g := r.Goal
	if !r.Regular || r.LowerPPS == nil || r.UpperPPS == nil || r.ConditionalPPS == nil {
		t.Fatalf("%s: irregular: %s", what, r.Because)
	}
	lower, upper, forwarded := *r.LowerPPS, *r.UpperPPS, *r.ConditionalPPS
	// The goal's own loss ratio shifts what is borne.
	if shifted := knee / (1 - g.LossRatio); lower > shifted*(1+1e-9) || upper < shifted*(1-1e-9) {
		t.Errorf("%s: bounds %.0f..%.0f do not bracket %.0f", what, lower, upper, shifted)
	}
	if (upper-lower)/upper > g.Width {
		t.Errorf("%s: bounds %.0f..%.0f are %.2g apart, more than %v", what, lower, upper, (upper-lower)/upper, g.Width)
	}
	if forwarded > lower || forwarded < lower*(1-g.LossRatio)-1e-6 {
		t.Errorf("%s: conditional throughput %.0f at a lower bound of %.0f", what, forwarded, lower)
	}
}

func TestSearchFindsTheKnee(t *testing.T) {
	for _, goal := range []string{"quick", "rfc2544", "tst009", "loss=0,width=0.1%,exceed=0,sum=1s", "loss=1%,width=10%,sum=9s,exceed=20%,initial=100ms"} {
		g := mustGoal(t, goal)
		most := 0
		for _, knee := range []float64{1001, 5000, 123_457, 999_999, 1_488_095, 4_000_000} {
			for _, hint := range [][2]float64{{0, 0}, {knee * 0.97, knee * 1.03}, {knee * 2, knee * 3}, {knee / 10, knee / 9}, {0, knee}} {
				d := &device{knee: knee}
				o := SearchOptions{Goals: []Goal{g}, MinLoad: 1000, MaxLoad: 4_500_000, Lower: hint[0], Upper: hint[1]}
				s := drive(t, o, d)
				regular(t, fmt.Sprintf("%s, knee %.0f, hint %v", goal, knee, hint), s.Results()[0], knee)
				most = max(most, d.trials)
			}
		}
		// A load is decided by as many trials as fit into the sum, and the loads are a bisection's: from 4,500 x wide to the width.
		perLoad := math.Ceil(g.SumSeconds / g.FinalSeconds)
		loads := math.Log2(math.Log(4500)/g.Width) + 12
		if bound := int(perLoad*loads) + 4*12; most > bound {
			t.Errorf("%s: up to %d trials, more than %d", goal, most, bound)
		}
		t.Logf("%s: at most %d trials", goal, most)
	}
}

func TestSearchWithNoise(t *testing.T) {
	goal := mustGoal(t, "quick")
	for _, c := range []struct {
		name  string
		noise func(*rand.Rand) float64
		off   float64 // as far as a result may be from the knee
		most  int     // of 100 runs that may be farther
	}{
		{"none", func(*rand.Rand) float64 { return 1 }, goal.Width, 0},
		{"normal, 1 %", func(rng *rand.Rand) float64 { return math.Exp(0.01 * rng.NormFloat64()) }, 0.05, 0},
		{"stalls, 1 % in the mean", func(rng *rand.Rand) float64 { return 1 - min(0.9, 0.01*rng.ExpFloat64()) }, 0.06, 0},
		// One trial in ten is spoilt: three of five are so in one load of a hundred.
		{"rare, large", func(rng *rand.Rand) float64 { return []float64{1, 0.5}[rng.IntN(10)/9] }, goal.Width, 15},
	} {
		far, trials := 0, 0
		for seed := range uint64(100) {
			rng := rand.New(rand.NewPCG(seed, 1))
			d := &device{knee: 700_000, noise: func() float64 { return c.noise(rng) }}
			r := drive(t, SearchOptions{Goals: []Goal{goal}, MinLoad: 1000, MaxLoad: 4e6, Lower: 650_000, Upper: 750_000}, d).Results()[0]
			if !r.Regular {
				t.Fatalf("%s, seed %d: %s", c.name, seed, r.Because)
			}
			if math.Abs(*r.ConditionalPPS/700_000-1) > c.off {
				far++
			}
			trials = max(trials, d.trials)
		}
		if far > c.most {
			t.Errorf("%s: %d of 100 results are more than %.2g off the knee, %d may be", c.name, far, c.off, c.most)
		}
		if trials > 80 {
			t.Errorf("%s: up to %d trials", c.name, trials)
		}
		t.Logf("%s: %d far, at most %d trials", c.name, far, trials)
	}
}

// TestSearchWithLossInversion: what is lost at a low load counts, once it has been seen, whatever larger loads do.
func TestSearchWithLossInversion(t *testing.T) {
	low := func(from, to float64) func(float64, float64) bool {
		return func(load, _ float64) bool { return load > from && load < to }
	}
	goal := mustGoal(t, "loss=0,exceed=0,sum=1s,width=1%")
	// A search that begins above the region does not see it.
	d := &device{knee: 1e6, lossy: low(100_000, 300_000)}
	regular(t, "from above", drive(t, SearchOptions{Goals: []Goal{goal}, MinLoad: 1000, MaxLoad: 4e6, Lower: 900_000}, d).Results()[0], 1e6)
	// One that begins in it takes its lower edge for the knee.
	d = &device{knee: 1e6, lossy: low(100_000, 300_000)}
	s := drive(t, SearchOptions{Goals: []Goal{goal}, MinLoad: 1000, MaxLoad: 4e6, Lower: 200_000}, d)
	regular(t, "from inside", s.Results()[0], 100_000)
	// And two goals, of which one bears the region: the other's bounds are conservative.
	bears := mustGoal(t, "loss=20%,exceed=0,sum=1s,width=20%")
	d = &device{knee: 1e6, lossy: low(100_000, 300_000)}
	s = drive(t, SearchOptions{Goals: []Goal{bears, goal}, MinLoad: 1000, MaxLoad: 4e6, Lower: 200_000}, d)
	results := s.Results()
	if !results[0].Regular || *results[0].LowerPPS < 1e6 {
		t.Errorf("the goal that bears a tenth of loss: %+v", results[0])
	}
	regular(t, "the strict goal", results[1], 100_000)
	smallest := math.Inf(1)
	for load, trials := range s.trials {
		if goal.Classify(trials) == UpperClass {
			smallest = min(smallest, load)
		}
	}
	if *results[1].UpperPPS != smallest {
		t.Errorf("relevant upper bound %.0f, but %.0f is one too", *results[1].UpperPPS, smallest)
	}
}

// TestSearchLongerTrialsLoseMore: a buffer that bears a burst of half a second but no more.
func TestSearchLongerTrialsLoseMore(t *testing.T) {
	d := &device{knee: 1e6, lossy: func(load, seconds float64) bool { return load > 600_000 && load*seconds > 500_000 }}
	goal := mustGoal(t, "loss=0,exceed=0,final=10s,sum=10s,initial=100ms,width=1%")
	regular(t, "ten seconds", drive(t, SearchOptions{Goals: []Goal{goal}, MinLoad: 1000, MaxLoad: 4e6}, d).Results()[0], 600_000)
}

func TestSearchOfSeveralGoals(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	goals := []Goal{mustGoal(t, "rfc2544"), mustGoal(t, "loss=0.5%,final=60s,sum=60s,exceed=50%,width=1%"), mustGoal(t, "loss=5%,final=60s,sum=60s,width=5%")}
	for range 20 {
		d := &device{knee: 1e6, noise: func() float64 { return math.Exp(0.005 * rng.NormFloat64()) }}
		s := drive(t, SearchOptions{Goals: goals, MinLoad: 1000, MaxLoad: 4e6}, d)
		var last float64
		for i, r := range s.Results() {
			if !r.Regular || r.Goal != goals[i] {
				t.Fatalf("goal %d: %+v", i, r)
			}
			if *r.UpperPPS < last {
				t.Errorf("goal %d bears less than a stricter one: upper bounds %v, %v", i, *r.UpperPPS, last)
			}
			last = *r.UpperPPS
		}
		if s.Trials() != d.trials {
			t.Errorf("%d trials counted, %d made", s.Trials(), d.trials)
		}
	}
}

func TestSearchAtItsLimits(t *testing.T) {
	for _, c := range []struct {
		name         string
		knee         float64
		o            SearchOptions
		irregular    Irregular
		lower, upper float64
		because      string
	}{
		{"bears all", 1e9, SearchOptions{MinLoad: 1000, MaxLoad: 2e6}, AtMaxLoad, 2e6, 0, "2000000"},
		{"bears all, from below", 1e9, SearchOptions{MinLoad: 1000, MaxLoad: 2e6, Lower: 3000, Upper: 4000}, AtMaxLoad, 2e6, 0, "highest load"},
		{"bears nothing", 0, SearchOptions{MinLoad: 1000, MaxLoad: 2e6}, AtMinLoad, 0, 1000, "lowest load"},
		{"bears less than the least", 999, SearchOptions{MinLoad: 1100, MaxLoad: 2e6}, AtMinLoad, 0, 1100, "1100"},
		{"one load only", 5000, SearchOptions{MinLoad: 5000, MaxLoad: 5000}, AtMaxLoad, 5000, 0, "5000"},
		{"no whole number between", 2.5, SearchOptions{MinLoad: 1, MaxLoad: 5}, EndedEarly, 2, 3, "whole number"},
	} {
		c.o.Goals = []Goal{mustGoal(t, "quick")}
		r := drive(t, c.o, &device{knee: c.knee}).Results()[0]
		if r.Regular || r.Irregular != c.irregular || !strings.Contains(r.Because, c.because) {
			t.Errorf("%s: %+v", c.name, r)
		}
		if v := zeroIfNaN(Val(r.LowerPPS)); v != c.lower {
			t.Errorf("%s: lower bound %v, want %v", c.name, v, c.lower)
		}
		if v := zeroIfNaN(Val(r.UpperPPS)); v != c.upper {
			t.Errorf("%s: upper bound %v, want %v", c.name, v, c.upper)
		}
		if (r.ConditionalPPS == nil) != (c.lower == 0) {
			t.Errorf("%s: conditional throughput %v with lower bound %v", c.name, r.ConditionalPPS, c.lower)
		}
	}
}

func TestSearchTrialLimit(t *testing.T) {
	d := &device{knee: 1e6}
	s := drive(t, SearchOptions{Goals: []Goal{mustGoal(t, "quick"), mustGoal(t, "rfc2544")}, MinLoad: 1000, MaxLoad: 4e6, MaxTrials: 7}, d)
	if d.trials != 7 {
		t.Errorf("%d trials, 7 were allowed", d.trials)
	}
	for _, r := range s.Results() {
		if r.Regular || r.Irregular != EndedEarly || !strings.Contains(r.Because, "7 trials") {
			t.Errorf("%+v", r)
		}
	}
}

func TestNewSearchRefuses(t *testing.T) {
	g := mustGoal(t, "quick")
	for name, o := range map[string]SearchOptions{
		"no goal":          {MinLoad: 1, MaxLoad: 2},
		"no load":          {Goals: []Goal{g}},
		"turned round":     {Goals: []Goal{g}, MinLoad: 3, MaxLoad: 2},
		"an endless load":  {Goals: []Goal{g}, MinLoad: 1, MaxLoad: math.Inf(1)},
		"a goal of no use": {Goals: []Goal{{}}, MinLoad: 1, MaxLoad: 2},
	} {
		if _, err := NewSearch(o); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// bench is a simulated rig for RunSearches: arms with knees, a generator with a limit, and trials that come out invalid.
type benchOf struct {
	devices map[string]*device
	most    float64 // the generator's
	invalid func(SearchTrial) bool
	log     []SearchTrial
}

func (b *benchOf) run(_ context.Context, s SearchTrial) (Trial, error) {
	b.log = append(b.log, s)
	load := s.Input.Load
	n := uint64(load * s.Input.Seconds)
	t := Trial{Seconds: s.Input.Seconds, Offered: n, Sent: n, Valid: true}
	if b.most > 0 && load > b.most {
		t.Sent = uint64(b.most * s.Input.Seconds)
	}
	t.Received = uint64(float64(t.Sent) * (1 - b.devices[s.Label].loss(s.Input)))
	t.Lost = t.Sent - t.Received
	t.Unexplained = t.Lost
	if b.invalid != nil && b.invalid(s) {
		t.Invalidate("made up")
	}
	return t, nil
}

func (b *benchOf) search(t *testing.T, o SearchOptions, ro SearchRunOptions, labels ...string) ([]Searcher, Outcome, error) {
	t.Helper()
	var searches []Searcher
	for _, label := range labels {
		s, err := NewSearch(o)
		if err != nil {
			t.Fatal(err)
		}
		searches = append(searches, Searcher{Label: label, Search: s})
	}
	out, err := RunSearches(context.Background(), searches, ro, b.run)
	return searches, out, err
}

func twoArms() map[string]*device { return map[string]*device{"a": {knee: 300_000}, "b": {knee: 2e6}} }

func TestRunSearchesAlternates(t *testing.T) {
	b := &benchOf{devices: twoArms(), invalid: func(s SearchTrial) bool { return s.Round == 3 && s.Attempt < 3 }}
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6}
	searches, out, err := b.search(t, o, SearchRunOptions{}, "a", "b")
	if err != nil || out.Incomplete {
		t.Fatal(err, out.Reason)
	}
	regular(t, "a", searches[0].Search.Results()[0], 300_000)
	regular(t, "b", searches[1].Search.Results()[0], 2e6)
	order := ""
	for _, s := range b.log[:12] {
		order += s.Label
	}
	if order != "abba"+"aaabbb"+"ba" { // round 3 was repeated twice for each
		t.Errorf("order of trials: %s", order)
	}
	for i, tr := range out.Trials {
		if tr.Kind != SearchRun || tr.LoadPPS == nil || *tr.LoadPPS != b.log[i].Input.Load || tr.Block != b.log[i].Round || tr.Attempt != b.log[i].Attempt {
			t.Fatalf("trial %d: %+v of %+v", i, tr, b.log[i])
		}
	}
}

func TestRunSearchesGeneratorTopsOut(t *testing.T) {
	b := &benchOf{devices: twoArms(), most: 1.2e6}
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6}
	searches, _, err := b.search(t, o, SearchRunOptions{}, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	regular(t, "a", searches[0].Search.Results()[0], 300_000)
	r := searches[1].Search.Results()[0]
	if r.Regular || r.UpperPPS != nil || r.LowerPPS == nil || r.Irregular != AtMaxLoad || !strings.Contains(r.Because, "generator tops out") {
		t.Fatalf("%+v", r)
	}
	if *r.LowerPPS > 1.2e6 || *r.LowerPPS < 1.2e6*0.95 {
		t.Errorf("lower bound %.0f, the generator can offer 1,200,000", *r.LowerPPS)
	}
}

// TestRunSearchesSUTSends: where the load is the SUT's own, what it does not reach is its loss.
func TestRunSearchesSUTSends(t *testing.T) {
	b := &benchOf{devices: map[string]*device{"a": {knee: 1e9}}, most: 800_000}
	goal := mustGoal(t, "loss=0,exceed=0,sum=1s,width=1%")
	searches, _, err := b.search(t, SearchOptions{Goals: []Goal{goal}, MinLoad: 1000, MaxLoad: 4e6}, SearchRunOptions{SUTSends: true}, "a")
	if err != nil {
		t.Fatal(err)
	}
	r := searches[0].Search.Results()[0]
	if !r.Regular || *r.LowerPPS > 800_000*(1+severeShortfall) || *r.UpperPPS < 800_000 {
		t.Errorf("%+v", r)
	}
}

func TestRunSearchesGivesUp(t *testing.T) {
	b := &benchOf{devices: twoArms(), invalid: func(s SearchTrial) bool { return s.Label == "a" }}
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6}
	searches, out, err := b.search(t, o, SearchRunOptions{}, "a", "b")
	if err != nil || out.Incomplete {
		t.Fatal(err, out.Reason)
	}
	if r := searches[0].Search.Results()[0]; r.Irregular != EndedEarly || !strings.Contains(r.Because, "made up") || r.LowerPPS != nil {
		t.Errorf("%+v", r)
	}
	regular(t, "b", searches[1].Search.Results()[0], 2e6)
	n := 0
	for _, s := range b.log {
		if s.Label == "a" {
			n++
		}
	}
	if n != maxBarren*MaxAttempts {
		t.Errorf("%d trials of an arm that has no valid one, want %d", n, maxBarren*MaxAttempts)
	}
}

func TestRunSearchesOutOfTime(t *testing.T) {
	now := time.Unix(0, 0)
	b := &benchOf{devices: twoArms(), invalid: func(SearchTrial) bool { now = now.Add(time.Second); return false }}
	o := SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6}
	searches, out, err := b.search(t, o, SearchRunOptions{Until: time.Unix(10, 0), Now: func() time.Time { return now }}, "a", "b")
	if err != nil || len(out.Trials) != 10 {
		t.Fatalf("%d trials of a second each in ten seconds, %v", len(out.Trials), err)
	}
	for _, s := range searches {
		if r := s.Search.Results()[0]; r.Irregular != EndedEarly || r.Because != "out of time" {
			t.Errorf("%+v", r)
		}
	}
}

func TestRunSearchesInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &benchOf{devices: twoArms()}
	s, err := NewSearch(SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6})
	if err != nil {
		t.Fatal(err)
	}
	out, err := RunSearches(ctx, []Searcher{{"a", s}}, SearchRunOptions{}, func(ctx context.Context, spec SearchTrial) (Trial, error) {
		if len(b.log) == 8 {
			cancel()
		}
		return b.run(ctx, spec)
	})
	if err != nil || !out.Incomplete || len(out.Trials) != 8 || !strings.Contains(out.Reason, "interrupted") {
		t.Errorf("%d trials, incomplete %v (%s), %v", len(out.Trials), out.Incomplete, out.Reason, err)
	}
	if r := s.Results()[0]; r.Irregular != EndedEarly || r.UpperPPS == nil {
		t.Errorf("what was found until then: %+v", r)
	}
}

func TestRunSearchesErrors(t *testing.T) {
	broken := errors.New("broken")
	for _, own := range []bool{true, false} {
		b := &benchOf{devices: twoArms()}
		var searches []Searcher
		for _, label := range []string{"a", "b"} {
			s, err := NewSearch(SearchOptions{Goals: []Goal{mustGoal(t, "quick")}, MinLoad: 1000, MaxLoad: 4e6})
			if err != nil {
				t.Fatal(err)
			}
			searches = append(searches, Searcher{label, s})
		}
		out, err := RunSearches(context.Background(), searches, SearchRunOptions{}, func(ctx context.Context, spec SearchTrial) (Trial, error) {
			if spec.Label == "a" && own {
				return Trial{}, &ArmError{broken}
			} else if spec.Label == "a" {
				return Trial{}, broken
			}
			return b.run(ctx, spec)
		})
		if own {
			if err != nil || out.Incomplete || searches[0].Search.Results()[0].Because != "broken" || !searches[1].Search.Results()[0].Regular {
				t.Errorf("an arm's own error: %v, %+v", err, searches[0].Search.Results())
			}
		} else if !errors.Is(err, broken) || !out.Incomplete {
			t.Errorf("an error of all: %v, incomplete %v", err, out.Incomplete)
		}
	}
}

func TestSearchIsDeterministic(t *testing.T) {
	run := func() string {
		rng := rand.New(rand.NewPCG(9, 9))
		b := &benchOf{devices: twoArms()}
		b.devices["a"].noise = func() float64 { return math.Exp(0.02 * rng.NormFloat64()) }
		if _, _, err := b.search(t, SearchOptions{Goals: []Goal{mustGoal(t, "quick"), mustGoal(t, "rfc2544")}, MinLoad: 1000, MaxLoad: 4e6}, SearchRunOptions{}, "a", "b"); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprint(b.log)
	}
	if first := run(); first != run() {
		t.Error("two searches of the same device differ")
	}
}

func TestSearchLoss(t *testing.T) {
	for _, c := range []struct {
		name string
		t    Trial
		load float64
		want float64
	}{
		{"nothing lost", Trial{Seconds: 1, Offered: 1000, Sent: 1000, Received: 1000}, 1000, 0},
		{"a hundredth", Trial{Seconds: 1, Offered: 1000, Sent: 1000, Received: 990}, 1000, 0.01},
		{"late by a packet in 10,000: not counted", Trial{Seconds: 1.0001, Offered: 10_001, Sent: 10_000, Received: 10_000}, 10_000, 0},
		{"half was offered", Trial{Seconds: 1, Offered: 1000, Sent: 500, Received: 500}, 1000, 0.5},
		{"took twice as long", Trial{Seconds: 2, Offered: 1000, Sent: 1000, Received: 1000}, 1000, 0.5},
		{"nothing sent", Trial{Seconds: 1}, 1000, 1},
	} {
		if got := SearchLoss(&c.t, c.load); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzSearch drives searches on devices of any kind: they end, ask for nothing outside their range, and their bounds are
// what their trials say.
func FuzzSearch(f *testing.F) {
	f.Add(uint64(1), uint32(700_000), uint8(10), uint8(5), uint8(50), uint8(30), uint8(0))
	f.Add(uint64(2), uint32(0), uint8(0), uint8(1), uint8(0), uint8(1), uint8(3))
	f.Fuzz(func(t *testing.T, seed uint64, knee uint32, noise, sum, exceed, width, loss uint8) {
		goals := []Goal{
			{FinalSeconds: 1, SumSeconds: float64(sum%6) + 1, ExceedRatio: float64(exceed%100) / 100, Width: float64(width%200)/500 + 0.002, LossRatio: float64(loss%50) / 1000, InitialSeconds: 0.3},
			{FinalSeconds: 1, SumSeconds: 2, ExceedRatio: 0.5, Width: 0.1, LossRatio: 0.01, InitialSeconds: 1},
		}
		rng := rand.New(rand.NewPCG(seed, 7))
		d := &device{knee: float64(knee), noise: func() float64 { return math.Exp(float64(noise%100) / 500 * rng.NormFloat64()) }}
		s := drive(t, SearchOptions{Goals: goals, MinLoad: 100, MaxLoad: 3e6, MaxTrials: 3000}, d)
		for i, r := range s.Results() {
			lower, upper := s.bounds(goals[i])
			if r.Regular && !((upper-lower)/upper <= goals[i].Width && lower > 0) {
				t.Fatalf("goal %d: regular with bounds %v..%v", i, lower, upper)
			}
			if !r.Regular && r.Because == "" {
				t.Fatalf("goal %d: irregular without a reason", i)
			}
			if lower > 0 && goals[i].Classify(s.trials[lower]) != LowerClass || upper > 0 && goals[i].Classify(s.trials[upper]) != UpperClass {
				t.Fatalf("goal %d: bounds %v..%v are none", i, lower, upper)
			}
			if upper > 0 && lower >= upper {
				t.Fatalf("goal %d: bounds %v..%v", i, lower, upper)
			}
		}
	})
}
