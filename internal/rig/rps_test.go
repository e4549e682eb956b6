// SPDX-License-Identifier: Apache-2.0

package rig

import "testing"

func TestRPSIsReadBack(t *testing.T) {
	r := newRig(t, Options{Queues: 2})
	for _, c := range []struct {
		cpus []int
		want string
	}{{[]int{1}, "2"}, {[]int{0, 1}, "3"}, {nil, "0"}} {
		if err := r.Peer.SetRPS(c.cpus); err != nil {
			t.Fatal(err)
		}
		var got map[string]string
		if err := r.Peer.Do(func() error { got = rpsMasks(r.Peer.Name); return nil }); err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got["rx-0"] != c.want || got["rx-1"] != c.want {
			t.Errorf("%v: got %v, want %s on both queues", c.cpus, got, c.want)
		}
	}
}

func TestCPUMask(t *testing.T) {
	for want, cpus := range map[string][]int{"0": nil, "1": {0}, "80000001": {0, 31}, "1,00000000": {32}, "2,00000000,00000001": {0, 65}} {
		if got := cpuMask(cpus); got != want {
			t.Errorf("%v: got %s, want %s", cpus, got, want)
		}
	}
}

func TestAStrangerIsNoNAPIThread(t *testing.T) {
	for _, pid := range []int{1, 1 << 30} {
		if err := isNAPIThread(pid); err == nil {
			t.Errorf("process %d was taken for a NAPI thread", pid)
		}
	}
}
