// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"twopath/compare"
	"twopath/internal/process"
)

const (
	weight   = "/proc/sys/net/core/dev_weight"
	budget   = "/proc/sys/net/core/netdev_budget"
	rmem     = "/proc/sys/net/core/rmem_max"
	governor = "/sys/devices/system/cpu/cpu%/cpufreq/scaling_governor"
	port     = "/sys/class/net/nic0/"
)

// machine is a tree of settings as a machine has them.
type machine struct {
	root string
	t    *testing.T
}

func newMachine(t *testing.T, files map[string]string) machine {
	t.Helper()
	m := machine{t.TempDir(), t}
	for path, v := range files {
		if err := os.MkdirAll(filepath.Dir(m.root+path), 0o755); err != nil {
			t.Fatal(err)
		}
		m.set(path, v)
	}
	return m
}

func (m machine) set(path, v string) {
	m.t.Helper()
	if err := os.WriteFile(m.root+path, []byte(v+"\n"), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// values reads the files back, as they are.
func (m machine) values(paths ...string) (out []string) {
	m.t.Helper()
	for _, p := range paths {
		v, err := readFile(m.root + p)
		if err != nil {
			m.t.Fatal(err)
		}
		out = append(out, v)
	}
	return out
}

func (m machine) want(what string, want []string, paths ...string) {
	m.t.Helper()
	if got := m.values(paths...); !slices.Equal(got, want) {
		m.t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func (m machine) options(kind Kind) Options {
	return Options{Kind: kind, Dir: m.root + "/run", Root: m.root}
}

func (m machine) undo(kind Kind) ([]Undone, bool, error) {
	return undoIn(m.root+"/run", kind, m.root, func(*Journal) bool { return true })
}

// clean says that neither journal nor directory is left.
func (m machine) clean() {
	m.t.Helper()
	if left, err := os.ReadDir(m.root + "/run"); err == nil {
		m.t.Errorf("the journals' directory is left: %v", left)
	}
}

func cpu(n string) string { return strings.Replace(governor, "%", n, 1) }

// Every name that an arm may use has a place here, and every place a name.
func TestTableHasEveryKnob(t *testing.T) {
	for _, n := range Names() {
		if table()[n] == nil {
			t.Errorf("%s is nowhere", n)
		}
	}
	for n := range table() {
		if !slices.Contains(Names(), n) {
			t.Errorf("%s has no name", n)
		}
	}
	for _, n := range compare.KnobNames() {
		if !slices.Contains(Names(), n) {
			t.Errorf("%s is an arm option, and no knob", n)
		}
	}
}

func TestApplyAndUndo(t *testing.T) {
	files := map[string]string{weight: "64", budget: "300", rmem: "212992", cpu("0"): "powersave", cpu("1"): "ondemand", cpu("10"): "powersave"}
	m := newMachine(t, files)
	all := []string{weight, budget, rmem, cpu("0"), cpu("1"), cpu("10")}
	before := m.values(all...)
	r, err := Read("governor", At{Root: m.root})
	if err != nil || r.Value != "powersave ondemand powersave" || r.Places != 3 {
		t.Errorf("governors %+v, %v: want one each, by the CPU's number", r, err)
	}
	j, err := Apply(m.options(Tune), []Want{{"governor", "performance"}, {"dev_weight", "512"}, {"rmem_max", "212992"}, {"netdev_budget", "600"}})
	if err != nil || len(j.Settings) != 3 || !j.Settled {
		t.Fatalf("%+v, %v: want three settings, for one was as wanted", j, err)
	}
	m.want("applied", []string{"512", "600", "212992", "performance", "performance", "performance"}, all...)
	if _, err := Apply(m.options(Tune), []Want{{"dev_weight", "1024"}}); !errors.Is(err, ErrTuned) {
		t.Errorf("second apply: %v, want ErrTuned", err)
	}
	m.want("after the second", []string{"512"}, weight)
	undone, rebooted, err := m.undo(Tune)
	if err != nil || rebooted || len(undone) != 3 {
		t.Fatalf("%+v, %t, %v", undone, rebooted, err)
	}
	m.want("undone", before, all...)
	m.clean()
	if undone, rebooted, err := m.undo(Tune); undone != nil || rebooted || err != nil {
		t.Errorf("second undo: %v, %t, %v", undone, rebooted, err)
	}
	if j, err := Apply(m.options(Tune), []Want{{"dev_weight", "64"}}); j != nil || err != nil {
		t.Errorf("nothing to do: %+v, %v", j, err)
	}
	m.clean()
}

// A process that dies anywhere between the journal and the last change leaves a journal that is not settled: whatever is
// not as before is put back.
func TestUndoAfterAKillAnywhere(t *testing.T) {
	wants := []Want{{"dev_weight", "512"}, {"netdev_budget", "600"}, {"rmem_max", "1000000"}}
	for done := range len(wants) + 1 {
		m := newMachine(t, map[string]string{weight: "64", budget: "300", rmem: "212992"})
		if err := os.Mkdir(m.root+"/run", 0o755); err != nil {
			t.Fatal(err)
		}
		me, err := process.This()
		if err != nil {
			t.Fatal(err)
		}
		j := &Journal{Schema: journalSchema, Kind: Tune, Owner: me, dir: m.root + "/run", root: m.root}
		if err := errors.Join(j.plan(wants), j.write()); err != nil {
			t.Fatal(err)
		}
		for _, w := range wants[:done] {
			if err := write(w.Knob, w.Value, At{Root: m.root}); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(m.root+"/run/.knobs-123", []byte("half"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, _, err := m.undo(Tune); err != nil {
			t.Errorf("%d done: %v", done, err)
		}
		m.want("undone", []string{"64", "300", "212992"}, weight, budget, rmem)
		m.clean()
	}
}

// A knob that is refused in the middle puts back what had been set before it.
func TestRefusedInTheMiddle(t *testing.T) {
	m := newMachine(t, map[string]string{weight: "64", rmem: "212992"})
	// Readable, but what is written to it is lost, as of a setting the kernel does not take.
	if err := os.Symlink("/proc/sys/kernel/random/boot_id", m.root+budget); err != nil {
		t.Fatal(err)
	}
	for _, wants := range [][]Want{
		{{"dev_weight", "512"}, {"netdev_budget", "600"}, {"rmem_max", "300000"}},
		{{"rmem_max", "300000"}, {"dev_weight", "512"}, {"busy_poll", "50"}},
	} {
		_, err := Apply(m.options(Tune), wants)
		var refused *Refused
		if !errors.As(err, &refused) || refused.Knob != "netdev_budget" && refused.Knob != "busy_poll" {
			t.Errorf("%v: got %v, want a refusal of the bad one", wants, err)
		}
		m.want("put back", []string{"64", "212992"}, weight, rmem)
		m.clean()
	}
	var lacking *Unsupported
	if _, err := Read("busy_poll", At{Root: m.root}); !errors.As(err, &lacking) || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v, want Unsupported", err)
	}
}

func TestUndoLeavesWhatSomebodySet(t *testing.T) {
	m := newMachine(t, map[string]string{weight: "64", budget: "300", rmem: "212992"})
	if _, err := Apply(m.options(Tune), []Want{{"dev_weight", "512"}, {"netdev_budget", "600"}, {"rmem_max", "300000"}}); err != nil {
		t.Fatal(err)
	}
	m.set(budget, "999")  // somebody set it to something else
	m.set(rmem, "212992") // somebody set it back
	undone, _, err := m.undo(Tune)
	if err != nil || len(undone) != 3 {
		t.Fatalf("%+v, %v", undone, err)
	}
	for _, u := range undone {
		if left := u.Knob == "netdev_budget"; (u.Left != "") != left {
			t.Errorf("%s: left because %q", u.Knob, u.Left)
		}
	}
	m.want("undone", []string{"64", "999", "212992"}, weight, budget, rmem)
	m.clean()
}

// A journal of an earlier boot says nothing about the settings there are now.
func TestJournalFromBeforeAReboot(t *testing.T) {
	m := newMachine(t, map[string]string{weight: "64"})
	j, err := Apply(m.options(Tune), []Want{{"dev_weight", "512"}})
	if err != nil {
		t.Fatal(err)
	}
	j.Owner.Boot = "5b1c9f4e-0000-0000-0000-000000000000"
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	undone, rebooted, err := m.undo(Tune)
	if err != nil || !rebooted || len(undone) != 0 {
		t.Errorf("%+v, %t, %v: want it forgotten", undone, rebooted, err)
	}
	m.want("left alone", []string{"512"}, weight)
	m.clean()
	if err := errors.Join(os.Mkdir(m.root+"/run", 0o755), j.write()); err != nil {
		t.Fatal(err)
	}
	if j, err := Apply(m.options(Tune), []Want{{"dev_weight", "1024"}}); err != nil || j.Settings[0].Before != "512" {
		t.Errorf("apply over it: %+v, %v", j, err)
	}
}

// Trials' settings go with their process: of one that died they are put back, of one that lives they are its own.
func TestRecoverOfTrials(t *testing.T) {
	m := newMachine(t, map[string]string{weight: "64"})
	j, err := Apply(m.options(Trial), []Want{{"dev_weight", "512"}})
	if err != nil {
		t.Fatal(err)
	}
	recovered := func() []Undone {
		out, _, err := undoIn(m.root+"/run", Trial, m.root, func(j *Journal) bool { return !j.Owner.Alive() })
		if err != nil {
			t.Error(err)
		}
		return out
	}
	if got := recovered(); got != nil {
		t.Errorf("took %+v from a process that runs", got)
	}
	j.Owner.PID = os.Getppid()
	j.Owner.Start, err = process.StartTime(j.Owner.PID)
	if err := errors.Join(err, j.write()); err != nil {
		t.Fatal(err)
	}
	var busy *Busy
	if _, err := Apply(m.options(Trial), []Want{{"dev_weight", "128"}}); !errors.As(err, &busy) || busy.PID != j.Owner.PID {
		t.Errorf("beside a live process: %v, want Busy", err)
	}
	j.Owner.Start-- // an earlier process of that id
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	if got := recovered(); len(got) != 1 || got[0].Knob != "dev_weight" {
		t.Errorf("recovered %+v", got)
	}
	m.want("recovered", []string{"64"}, weight)
	m.clean()
	// And the next change of that kind does it by itself.
	if j, err = Apply(m.options(Trial), []Want{{"dev_weight", "512"}}); err != nil {
		t.Fatal(err)
	}
	j.Owner.Start--
	if err := j.write(); err != nil {
		t.Fatal(err)
	}
	if j, err = Apply(m.options(Trial), []Want{{"dev_weight", "128"}}); err != nil || j.Settings[0].Before != "64" {
		t.Fatalf("%+v, %v: want the dead one's undone first", j, err)
	}
	if _, err := j.Undo(); err != nil {
		t.Error(err)
	}
	m.want("undone", []string{"64"}, weight)
	m.clean()
}

func TestPortFiles(t *testing.T) {
	m := newMachine(t, map[string]string{port + "queues/rx-0/rps_cpus": "00000000,00000003", port + "queues/rx-1/rps_cpus": "0", port + "queues/rx-10/rps_cpus": "3",
		port + "queues/tx-0/xps_cpus": "1", port + "gro_flush_timeout": "0", port + "threaded": "1",
		port + "device/msi_irqs/24": "msi", port + "device/msi_irqs/130": "msi", port + "device/msi_irqs/131": "msi",
		"/proc/irq/24/smp_affinity_list": "0-3", "/proc/irq/130/smp_affinity_list": "2"})
	at := At{Port: "nic0", Root: m.root}
	for name, want := range map[string]string{"rps_cpus": "0-1 none 0-1", "xps_cpus": "0", "gro_flush_timeout": "0", "threaded": "on", "irq_cpus": "0-3 2"} {
		if r, err := Read(name, at); err != nil || r.Value != want {
			t.Errorf("%s: %q, %v, want %q", name, r.Value, err, want)
		}
	}
	for name, v := range map[string]string{"rps_cpus": "1 33 none", "irq_cpus": "1", "threaded": "busy", "gro_flush_timeout": "200000"} {
		if err := write(name, v, at); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	m.want("written", []string{"2", "2,00000000", "0", "1", "1", "2", "200000"}, port+"queues/rx-0/rps_cpus", port+"queues/rx-1/rps_cpus",
		port+"queues/rx-10/rps_cpus", "/proc/irq/24/smp_affinity_list", "/proc/irq/130/smp_affinity_list", port+"threaded", port+"gro_flush_timeout")
	if _, err := Read("rps_cpus", At{}); err == nil {
		t.Error("a port's knob without a port was read")
	}
}

func TestParse(t *testing.T) {
	for in, want := range map[string]string{"queues=4": "4", "threaded=busy": "busy", "gro_flush_timeout=1ms": "1000000", "rmem_max=8M": "8388608", "irq_cpus=1,0": "0-1"} {
		name, v, _ := strings.Cut(in, "=")
		if got, err := Parse(name, v); err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", in, got, err, want)
		}
	}
	for _, in := range []string{"queues=0", "threaded=2", "rx_rign=5", "rx_ring=x", "governor=loud"} {
		name, v, _ := strings.Cut(in, "=")
		var usage *compare.UsageError
		if _, err := Parse(name, v); !errors.As(err, &usage) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", in, err)
		}
	}
}

func FuzzMask(f *testing.F) {
	for _, s := range []string{"0", "f", "00000001,80000000", "1,00000000,00000000", "", ",", "g"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		cpus, err := parseMask(s)
		if err != nil {
			return
		}
		again, err := parseMask(formatMask(cpus))
		if err != nil || !slices.Equal(cpus, again) {
			t.Fatalf("%q: %v, then %v, %v", s, cpus, again, err)
		}
		list, err := compare.ParseCPUList(compare.FormatCPUs(cpus))
		if max := len(cpus); err != nil && max > 0 && cpus[max-1] < 8192 || err == nil && !slices.Equal(list, cpus) && len(list)+len(cpus) > 0 {
			t.Fatalf("%v: as a list %v, %v", cpus, list, err)
		}
	})
}

func FuzzParseJournal(f *testing.F) {
	f.Add([]byte(`{"schema":"twopath-knobs/1","kind":"tune","settings":[{"knob":"dev_weight","before":"64","want":"512"}]}`))
	f.Add([]byte(`{"schema":"twopath-knobs/1","kind":"trial","port":"../x","settings":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		j, err := parseJournal(b)
		if err != nil {
			return
		}
		if strings.Contains(j.Port, "/") || j.Kind != Tune && j.Kind != Trial {
			t.Errorf("kind %q, port %q", j.Kind, j.Port)
		}
		for _, s := range j.Settings {
			if table()[s.Knob] == nil {
				t.Errorf("knob %q", s.Knob)
			}
		}
	})
}
