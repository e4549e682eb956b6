// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"twopath/compare"
)

// At says where a knob is.
type At struct {
	Port string // a device of the calling thread's network namespace; "" has the machine's knobs only
	Root string // prefix of paths, for tests
}

// Reading is what a knob is set to.
type Reading struct {
	Value string // canonical; of a knob with a value per queue, CPU or interrupt one if all are alike, else all, with spaces
	Fixed string // why it cannot be set here; "" when it can
	Most  uint64 // the most the driver takes, when it says

	Places int // how many values it has: of queues, CPUs or interrupts
}

// Unsupported is the error of a knob that is not there: the driver or the kernel lacks it.
type Unsupported struct {
	Knob string
	Why  string
	Err  error // the kernel's own word, or nil
}

func (e *Unsupported) Error() string { return e.Knob + ": " + e.Why }

// Unwrap returns the kernel's error.
func (e *Unsupported) Unwrap() error { return e.Err }

// place is one value of a knob.
type place struct {
	read  func() (Reading, error)
	write func(string) error
}

// places finds the values of a knob; none is an error.
func places(name string, at At) ([]place, error) {
	find, ok := table()[name]
	if !ok {
		return nil, fmt.Errorf("no knob is called %q", name)
	}
	if scopeOf(name) == compare.Port && at.Port == "" {
		return nil, &Unsupported{Knob: name, Why: "is a port's, and none is named"}
	}
	return find(at)
}

// Names lists all knobs, those of the machine first.
func Names() []string {
	out := compare.KnobNames()
	return append(slices.Insert(out, slices.Index(out, "rx_ring"), "queues"), "threaded")
}

// scopeOf is compare.Machine or compare.Port.
func scopeOf(name string) string {
	for _, k := range compare.Knobs() {
		if k.Name == name {
			return k.Scope
		}
	}
	return compare.Port
}

// Scope is compare.Machine or compare.Port.
func Scope(name string) string { return scopeOf(name) }

// Parse gives the canonical value of a knob, or a *compare.UsageError.
func Parse(name, value string) (string, error) {
	switch name {
	case "queues":
		return compare.ArmOption{Name: name, Scope: compare.Port, Kind: compare.Number, Min: 1, Max: 1024}.Parse(value)
	case "threaded":
		return compare.ArmOption{Name: name, Scope: compare.Port, Kind: compare.Choice, Values: []string{"on", "off", "busy"}}.Parse(value)
	}
	if !slices.Contains(Names(), name) {
		return "", compare.Unknown("knob", name, "no such knob", Names())
	}
	return compare.ParseKnob(name, value)
}

// Read tells what a knob is set to. The error is an *Unsupported when there is no such thing here.
func Read(name string, at At) (Reading, error) {
	list, err := places(name, at)
	if err != nil {
		return Reading{}, err
	}
	out := Reading{Places: len(list)}
	var values []string
	for _, p := range list {
		r, err := p.read()
		if err != nil {
			return Reading{}, missing(name, at, err)
		}
		values = append(values, r.Value)
		out.Fixed, out.Most = r.Fixed, r.Most
	}
	out.Value = strings.Join(values, " ")
	if len(slices.Compact(slices.Clone(values))) == 1 {
		out.Value = values[0]
	}
	return out, nil
}

// write sets a knob: a value for all of its places, or one for each.
func write(name, value string, at At) error {
	list, err := places(name, at)
	if err != nil {
		return err
	}
	values := strings.Split(value, " ")
	for i, p := range list {
		v := values[0]
		if len(values) > 1 {
			if i >= len(values) {
				break // a queue that was not there when the values were read
			}
			v = values[i]
		}
		if err := p.write(v); err != nil {
			return missing(name, at, err)
		}
	}
	return nil
}

// missing makes an Unsupported of the errors by which kernel and drivers say that they do not have something.
func missing(name string, at At, err error) error {
	var e *Unsupported
	if errors.As(err, &e) {
		e.Knob = name
		return err
	}
	if errors.Is(err, unix.EOPNOTSUPP) {
		return &Unsupported{Knob: name, Why: "not supported by driver " + driver(at.Port), Err: err}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return &Unsupported{Knob: name, Why: "this kernel does not have it", Err: err}
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%s: %w; run it as root (sudo)", name, err)
	}
	return fmt.Errorf("%s: %w", name, err)
}
