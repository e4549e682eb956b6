// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"twopath/compare"
	"twopath/internal/knob"
	"twopath/internal/rig"
)

// wants are the host knobs of an arm.
func wants(a compare.ArmSpec) []knob.Want {
	var out []knob.Want
	for _, k := range a.Knobs() {
		out = append(out, knob.Want{Knob: k.Name, Value: k.Value})
	}
	return out
}

// setKnobs sets an arm's host knobs; RestoreKnobs puts back what was. Those of the port are set where the SUT's side is.
func (b *Bench) setKnobs(a compare.ArmSpec) error {
	list := wants(a)
	if len(list) == 0 {
		return nil
	}
	o := knob.Options{Kind: knob.Trial, Dir: b.StateDir}
	port := slices.ContainsFunc(a.Knobs(), func(k compare.KnobValue) bool { return k.Scope == compare.Port })
	if port {
		o.Port = b.Rig.SUT.Name
	}
	var j *knob.Journal
	err := b.Rig.SUT.Do(func() (err error) { j, err = knob.Apply(o, list); return err })
	if err != nil {
		return fmt.Errorf("%s: %w", a, err)
	}
	b.mu.Lock()
	b.knobs = j
	b.mu.Unlock()
	if port {
		return b.waitLink()
	}
	return nil
}

// RestoreKnobs puts back what the trial under way has set of the host's knobs. It may be called at any time.
func (b *Bench) RestoreKnobs() error {
	b.mu.Lock()
	j := b.knobs
	b.knobs = nil
	b.mu.Unlock()
	if j == nil {
		return nil
	}
	err := b.Rig.SUT.Do(func() error { _, err := j.Undo(); return err }) // the namespace may have no name to find it by
	if err != nil {
		return fmt.Errorf("put back host knobs: %w", err)
	}
	if j.Port != "" {
		return b.waitLink()
	}
	return nil
}

// carrierLimit is how long a port may take to come back after a setting that resets it, a ring's size for one.
const carrierLimit = 10 * time.Second

// waitLink waits for the link of real ports.
func (b *Bench) waitLink() error {
	if b.Rig.Kind == rig.Veth {
		return nil
	}
	for deadline := time.Now().Add(carrierLimit); ; time.Sleep(20 * time.Millisecond) {
		var errs []error
		for _, side := range b.Rig.Sides() {
			errs = append(errs, side.LinkUp())
		}
		if err := errors.Join(errs...); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}

// inForce reads knobs as they are now: those that some arm of the plan sets, and the port's deferral, which differs by how
// an arm waits. What is not there has no entry.
func (b *Bench) inForce() (map[string]string, error) {
	out := map[string]string{}
	err := b.Rig.SUT.Do(func() error {
		for _, name := range append([]string{"napi_defer_hard_irqs", "gro_flush_timeout"}, b.Watch...) {
			if r, err := knob.Read(name, knob.At{Port: b.Rig.SUT.Name}); err == nil {
				out[name] = r.Value
			}
		}
		return nil
	})
	return out, err
}

// changed says which knobs are not as they were, in words; "" when all are.
func changed(before, after map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if before[name] != after[name] {
			return fmt.Sprintf("%s went from %q to %q during the trial", name, before[name], after[name])
		}
	}
	return ""
}

// TryKnobs sets and puts back the host knobs of each arm, so that what a driver refuses is known before anything is
// measured, and has all trials record those knobs, of the arms that leave them alone too. The remarks are for the record:
// what a driver has rounded, and what makes no difference where the trials run; sends says that the SUT sends, too.
func (b *Bench) TryKnobs(arms []compare.ArmSpec, sends bool) (remarks []string, err error) {
	w := knob.Where{Threaded: b.CPUs.Placement != rig.Sender, Sends: sends}
	err = b.Rig.SUT.Do(func() error {
		w.Driver = knob.Driver(b.Rig.SUT.Name)
		r, err := knob.Read("rps_cpus", knob.At{Port: b.Rig.SUT.Name})
		w.RPS = err == nil && r.Value != "none"
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, a := range arms {
		for _, k := range a.Knobs() {
			if !slices.Contains(b.Watch, k.Name) {
				b.Watch = append(b.Watch, k.Name)
			}
			if k.Name == "offload_gro" && k.Value == "off" && w.Driver == "veth" {
				return nil, fmt.Errorf("%s: %w", a, &knob.Refused{Knob: k.Name, Value: k.Value,
					Err: errors.New("without GRO a veth end has no NAPI, and the generator's frames vanish")})
			}
			here := w
			here.RPS = w.RPS || a.Option("rps_cpus") != "" && a.Option("rps_cpus") != "none"
			if why := knob.Idle(k.Name, here); why != "" && !slices.Contains(remarks, why) {
				remarks = append(remarks, why)
			}
		}
		if err := b.setKnobs(a); err != nil {
			return nil, errors.Join(err, b.RestoreKnobs())
		}
		b.mu.Lock()
		j := b.knobs
		b.mu.Unlock()
		if j != nil {
			for _, s := range j.Settings {
				if s.Rounded() {
					remarks = append(remarks, fmt.Sprintf("%s: asked for %s=%s, and the driver made it %s", a, s.Knob, s.Want, s.After))
				}
			}
		}
		if err := b.RestoreKnobs(); err != nil {
			return nil, err
		}
	}
	return remarks, nil
}
