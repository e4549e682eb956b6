// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"twopath/compare"
	"twopath/internal/process"
)

// Options says where and for whom to set knobs.
type Options struct {
	Kind Kind
	Port string // a device of the calling thread's network namespace; "" when only the machine's knobs are set
	Dir  string // of the journal; "" means StateDir
	Root string // prefix of paths, for tests
}

// Want is a knob and the value it is to have, canonical.
type Want struct{ Knob, Value string }

// ErrTuned is the error of a second Tune change.
var ErrTuned = errors.New("tuned already")

// Busy is the error of a change that a live process has made and will undo.
type Busy struct{ PID int }

func (e *Busy) Error() string {
	return fmt.Sprintf("process %d has host knobs set for its trials; wait until it ends", e.PID)
}

// Refused is the error of a knob that could not be set. What had been set by then is as it was before.
type Refused struct {
	Knob, Value string
	Err         error
}

func (e *Refused) Error() string {
	return fmt.Sprintf("set %s to %s: %s", e.Knob, e.Value, strings.TrimPrefix(e.Err.Error(), e.Knob+": "))
}

// Unwrap returns the cause.
func (e *Refused) Unwrap() error { return e.Err }

// Apply sets knobs, and returns the journal to undo them by; when all are as wanted already, it is nil. What is as wanted, and
// is moved by another knob's change, is set as well. The journal is on disk before the first change. When a knob cannot be set, all are put back, and the error
// is a *Refused. Queues are set first, since other settings are per queue.
func Apply(o Options, wants []Want) (_ *Journal, err error) {
	if o.Dir == "" {
		o.Dir = StateDir
	}
	unlock, err := lock(o.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := o.free(); err != nil {
		return nil, err
	}
	j := &Journal{Schema: journalSchema, Kind: o.Kind, Made: time.Now(), Port: o.Port, dir: o.Dir, root: o.Root}
	if j.Owner, err = process.This(); err != nil {
		return nil, err
	}
	if err := j.plan(wants); err != nil || len(j.Settings) == 0 {
		return nil, err
	}
	if err := j.identify(); err != nil {
		return nil, err
	}
	if err := j.write(); err != nil {
		return nil, err
	}
	if err := j.set(); err != nil {
		_, undo := j.undo()
		if undo != nil {
			undo = fmt.Errorf("put back what had been set: %w", undo)
		}
		return nil, errors.Join(err, undo)
	}
	return j, j.write()
}

// free sees that there is no change of this kind yet. One whose process has died is undone, one from before a boot
// forgotten.
func (o Options) free() error {
	old, err := Load(o.Dir, o.Kind)
	if err != nil || old == nil {
		return err
	}
	old.root = o.Root
	switch {
	case old.Rebooted():
		return old.remove()
	case o.Kind == Tune:
		return fmt.Errorf("%w, %s ago (journal %s)", ErrTuned, time.Since(old.Made).Round(time.Second), old.Path())
	case old.Owner.Alive() && old.Owner.PID != os.Getpid():
		return &Busy{old.Owner.PID}
	}
	_, err = old.undo()
	return err
}

// plan notes what is to change, and, of a port, all else that the change may move.
func (j *Journal) plan(wants []Want) error {
	at := j.at()
	wants = slices.Clone(wants)
	slices.SortStableFunc(wants, func(a, b Want) int { return slices.Index(Names(), a.Knob) - slices.Index(Names(), b.Knob) })
	if i := slices.IndexFunc(wants, func(w Want) bool { return w.Knob == "queues" }); i > 0 {
		q := wants[i]
		wants = slices.Insert(slices.Delete(wants, i, i+1), 0, q)
	}
	change, port := false, false
	for _, w := range wants {
		r, err := Read(w.Knob, at)
		if err != nil {
			return &Refused{w.Knob, w.Value, err}
		}
		if r.Value != w.Value {
			if r.Fixed != "" {
				return &Refused{w.Knob, w.Value, &Unsupported{Knob: w.Knob, Why: r.Fixed}}
			}
			change, port = true, port || scopeOf(w.Knob) == compare.Port
		}
		j.Settings = append(j.Settings, Setting{Knob: w.Knob, Before: r.Value, Want: w.Value})
	}
	if !change {
		j.Settings = nil
	}
	if !port {
		return nil
	}
	for _, name := range Names() {
		if scopeOf(name) != compare.Port || slices.ContainsFunc(j.Settings, func(s Setting) bool { return s.Knob == name }) {
			continue
		}
		if r, err := Read(name, at); err == nil && r.Fixed == "" {
			j.Settings = append(j.Settings, Setting{Knob: name, Before: r.Value})
		}
	}
	return nil
}

func (j *Journal) at() At { return At{Port: j.Port, Root: j.root} }

// set makes the changes, twice where a later one has moved an earlier one, and notes what came of each.
func (j *Journal) set() error {
	at := j.at()
	for i := range j.Settings {
		s := &j.Settings[i]
		if s.Want == "" || s.Want == s.Before {
			continue
		}
		if err := write(s.Knob, s.Want, at); err != nil {
			return &Refused{s.Knob, s.Want, err}
		}
	}
	for i := range j.Settings {
		s := &j.Settings[i]
		r, err := Read(s.Knob, at)
		if err == nil && s.Want != "" && r.Value != s.Want && (r.Value == s.Before || s.Want == s.Before) {
			if err = write(s.Knob, s.Want, at); err == nil {
				r, err = Read(s.Knob, at)
			}
		}
		switch {
		case err != nil && s.Want != "":
			return &Refused{s.Knob, s.Want, err}
		case err != nil: // it went with another one's change, and comes back with it
			continue
		case s.Want != "" && s.Want != s.Before && r.Value == s.Before:
			return &Refused{s.Knob, s.Want, fmt.Errorf("the setting was taken, and is %q as before", r.Value)}
		}
		s.After = r.Value
	}
	j.Settings = slices.DeleteFunc(j.Settings, func(s Setting) bool {
		return s.After == s.Before && (s.Want == "" || s.Want == s.Before) || s.Want == "" && s.After == ""
	})
	j.Settled = true
	return nil
}

// Undone is what became of a setting.
type Undone struct {
	Setting
	Left string // why it was left alone; "" when it is as it was before
}

// Undo puts back what a change of a kind in dir ("" means StateDir) has set. A knob that somebody else has set since is
// left as they set it, and one whose port is gone is left out. Nothing to undo is no error, and neither is a journal from
// before the machine was started: then rebooted is true, and the journal is removed. After an error the journal stays.
func Undo(dir string, kind Kind) (undone []Undone, rebooted bool, err error) {
	return undoIn(dir, kind, "", func(*Journal) bool { return true })
}

// Recover undoes what trials of processes that died have left set. It returns the process that left it.
func Recover(dir string) (undone []Undone, pid int, err error) {
	undone, _, err = undoIn(dir, Trial, "", func(j *Journal) bool {
		pid = j.Owner.PID
		return !j.Owner.Alive()
	})
	return undone, pid, err
}

func undoIn(dir string, kind Kind, root string, which func(*Journal) bool) (undone []Undone, rebooted bool, err error) {
	if dir == "" {
		dir = StateDir
	}
	// Without a journal nothing is locked, so that nobody needs privileges to find nothing.
	if j, err := Load(dir, kind); err != nil || j == nil {
		return nil, false, err
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, false, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	j, err := Load(dir, kind)
	if err != nil || j == nil || !which(j) {
		return nil, false, err
	}
	j.root = root
	if j.Rebooted() {
		return nil, true, j.remove()
	}
	undone, err = j.undo()
	return undone, false, err
}

// Undo puts back what the change has set, as the function Undo does.
func (j *Journal) Undo() (undone []Undone, err error) {
	if j == nil {
		return nil, nil
	}
	unlock, err := lock(j.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return j.undo()
}

// undo is Undo under the lock.
func (j *Journal) undo() ([]Undone, error) {
	order := slices.Clone(j.Settings)
	slices.Reverse(order) // queues last: until then, what is per queue is as it was after the change
	out := make([]Undone, len(order))
	var machine, port []int
	for i, s := range order {
		out[i].Setting = s
		if scopeOf(s.Knob) == compare.Port {
			port = append(port, i)
		} else {
			machine = append(machine, i)
		}
	}
	err := j.back(out, machine)
	if len(port) > 0 {
		portErr := j.inPort(func() error { return j.back(out, port) })
		if errors.Is(portErr, errGone) {
			for _, i := range port {
				out[i].Left = errGone.Error()
			}
			portErr = nil
		}
		err = errors.Join(err, portErr)
	}
	if !j.Settled { // what the change never moved is nobody's business
		out = slices.DeleteFunc(out, func(u Undone) bool { return (u.Want == "" || u.Want == u.Before) && u.Left == "" && u.After == "" })
	}
	if err != nil {
		return out, err
	}
	return out, j.remove()
}

// back sets those of the settings back that differ from before. A second round catches what the first has moved.
func (j *Journal) back(out []Undone, which []int) error {
	at := j.at()
	done := map[int]bool{}
	for _, i := range which {
		s := &out[i]
		now, err := Read(s.Knob, at)
		switch {
		case err != nil:
			s.Left = err.Error()
		case now.Value == s.Before:
			done[i] = true
		case j.Settled && now.Value != s.After:
			s.Left = fmt.Sprintf("somebody has set it to %q since", now.Value)
		default:
			done[i] = true
			s.After = now.Value
			_ = write(s.Knob, s.Before, at) // tried again below, and then told
		}
	}
	var errs []error
	for _, i := range which {
		if !done[i] {
			continue
		}
		s := out[i]
		now, err := Read(s.Knob, at)
		if err == nil && now.Value != s.Before {
			if err = write(s.Knob, s.Before, at); err == nil {
				now, err = Read(s.Knob, at)
			}
		}
		if err == nil && now.Value != s.Before {
			err = fmt.Errorf("is %q after it was set back to %q", now.Value, s.Before)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("undo %s: %w", s.Knob, err))
		}
	}
	return errors.Join(errs...)
}
