// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"testing"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

func connectSpec(t *testing.T, b *trial.Bench, arm, peer string, count uint64) trial.Spec {
	t.Helper()
	s := spec(t, b, arm, count)
	s.Test = "http-cps"
	s.Load.PPS = 0
	s.Connect = agent.Connecting{ServerPort: 80, ServerPorts: 1, ClientPort: 1024, ClientPorts: 60000, Body: 1, Concurrent: 32}
	p, err := compare.ParseArm(peer)
	if err != nil {
		t.Fatal(err)
	}
	s.PeerArm = p
	return s
}

// Each pairing of engines: all connections are opened and end as planned, and every response is right.
func TestPairings(t *testing.T) {
	for _, arm := range []string{"kernel:epoll", "xdp:auto"} {
		for _, peer := range []string{"kernel:epoll", "xdp:auto"} {
			t.Run(arm+" "+peer, func(t *testing.T) {
				b := bench(t, 1)
				const n = 500
				s := connectSpec(t, b, arm, peer, n)
				got := run(t, b, s)
				t.Logf("%.0f connections/s, %.2f packets each", got.SentPPS(), compare.Val(got.PacketsPerConnection))
				if got.Sent != n || got.Received != n || got.Lost != 0 || *got.Requests != n || got.Errors.Total != 0 {
					t.Fatalf("%+v\n%v", got, got.Counters)
				}
			})
		}
	}
}
