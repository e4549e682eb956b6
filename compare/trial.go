// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"
)

// TrialKind says what a trial is for.
type TrialKind string

const (
	Measured  TrialKind = "measured" // counts towards the comparison
	Warmup    TrialKind = "warmup"   // discarded
	AA        TrialKind = "aa"       // measured, of an arm's twin in an A/A control
	LimitRun  TrialKind = "limit"    // XDP_DROP in the receiver's place
	Headroom  TrialKind = "headroom" // what the peer can offer
	Pilot     TrialKind = "pilot"    // chooses among an arm's candidate settings
	SearchRun TrialKind = "search"   // of a rate search, at a load of its own
)

// Grade says how far a ledger row's number can be trusted.
type Grade string

const (
	Exact   Grade = "exact"   // the witness counts packets, and only ours
	Bounded Grade = "bounded" // the witness counts events or aggregates; the row is clipped to the loss left
)

// Trial is one arm, one run, in counts of this run's packets (by run id).
//
// Received counts each packet once: packets read = Received + Duplicate.
// A packet that reached the reader and failed a check is Corrupt, not
// Received, so it is lost and has a ledger row.
type Trial struct {
	Arm      string    `json:"arm"`
	Kind     TrialKind `json:"kind"`
	Block    int       `json:"block"`    // from 1; 0 outside the blocks
	Position int       `json:"position"` // in the block, from 1
	Attempt  int       `json:"attempt"`  // from 1; more when an invalid one was repeated
	RunID    uint32    `json:"run_id"`
	Started  time.Time `json:"started"`
	Seconds  float64   `json:"seconds"` // first to last packet at the peer, and the last one's interval

	// ReceiveSeconds is the first to the last packet at the reader; null when fewer than two batches came.
	ReceiveSeconds *float64 `json:"receive_seconds,omitempty"`

	// LoadPPS is the load asked for in a search, packets/s; Block is its round then.
	LoadPPS *float64 `json:"load_pps,omitempty"`

	Offered   uint64 `json:"offered"` // the schedule called for; equals Sent for --rate max
	Sent      uint64 `json:"sent"`    // left the peer
	Received  uint64 `json:"received"`
	Lost      uint64 `json:"lost"` // Sent - Received
	Duplicate uint64 `json:"duplicate"`
	Reordered uint64 `json:"reordered"`
	Corrupt   uint64 `json:"corrupt"`
	Foreign   uint64 `json:"foreign"`     // not of this run: in no other count
	Late      uint64 `json:"late"`        // sent over 1 ms after the intended time
	LateMaxNs uint64 `json:"late_max_ns"` // the worst of these
	// LateMeanNs is how late a packet was sent on average, over all of them.
	LateMeanNs *float64 `json:"late_mean_ns,omitempty"`

	// PerWorker is what each worker read (of XDP_DROP: what came on each queue), duplicates included; with one worker it is
	// left out.
	PerWorker []uint64 `json:"per_worker,omitempty"`
	// Handed is what the SUT's engine took in a test in which the SUT sends, and Unsent where that went which never left:
	// Handed = Sent + sum(Unsent). Null in other tests.
	Handed *uint64     `json:"handed,omitempty"`
	Unsent []LedgerRow `json:"unsent,omitempty"`

	// Fragments is set in the test of that name, whose packets are datagrams.
	Fragments *TrialFragments `json:"fragments,omitempty"`
	// Followed is what the SUT of a replay saw.
	Followed *Followed `json:"followed,omitempty"`

	Ledger      []LedgerRow  `json:"ledger"`
	Unexplained uint64       `json:"unexplained"` // Lost - sum(Ledger)
	Checks      []CrossCheck `json:"checks,omitempty"`

	Valid          bool   `json:"valid"`
	InvalidBecause string `json:"invalid_because"`

	CPU          *CPU     `json:"cpu"`
	TSCPerPacket *float64 `json:"tsc_per_packet,omitempty"`
	// ByCPU is who had the SUT's CPUs, and with placement sender those that generate, where the witness tells CPUs apart.
	ByCPU      []CPUShare  `json:"by_cpu,omitempty"`
	Milestones []Milestone `json:"milestones,omitempty"` // where they were asked for
	Effective  *Effective  `json:"effective,omitempty"`  // as read back for this trial
	Notes      []string    `json:"notes,omitempty"`      // lesser modes than asked for, each with its reason
	// Counters are the raw deltas the ledger was made of, by dotted name.
	Counters  map[string]uint64 `json:"counters,omitempty"`
	Intervals []Interval        `json:"intervals,omitempty"`

	// Connection tests.
	Opened    *uint64 `json:"opened,omitempty"`
	Completed *uint64 `json:"completed,omitempty"`
	Requests  *uint64 `json:"requests,omitempty"`
	// PacketsPerConnection counts both directions, at the SUT's device.
	PacketsPerConnection *float64 `json:"packets_per_connection,omitempty"`
	Errors               *Errors  `json:"errors,omitempty"`
	// Latency tests.
	LatencyNs *Latency `json:"latency_ns,omitempty"`
}

// LedgerRow is one place where packets were lost. Ids in At are stable.
type LedgerRow struct {
	At      string `json:"at"`
	Packets uint64 `json:"packets"`
	Witness string `json:"witness"` // the counter, and on which side
	Grade   Grade  `json:"grade"`
	Note    string `json:"note,omitempty"` // what it means, in a few words
}

// CrossCheck is two independent counts of one thing.
type CrossCheck struct {
	What string `json:"what"`
	A    uint64 `json:"a"`
	B    uint64 `json:"b"`
	OK   bool   `json:"ok"`
}

// Interval is a live sample; counts are since the one before.
type Interval struct {
	AtSeconds float64 `json:"at_seconds"` // end of the interval, from the trial's start
	Sent      uint64  `json:"sent"`
	Received  uint64  `json:"received"`
}

// Errors of a connection test, by kind.
type Errors struct {
	Total uint64            `json:"total"`
	By    map[string]uint64 `json:"by"`
}

// SentPPS is the rate the peer sent at; NaN for a trial of no duration.
func (t *Trial) SentPPS() float64 { return rate(t.Sent, t.Seconds) }

// ReceivedPPS is the rate of unique packets received; NaN for a trial of no duration. Packets that a full buffer hands out
// after the peer has stopped count over the longer time that took, or a large buffer would look like a fast reader.
func (t *Trial) ReceivedPPS() float64 {
	seconds := t.Seconds
	if t.ReceiveSeconds != nil && *t.ReceiveSeconds > seconds {
		seconds = *t.ReceiveSeconds
	}
	return rate(t.Received, seconds)
}

// LossRatio is Lost/Sent; NaN when nothing was sent.
func (t *Trial) LossRatio() float64 {
	if t.Sent == 0 {
		return math.NaN()
	}
	return float64(t.Lost) / float64(t.Sent)
}

func rate(n uint64, seconds float64) float64 {
	if !(seconds > 0) {
		return math.NaN()
	}
	return float64(n) / seconds
}

// Invalidate marks the trial as not to be counted; a second reason is added to the first.
func (t *Trial) Invalidate(format string, args ...any) {
	reason := fmt.Sprintf(format, args...)
	t.Valid = false
	if t.InvalidBecause != "" {
		reason = t.InvalidBecause + "; " + reason
	}
	t.InvalidBecause = reason
}

// Check verifies the identities every trial must keep, valid or not:
//
//	Lost = Sent - Received, Received <= Sent
//	sum(Ledger) + Unexplained = Lost
//	Sent + sum(Unsent) = Handed, where the SUT sends
//
// Counts are unsigned, so "nothing is negative" shows as a sum that would
// have to be: Received over Sent, or a ledger over the loss. The error joins
// every identity that failed.
func (t *Trial) Check() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if t.Received > t.Sent {
		fail("received %d is more than sent %d", t.Received, t.Sent)
	} else if t.Lost != t.Sent-t.Received {
		fail("lost is %d, but sent %d - received %d = %d", t.Lost, t.Sent, t.Received, t.Sent-t.Received)
	}
	sum, over := addRows(t.Ledger, t.Unexplained, fail)
	if over || sum != t.Lost {
		fail("ledger %d + unexplained %d is not lost %d", sum-t.Unexplained, t.Unexplained, t.Lost)
	}
	if all, over := addRows(t.Unsent, t.Sent, fail); t.Handed != nil && (over || all != *t.Handed) {
		fail("sent %d + not sent %d is not what was handed over, %d", t.Sent, all-t.Sent, *t.Handed)
	}
	if t.Valid && t.InvalidBecause != "" {
		fail("valid, yet invalid because %q", t.InvalidBecause)
	}
	if !t.Valid && t.InvalidBecause == "" {
		fail("invalid without a reason")
	}
	if t.Valid && !(t.Seconds > 0 && !math.IsInf(t.Seconds, 0)) {
		fail("valid with a duration of %v s", t.Seconds)
	}
	if len(errs) == 0 {
		return nil
	}
	return fmt.Errorf("trial of %s, block %d, position %d: %w", t.Arm, t.Block, t.Position, errors.Join(errs...))
}

// addRows adds the rows to n, and says whether that wrapped.
func addRows(rows []LedgerRow, n uint64, fail func(string, ...any)) (sum uint64, over bool) {
	sum = n
	for i, row := range rows {
		var carry uint64
		if sum, carry = bits.Add64(sum, row.Packets, 0); carry != 0 {
			over = true
		}
		if row.At == "" {
			fail("ledger row %d has no place", i+1)
		}
		if row.Grade != Exact && row.Grade != Bounded {
			fail("ledger row %q: grade %q is neither exact nor bounded", row.At, row.Grade)
		}
	}
	return sum, over
}
