// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/vishvananda/netlink"

	"twopath/internal/nstest"
)

const (
	rmem     = "/proc/sys/net/core/rmem_max"
	numa     = "/proc/sys/kernel/numa_balancing"
	governor = "/sys/devices/system/cpu/cpu3/cpufreq/scaling_governor"
)

// machine makes a tree of settings as a machine has them.
func machine(t *testing.T, files map[string]string) TuneOptions {
	t.Helper()
	dir := t.TempDir()
	for path, v := range files {
		if err := os.MkdirAll(filepath.Dir(dir+path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+path, []byte(v+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return TuneOptions{root: dir, StateDir: dir + "/run"}
}

func (o TuneOptions) values(t *testing.T, paths ...string) (out []string) {
	t.Helper()
	for _, p := range paths {
		out = append(out, read(o.root+p))
	}
	return out
}

func TestTuneAppliesAndUndoes(t *testing.T) {
	o := machine(t, map[string]string{rmem: "212992", numa: "1", governor: "powersave"})
	plan, err := TunePlan(o)
	if err != nil || len(plan) != 3 {
		t.Fatalf("plan %+v, %v, want three settings", plan, err)
	}
	for _, s := range plan {
		if s.ID == "" || s.Why == "" || s.Risk == "" || s.Now == s.Want {
			t.Errorf("not a whole setting: %+v", s)
		}
	}
	if got := o.values(t, rmem, numa, governor); !slices.Equal(got, []string{"212992", "1", "powersave"}) {
		t.Errorf("the plan changed something: %v", got)
	}
	applied, err := TuneApply(o)
	if err != nil || !reflect.DeepEqual(applied, plan) {
		t.Fatalf("applied %+v, %v", applied, err)
	}
	if got := o.values(t, rmem, numa, governor); !slices.Equal(got, []string{"67108864", "0", "performance"}) {
		t.Errorf("applied: %v", got)
	}
	if plan, err := TunePlan(o); err != nil || len(plan) != 0 {
		t.Errorf("plan after apply: %+v, %v", plan, err)
	}
	if got, err := TuneApply(o); err != nil || len(got) != 0 {
		t.Errorf("second apply: %+v, %v, want nothing to do", got, err)
	}
	undone, err := TuneUndo(o.StateDir)
	if err != nil || len(undone) != 3 {
		t.Fatalf("undone %+v, %v", undone, err)
	}
	if got := o.values(t, rmem, numa, governor); !slices.Equal(got, []string{"212992", "1", "powersave"}) {
		t.Errorf("undone: %v", got)
	}
	if _, err := os.Stat(o.StateDir); err == nil {
		t.Error("the journal's directory is left")
	}
	if got, err := TuneUndo(o.StateDir); got != nil || err != nil {
		t.Errorf("second undo: %v, %v", got, err)
	}
}

func TestTuneLeavesWhatIsGoodOrMissing(t *testing.T) {
	o := machine(t, map[string]string{rmem: "134217728", governor: "performance"})
	if plan, err := TunePlan(o); err != nil || len(plan) != 0 {
		t.Errorf("plan %+v, %v, want nothing", plan, err)
	}
	if got, err := TuneApply(o); err != nil || got != nil {
		t.Errorf("apply %+v, %v", got, err)
	}
	if _, err := os.Stat(o.StateDir); err == nil {
		t.Error("a journal of nothing was written")
	}
}

func TestTuneRefusesASecondJournal(t *testing.T) {
	o := machine(t, map[string]string{rmem: "212992", numa: "1"})
	if _, err := TuneApply(o); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.root+numa, []byte("1"), 0); err != nil { // somebody sets it back
		t.Fatal(err)
	}
	if _, err := TuneApply(o); !errors.Is(err, ErrTuned) {
		t.Errorf("got %v, want ErrTuned", err)
	}
	if err := os.WriteFile(o.root+rmem, []byte("99"), 0); err != nil { // and that to something else
		t.Fatal(err)
	}
	undone, err := TuneUndo(o.StateDir)
	if err != nil || len(undone) != 2 {
		t.Fatalf("%+v, %v", undone, err)
	}
	for _, u := range undone {
		if changed := u.ID == "sysctl.net.core.rmem_max"; (u.Left != "") != changed {
			t.Errorf("%s: left because %q", u.ID, u.Left)
		}
	}
	if got := o.values(t, rmem, numa); !slices.Equal(got, []string{"99", "1"}) {
		t.Errorf("undo wrote over what somebody set: %v", got)
	}
}

// A run that was killed between journal and change left a journal of changes never made.
func TestTuneUndoAfterAKill(t *testing.T) {
	o := machine(t, map[string]string{rmem: "212992", numa: "1"})
	plan, err := TunePlan(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := writeTuned(o.StateDir, plan); err != nil {
		t.Fatal(err)
	}
	if err := plan[0].apply(plan[0].Want); err != nil {
		t.Fatal(err)
	}
	if undone, err := TuneUndo(o.StateDir); err != nil || len(undone) != 2 || undone[0].Left+undone[1].Left != "" {
		t.Errorf("%+v, %v", undone, err)
	}
	if got := o.values(t, rmem, numa); !slices.Equal(got, []string{"212992", "1"}) {
		t.Errorf("undone: %v", got)
	}
}

func TestTuneUndoesAllWhenOneFails(t *testing.T) {
	o := machine(t, map[string]string{rmem: "212992", numa: "1"})
	// Readable, but what is written to it is lost, as of a setting the kernel does not take.
	if err := os.Remove(o.root + numa); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/proc/sys/kernel/random/boot_id", o.root+numa); err != nil {
		t.Fatal(err)
	}
	if _, err := TuneApply(o); err == nil || !strings.Contains(err.Error(), "numa_balancing") {
		t.Errorf("got %v, want an error about numa_balancing", err)
	}
	if got := o.values(t, rmem); got[0] != "212992" {
		t.Errorf("rmem_max is left at %s", got[0])
	}
	if _, err := os.Stat(o.StateDir); err == nil {
		t.Error("the journal is left")
	}
}

func TestTuneDevice(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := machine(t, nil)
	o.IF = p.SUT.Name
	p.SUT.Do(t, func() {
		before, err := Describe(o.IF)
		if err != nil {
			t.Fatal(err)
		}
		got, err := TuneApply(o)
		if err != nil || len(got) != 1 || got[0].ID != "feature.rx-vlan-hw-parse" {
			t.Fatalf("applied %+v, %v, want the VLAN offload off", got, err)
		}
		if d, err := Describe(o.IF); err != nil || slices.Contains(d.Offloads, "rx-vlan-hw-parse") {
			t.Errorf("offloads %v, %v", d.Offloads, err)
		}
		if _, err := TuneUndo(o.StateDir); err != nil {
			t.Error(err)
		}
		if after, err := Describe(o.IF); err != nil || !reflect.DeepEqual(before, after) {
			t.Errorf("was %+v, is %+v, %v", before, after, err)
		}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: p.SUT.Index, Gw: net.IPv4(198, 18, 0, 2)}); err != nil {
			t.Fatal(err)
		}
		if _, err := TuneApply(o); err == nil || !strings.Contains(err.Error(), "default route") {
			t.Errorf("device with the default route: %v", err)
		}
		o.IF = "none0"
		if _, err := TunePlan(o); !errors.As(err, new(netlink.LinkNotFoundError)) {
			t.Errorf("missing device: %v", err)
		}
	})
}

func FuzzParseTuned(f *testing.F) {
	f.Add([]byte(`{"schema":"twopath-tune/1","settings":[{"id":"a","knob":{"kind":"file","target":"/proc/../etc/x"}}]}`))
	f.Add([]byte(`{"schema":"twopath-tune/1","settings":[{"id":"a","knob":{"kind":"feature","target":"eth0","key":"x"}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := parseTuned(b)
		if err != nil {
			return
		}
		for _, x := range s {
			if x.Knob.Kind == kindFile && (strings.Contains(x.Knob.Target+"/", "/../") || !strings.HasPrefix(x.Knob.Target, "/")) {
				t.Errorf("path %q", x.Knob.Target)
			}
		}
	})
}
