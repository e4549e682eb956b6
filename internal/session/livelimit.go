// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"fmt"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

// liveLimit has the live-frame generator send from the SUT's core into the peer's sink: no sender that makes an sk_buff for
// each frame is faster.
func (s *cell) liveLimit(ctx context.Context) error {
	var best compare.Trial
	for attempt := 1; attempt <= compare.MaxAttempts; attempt++ {
		s.o.report(Progress{Phase: PhaseLimit, Cell: s.c, What: "XDP live frames at full flood"})
		spec := trial.Spec{Test: s.o.Plan.Test, Role: agent.Generate, RunID: s.runID(), Load: s.load(1)}
		spec.Load.PPS, spec.Load.Count, spec.Load.Seconds = 0, 0, floodSeconds
		t, err := s.o.Bench.Run(ctx, spec)
		if err != nil {
			return fmt.Errorf("measure the limit: %w", err)
		}
		t.Arm, t.Kind, t.Position, t.Attempt = compare.LimitLive, compare.Headroom, 1, attempt
		s.doc.Trials = append(s.doc.Trials, t)
		if attempt == 1 || t.ReceivedPPS() > best.ReceivedPPS() {
			best = t
		}
		if t.Valid {
			break
		}
	}
	s.doc.Limit = &compare.Limit{Name: compare.LimitLive, PPS: compare.Num(best.ReceivedPPS())}
	return nil
}
