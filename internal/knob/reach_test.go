// SPDX-License-Identifier: Apache-2.0

package knob

import "testing"

func TestIdle(t *testing.T) {
	veth := Where{Driver: "veth"}
	for _, c := range []struct {
		knob string
		w    Where
		idle bool
	}{
		{"dev_weight", veth, true},
		{"dev_weight", Where{Driver: "ixgbe"}, true},
		{"dev_weight", Where{Driver: "veth", RPS: true}, false},
		{"dev_weight", Where{Driver: "ixgbe", Sends: true}, false},
		{"netdev_max_backlog", Where{Driver: "ixgbe", Sends: true}, true},
		{"netdev_budget", veth, false},
		{"netdev_budget", Where{Driver: "veth", Threaded: true}, true},
		{"netdev_budget_usecs", Where{Driver: "veth", Threaded: true, RPS: true}, false},
		{"netdev_budget_usecs", Where{Driver: "veth", Threaded: true, Sends: true}, false},
		{"rmem_max", veth, true},
		{"rmem_default", veth, false},
		{"gro_flush_timeout", veth, false},
	} {
		if got := Idle(c.knob, c.w); (got != "") != c.idle {
			t.Errorf("%s with %+v: %q, want idle %t", c.knob, c.w, got, c.idle)
		}
	}
}
