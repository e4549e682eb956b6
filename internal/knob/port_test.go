// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"twopath/internal/nstest"
)

// state is a port as ip and ethtool show it.
func state(t *testing.T, port string) string {
	t.Helper()
	var b strings.Builder
	for _, c := range [][]string{{"ethtool", "-k", port}, {"ethtool", "-l", port}, {"ip", "-d", "link", "show", port}} {
		if _, err := exec.LookPath(c[0]); err != nil {
			t.Skipf("needs %s", c[0])
		}
		out, err := exec.Command(c[0], c[1:]...).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %v: %s", c, err, out)
		}
		b.Write(out)
	}
	for _, n := range Names() {
		if r, err := Read(n, At{Port: port}); err == nil {
			b.WriteString(n + "=" + r.Value + "\n")
		}
	}
	return b.String()
}

func TestPort(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	o := Options{Kind: Tune, Port: p.SUT.Name, Dir: t.TempDir() + "/run"}
	p.SUT.Do(t, func() {
		before := state(t, o.Port)
		wants := []Want{{"promisc", "on"}, {"offload_rxvlan", "off"}, {"offload_tso", "off"}, {"napi_defer_hard_irqs", "2"},
			{"gro_flush_timeout", "200000"}, {"rps_cpus", "0 none"}, {"threaded", "on"}, {"queues", "1"}}
		j, err := Apply(o, wants)
		if err != nil {
			t.Fatal(err)
		}
		if j.Settings[0].Knob != "queues" {
			t.Errorf("%s was set first, and queues have settings of their own", j.Settings[0].Knob)
		}
		for _, want := range []Want{{"queues", "1"}, {"promisc", "on"}, {"offload_rxvlan", "off"}, {"offload_tso", "off"}, {"gro_flush_timeout", "200000"}, {"threaded", "on"}} {
			if r, err := Read(want.Knob, At{Port: o.Port}); err != nil || r.Value != want.Value {
				t.Errorf("%s: %q, %v, want %q", want.Knob, r.Value, err, want.Value)
			}
		}
		undone, _, err := Undo(o.Dir, Tune)
		if err != nil {
			t.Fatal(err)
		}
		for _, u := range undone {
			if u.Left != "" {
				t.Errorf("%s left: %s", u.Knob, u.Left)
			}
		}
		if after := state(t, o.Port); after != before {
			t.Errorf("not as before:\n%s\nnow:\n%s", before, after)
		}
		if _, err := os.Stat(o.Dir); err == nil {
			t.Error("the journal's directory is left")
		}
	})
}

// What a driver refuses is refused before, or in the middle, and then all is as it was.
func TestPortRefuses(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := Options{Kind: Trial, Port: p.SUT.Name, Dir: t.TempDir()}
	p.SUT.Do(t, func() {
		before := state(t, o.Port)
		for _, c := range []struct {
			want Want
			says string
		}{
			{Want{"rx_ring", "4096"}, "not supported by driver veth"},
			{Want{"adaptive_rx", "off"}, "not supported by driver veth"},
			{Want{"pause_rx", "off"}, "not supported by driver veth"},
			{Want{"offload_lro", "on"}, "fixed by driver veth"},
			{Want{"xps_cpus", "0"}, "one transmit queue"},
			{Want{"irq_cpus", "0"}, "no interrupts"},
			{Want{"queues", "9"}, "takes at most 1"},
			{Want{"rps_cpus", "8000"}, "rps_cpus"},
		} {
			_, err := Apply(o, []Want{{"promisc", "on"}, {"offload_rxvlan", "off"}, c.want, {"gro_flush_timeout", "1000"}})
			var refused *Refused
			if !errors.As(err, &refused) || refused.Knob != c.want.Knob || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v: %v, want a refusal that says %q", c.want, err, c.says)
			}
			if after := state(t, o.Port); after != before {
				t.Errorf("%v: not as before:\n%s\nnow:\n%s", c.want, before, after)
			}
			if j, err := Load(o.Dir, Trial); j != nil || err != nil {
				t.Errorf("%v: journal %+v, %v", c.want, j, err)
			}
		}
	})
}

// A port that went meanwhile takes its settings with it, and another one of its name is left alone.
func TestPortThatIsGone(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := Options{Kind: Tune, Port: p.SUT.Name, Dir: t.TempDir()}
	p.SUT.Do(t, func() {
		if _, err := Apply(o, []Want{{"gro_flush_timeout", "1000"}}); err != nil {
			t.Fatal(err)
		}
		l, err := netlink.LinkByName(o.Port)
		if err != nil {
			t.Fatal(err)
		}
		other := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: o.Port}, PeerName: "other0"}
		if err := errors.Join(netlink.LinkDel(l), netlink.LinkAdd(other)); err != nil {
			t.Fatal(err)
		}
		if err := write("gro_flush_timeout", "1000", At{Port: o.Port}); err != nil {
			t.Fatal(err)
		}
		undone, _, err := Undo(o.Dir, Tune)
		if err != nil || len(undone) != 1 || undone[0].Left == "" {
			t.Errorf("%+v, %v: want it left out", undone, err)
		}
		if r, err := Read("gro_flush_timeout", At{Port: o.Port}); err != nil || r.Value != "1000" {
			t.Errorf("the other device: %+v, %v", r, err)
		}
	})
}

// A port in another namespace than the caller's is found by what the journal says of it.
func TestUndoFromElsewhere(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := Options{Kind: Trial, Port: p.SUT.Name, Dir: t.TempDir()}
	var j *Journal
	p.SUT.Do(t, func() {
		var err error
		if j, err = Apply(o, []Want{{"offload_rxvlan", "off"}}); err != nil {
			t.Fatal(err)
		}
	})
	// From here the namespace has no name, so that nobody can find it: what is said is that the port is gone.
	undone, err := j.Undo()
	if err != nil || len(undone) != 1 || undone[0].Left == "" {
		t.Errorf("%+v, %v", undone, err)
	}
}
