// SPDX-License-Identifier: Apache-2.0

package compare_test

import (
	"context"
	"fmt"

	"twopath/compare"
)

// A whole comparison: plan, schedule, trials, verdict. Here the trials are
// made up; a real caller measures them.
func Example() {
	plan := compare.DefaultPlan("udp-rx")
	for key, value := range map[string]string{"rate": "1M", "blocks": "6"} {
		if err := plan.Set(key, value); err != nil {
			fmt.Println(err)
			return
		}
	}
	plan.Complete()
	if err := plan.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	schedule, err := plan.Schedule()
	if err != nil {
		fmt.Println(err)
		return
	}
	outcome, err := compare.Run(context.Background(), schedule, compare.RunOptions{}, func(_ context.Context, s compare.TrialSpec) (compare.Trial, error) {
		t := compare.Trial{Seconds: 1, Offered: 1e6, Sent: 1e6, Received: 1e6, Valid: true}
		if s.Arm.Engine == compare.Kernel {
			t.Received, t.Lost = 4e5, 6e5
			t.Ledger = []compare.LedgerRow{{At: "udp.socket_full", Packets: 6e5, Witness: "SO_MEMINFO drops", Grade: compare.Exact}}
		}
		return t, nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	d := compare.Document{Test: plan.Test, Seed: plan.Seed, Plan: plan, Trials: outcome.Trials, Incomplete: outcome.Incomplete, Reason: outcome.Reason}
	compare.Conclude(&d)
	fmt.Printf("%s receives %.1f x %s: %s, bound %s\n", d.Verdict.B, *d.Verdict.Ratio, d.Verdict.A, d.Verdict.Word, d.Verdict.Bound)
	// Output: xdp:auto receives 2.5 x kernel:recvmmsg: faster, bound lower
}
