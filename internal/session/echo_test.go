// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"twopath/compare"
)

// echoCandidate is a setting with the medians and tails of its pilot trials, us.
func echoCandidate(rank int, p50, p99 float64) *scored {
	l := &compare.Latency{P50: compare.Num(p50 * 1000)}
	if p99 > 0 {
		l.P99 = compare.Num(p99 * 1000)
	}
	return &scored{rank: rank, valid: true, trials: []compare.Trial{{Sent: 100, Received: 100, Seconds: 1, LatencyNs: l}, {Sent: 100, Received: 100, Seconds: 1, LatencyNs: l}}}
}

func TestBetterLatency(t *testing.T) {
	for _, c := range []struct {
		name string
		x, y *scored
		want int
	}{
		{"a much shorter tail", echoCandidate(0, 20, 4000), echoCandidate(1, 30, 60), -1},
		{"tails alike, the lower median", echoCandidate(0, 30, 60), echoCandidate(1, 20, 65), -1},
		{"no tail known, the lower median", echoCandidate(0, 20, 0), echoCandidate(1, 30, 0), 1},
		{"nothing known, who is listed first", &scored{rank: 0, trials: make([]compare.Trial, 1)}, &scored{rank: 1, trials: make([]compare.Trial, 1)}, 1},
	} {
		if got := betterLatency(c.x, c.y); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
		if got := betterLatency(c.y, c.x); got != -c.want {
			t.Errorf("%s, turned round: %d, want %d", c.name, got, -c.want)
		}
	}
}
