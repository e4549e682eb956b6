// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func goodTrial() Trial {
	return Trial{Arm: "xdp:auto", Kind: Measured, Block: 1, Position: 1, Attempt: 1, Seconds: 1, Offered: 100, Sent: 100, Received: 90, Lost: 10,
		Ledger:      []LedgerRow{{At: "veth.ring_full", Packets: 7, Witness: "w", Grade: Exact}, {At: "xsk.rx_dropped", Packets: 2, Witness: "w", Grade: Bounded}},
		Unexplained: 1, Valid: true}
}

func TestTrialCheck(t *testing.T) {
	good := goodTrial()
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func(*Trial)
		part   string
	}{
		"more received than sent": {func(t *Trial) { t.Received = 101 }, "received 101 is more than sent 100"},
		"lost":                    {func(t *Trial) { t.Lost = 11; t.Unexplained = 2 }, "lost is 11, but sent 100 - received 90 = 10"},
		"ledger short":            {func(t *Trial) { t.Unexplained = 0 }, "ledger 9 + unexplained 0 is not lost 10"},
		"ledger over":             {func(t *Trial) { t.Ledger[0].Packets = 9 }, "ledger 11 + unexplained 1 is not lost 10"},
		"negative unexplained":    {func(t *Trial) { t.Ledger[0].Packets = 9; t.Unexplained = math.MaxUint64 }, "is not lost 10"},
		"no grade":                {func(t *Trial) { t.Ledger[0].Grade = "" }, `grade ""`},
		"no place":                {func(t *Trial) { t.Ledger[1].At = "" }, "row 2 has no place"},
		"no reason":               {func(t *Trial) { t.Valid = false }, "without a reason"},
		"a reason":                {func(t *Trial) { t.InvalidBecause = "x" }, "valid, yet invalid"},
		"no time":                 {func(t *Trial) { t.Seconds = 0 }, "duration"},
		"NaN time":                {func(t *Trial) { t.Seconds = math.NaN() }, "duration"},
	} {
		tr := goodTrial()
		c.change(&tr)
		if err := tr.Check(); err == nil || !strings.Contains(err.Error(), c.part) || !strings.Contains(err.Error(), "xdp:auto, block 1, position 1") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Moving packets between the buckets keeps a trial right; making one up or
// losing one never does.
func TestTrialCheckProperty(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 2000 {
		tr := Trial{Seconds: 1, Valid: true}
		for range rng.IntN(5) {
			n := rng.Uint64N(1 << 40)
			tr.Ledger = append(tr.Ledger, LedgerRow{At: "x", Packets: n, Grade: Exact})
			tr.Lost += n
		}
		tr.Unexplained = rng.Uint64N(1 << 20)
		tr.Lost += tr.Unexplained
		tr.Received = rng.Uint64N(1 << 40)
		tr.Sent = tr.Received + tr.Lost
		if err := tr.Check(); err != nil {
			t.Fatal(err)
		}
		counts := []*uint64{&tr.Sent, &tr.Received, &tr.Lost, &tr.Unexplained}
		for i := range tr.Ledger {
			counts = append(counts, &tr.Ledger[i].Packets)
		}
		*counts[rng.IntN(len(counts))] += 1 + rng.Uint64N(1000)
		if tr.Check() == nil {
			t.Fatalf("accepted %+v", tr)
		}
	}
}

func TestInvalidateKeepsReasons(t *testing.T) {
	tr := goodTrial()
	tr.Invalidate("first %d", 1)
	tr.Invalidate("second")
	if tr.Valid || tr.InvalidBecause != "first 1; second" {
		t.Errorf("%v, %q", tr.Valid, tr.InvalidBecause)
	}
	if err := tr.Check(); err != nil {
		t.Error(err)
	}
}

func TestTrialRates(t *testing.T) {
	tr := goodTrial()
	tr.Seconds = 2
	if !near(tr.SentPPS(), 50) || !near(tr.ReceivedPPS(), 45) || !near(tr.LossRatio(), 0.1) {
		t.Errorf("%v %v %v", tr.SentPPS(), tr.ReceivedPPS(), tr.LossRatio())
	}
	if empty := new(Trial); !math.IsNaN(empty.SentPPS()) || !math.IsNaN(empty.LossRatio()) {
		t.Error("rates of an empty trial are numbers")
	}
}
