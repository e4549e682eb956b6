// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"fmt"

	"twopath/compare"
	"twopath/internal/agent"
)

// course is how the traffic of one kind of test flows: what each agent is told, in which order things happen, and what is
// made of the counts. Trials of all tests share the rest: placement, agents, and what is undone.
type course interface {
	// parts are what the SUT's agent and the peer's are told.
	parts(b *Bench, s Spec) (sut, peer agent.Prepare)
	// run reads the counters, lets the traffic flow to its end, and reads them again. An agent that died or hung is the
	// error of its call; a cancelled context stops the load, and what came until then is still counted.
	run(ctx context.Context, r *running) error
	// record makes counts, ledger, cost and validity of what run has left in r.
	record(r *running, t *compare.Trial) error
}

// courseOf finds the course of a trial. The limit of a receive test is one too, with a program in the reader's place.
func courseOf(s Spec) (course, error) {
	switch s.Test {
	case "", "udp-rx":
		return receiving{}, nil
	case "udp-tx":
		return sending{}, nil
	case "replay":
		return replaying{}, nil
	case "http-cps", "http-rps":
		return connecting{}, nil
	case "udp-echo":
		return echoing{}, nil
	case "dns":
		return answering{}, nil
	case "fragments":
		return fragmented{}, nil
	}
	return nil, fmt.Errorf("no test %q", s.Test)
}
