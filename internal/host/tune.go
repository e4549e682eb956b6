// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
)

// StateDir is where the tuning journal is kept unless options say otherwise. It is gone after a reboot, and so is the
// tuning.
const StateDir = "/run/twopath"

// TuneOptions says what to tune.
type TuneOptions struct {
	IF       string // a device of this network namespace; "" means the machine only
	StateDir string // of the journal; "" means StateDir
	root     string // prefix of paths, for tests
}

// Setting is one thing that tuning changes, or would.
type Setting struct {
	ID   string `json:"id"`
	Now  string `json:"now"`  // as it is
	Want string `json:"want"` // as it should be for a measurement
	Why  string `json:"why"`
	Risk string `json:"risk"` // what it does to others on this machine; "" when nothing
	Knob knob   `json:"knob"`
}

// ErrTuned is what TuneApply returns when the machine is tuned already.
var ErrTuned = errors.New("tuned already: undo that first")

// TunePlan lists what would make measurements steadier and is not so yet. It changes nothing, and needs no privileges.
// What this machine does not have is not listed.
func TunePlan(o TuneOptions) ([]Setting, error) {
	var out []Setting
	add := func(id, want, why, risk string, k knob, better func(now, want string) bool) {
		if now, err := k.read(); err == nil && !better(now, want) {
			out = append(out, Setting{id, now, want, why, risk, k})
		}
	}
	file := func(path string) knob { return knob{Kind: kindFile, Target: o.root + path} }
	governors, err := filepath.Glob(o.root + "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor")
	if err != nil {
		return nil, fmt.Errorf("list CPUs: %w", err)
	}
	for _, g := range governors {
		cpu := filepath.Base(filepath.Dir(filepath.Dir(g)))
		add("governor."+cpu, "performance", "a CPU that changes its frequency makes arms differ by when they ran", "takes more power",
			knob{Kind: kindFile, Target: g}, equal)
	}
	add("sysctl.net.core.rmem_max", strconv.Itoa(bufferBytes), "lets programs without CAP_NET_ADMIN have the receive buffer kernel arms use",
		"other programs may ask for larger buffers, too", file("/proc/sys/net/core/rmem_max"), atLeast)
	add("sysctl.kernel.numa_balancing", "0", "moving pages between nodes stalls the program they belong to", "programs on other nodes may slow down",
		file("/proc/sys/kernel/numa_balancing"), equal)
	if o.IF == "" {
		return out, nil
	}
	d, err := Describe(o.IF)
	if err != nil {
		return nil, err
	}
	if c := d.routeCheck(); c.Status == Fail {
		return nil, fmt.Errorf("tune %s: %s; %s", d.Name, c.What, c.Cure)
	}
	for _, f := range []struct{ name, why string }{
		{"rx-lro", "merges packets before anybody counts them, and keeps XDP from attaching"},
		{"rx-gro-hw", "merges packets before anybody counts them"},
		{"rx-vlan-hw-parse", "takes the VLAN tag off for the kernel engine, while AF_XDP sees the frame with or without it, by driver"},
	} {
		add("feature."+f.name, "off", f.why, "bulk TCP through "+d.Name+" costs more", knob{kindFeature, d.Name, f.name}, equal)
	}
	if d.RxMax > d.RxRing {
		add("ring.rx", strconv.Itoa(d.RxMax), "a larger ring bridges longer stalls, for both engines alike", "the link may go down for a second or two",
			knob{Kind: kindRxRing, Target: d.Name}, equal)
	}
	return out, nil
}

func equal(now, want string) bool { return now == want }

// atLeast compares numbers; what is no number is left alone.
func atLeast(now, want string) bool {
	n, err1 := strconv.Atoi(now)
	w, err2 := strconv.Atoi(want)
	return err1 != nil || err2 != nil || n >= w
}

// TuneApply sets what TunePlan lists, and returns what it set. What was is in a journal on disk before anything is
// changed, so that TuneUndo works after a kill as well. When a setting can not be made, all are undone.
func TuneApply(o TuneOptions) ([]Setting, error) {
	plan, err := TunePlan(o)
	if err != nil || len(plan) == 0 {
		return nil, err
	}
	if err := writeTuned(o.StateDir, plan); err != nil {
		return nil, err
	}
	for _, s := range plan {
		if err := s.apply(s.Want); err != nil {
			_, undo := TuneUndo(o.StateDir)
			return nil, errors.Join(fmt.Errorf("tune %s: %w", s.ID, err), undo)
		}
	}
	return plan, nil
}

// apply sets a value and reads it back: some drivers round, some files ignore.
func (s Setting) apply(v string) error {
	if err := s.Knob.write(v); err != nil {
		return err
	}
	if now, err := s.Knob.read(); err != nil || now != v {
		return errors.Join(fmt.Errorf("is %q after it was set to %q", now, v), err)
	}
	return nil
}

// Undone is what became of a setting.
type Undone struct {
	Setting
	Left string // why it was left alone; "" when it was set back
}

// TuneUndo sets back what TuneApply set, last first. A setting that somebody else has changed since is left as they
// set it, and one whose device is gone is left out. dir "" means StateDir. Nothing to undo is no error.
func TuneUndo(dir string) ([]Undone, error) {
	plan, err := readTuned(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []Undone
	var errs []error
	for _, s := range slices.Backward(plan) {
		now, err := s.Knob.read()
		switch {
		case err != nil:
			out = append(out, Undone{s, err.Error()})
		case now == s.Now: // never applied, or set back by hand
			out = append(out, Undone{s, ""})
		case now != s.Want:
			out = append(out, Undone{s, fmt.Sprintf("somebody set it to %q since", now)})
		default:
			if err := s.apply(s.Now); err != nil {
				errs = append(errs, fmt.Errorf("undo %s: %w", s.ID, err))
				continue
			}
			out = append(out, Undone{s, ""})
		}
	}
	if err := errors.Join(errs...); err != nil {
		return out, err // the journal stays: undo can be tried again
	}
	return out, removeTuned(dir)
}
