// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"testing"

	"twopath/internal/nstest"
)

func TestReuseportShares(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, v6 := range []bool{false, true} {
		for _, flows := range []int{1, 64} {
			var rs []*Recvmmsg
			var err error
			p.SUT.Do(t, func() { rs, err = OpenReuseport(RecvmmsgOptions{Socket: Socket{Local: sutAddr(p, v6)}}, 4) })
			if err != nil {
				t.Fatal(err)
			}
			const n = 3200
			send(t, p, v6, 0, n, 64, flows)
			all := map[int]int{}
			working := 0
			for _, r := range rs {
				seen, total := collect(t, r, false, n, 64, 64)
				if c := r.Counters(); c["sock.received"] != uint64(total) || c["sock.drops"] != 0 {
					t.Errorf("%d received, counters say %v", total, c)
				}
				if total > 0 {
					working++
				}
				for i, times := range seen {
					all[i] += times
				}
				if err := r.Close(); err != nil {
					t.Error(err)
				}
			}
			exactly(t, all, n)
			// One flow has one hash. Of 64 flows all falling to one of four the odds are 4^-63.
			if (flows == 1) != (working == 1) {
				t.Errorf("%d flows kept %d of 4 workers busy", flows, working)
			}
		}
	}
}

func TestReuseportAnyPort(t *testing.T) {
	rs, err := OpenReuseport(RecvmmsgOptions{Socket: Socket{Local: loopback(0)}}, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rs {
		if got := r.Effective().Local; got.Port() == 0 || got != rs[0].Effective().Local {
			t.Errorf("bound to %v, the first to %v", got, rs[0].Effective().Local)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
