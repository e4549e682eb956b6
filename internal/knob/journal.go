// SPDX-License-Identifier: Apache-2.0

package knob

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/namespace"
	"twopath/internal/process"
)

// StateDir is where journals are kept unless options say otherwise. Most machines empty it when they boot, as the settings
// are; a journal that a boot has left there is known by its boot id.
const StateDir = "/run/twopath"

// Kind says whose a change is: there is at most one of each.
type Kind string

const (
	Tune  Kind = "tune"  // made to stay until it is undone
	Trial Kind = "trial" // goes with the process that made it
)

const journalSchema = "twopath-knobs/1"

// Setting is a knob as it is to be, and as it was.
type Setting struct {
	Knob   string `json:"knob"`
	Before string `json:"before"`
	Want   string `json:"want"`            // "" for a knob that another one's change moved
	After  string `json:"after,omitempty"` // as read back
}

// Rounded says that the driver made something else of what was wanted.
func (s Setting) Rounded() bool { return s.Want != "" && s.After != "" && s.After != s.Want }

// Journal is a change: what it set, and what was there before. It is on disk before anything is changed.
type Journal struct {
	Schema    string        `json:"schema"`
	Kind      Kind          `json:"kind"`
	Made      time.Time     `json:"made"`
	Owner     process.Owner `json:"owner"`
	Port      string        `json:"port,omitempty"`
	MAC       string        `json:"mac,omitempty"`       // of the port
	Namespace *namespace.ID `json:"namespace,omitempty"` // that the port is in
	Settled   bool          `json:"settled"`             // all is set, and After says how
	Settings  []Setting     `json:"settings"`

	dir, root string
}

// Rebooted says that the machine was started again since: the settings are gone with the kernel that had them.
func (j *Journal) Rebooted() bool {
	boot, err := process.BootID()
	return err == nil && boot != j.Owner.Boot
}

// Path is the journal's file.
func (j *Journal) Path() string { return filepath.Join(j.dir, string(j.Kind)+".json") }

// write replaces the file as a whole, and returns when it is on disk.
func (j *Journal) write() error {
	b, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return fmt.Errorf("encode journal: %w", err)
	}
	f, err := os.CreateTemp(j.dir, halfWritten)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), j.Path())
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", errors.Join(err, os.Remove(f.Name())))
	}
	d, err := os.Open(j.dir)
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	if err := errors.Join(d.Sync(), d.Close()); err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	return nil
}

// remove deletes the file.
func (j *Journal) remove() error {
	if err := os.Remove(j.Path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove journal: %w", err)
	}
	return nil
}

// Load reads the journal of a kind in dir ("" means StateDir); nil when there is none. Anybody may ask.
func Load(dir string, kind Kind) (*Journal, error) {
	if dir == "" {
		dir = StateDir
	}
	j := &Journal{dir: dir, Kind: kind}
	b, err := os.ReadFile(j.Path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		j, err = parseJournal(b)
	}
	if err == nil && j.Kind != kind {
		err = fmt.Errorf("it is of kind %q", j.Kind)
	}
	if err != nil {
		return nil, fmt.Errorf("journal %s: %w", filepath.Join(dir, string(kind)+".json"), err)
	}
	j.dir = dir
	return j, nil
}

// parseJournal reads a journal's text, and only what this version can have written.
func parseJournal(b []byte) (*Journal, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	j := new(Journal)
	if err := d.Decode(j); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if j.Schema != journalSchema {
		return nil, fmt.Errorf("parse: schema %q, want %q", j.Schema, journalSchema)
	}
	if j.Kind != Tune && j.Kind != Trial {
		return nil, fmt.Errorf("parse: kind %q", j.Kind)
	}
	if len(j.Port) >= unix.IFNAMSIZ || strings.ContainsAny(j.Port, "/\x00 ") || j.Port == "." || j.Port == ".." {
		return nil, fmt.Errorf("parse: port %q", j.Port)
	}
	for _, s := range j.Settings {
		if !slices.Contains(Names(), s.Knob) {
			return nil, fmt.Errorf("parse: no knob is called %q", s.Knob)
		}
		for _, v := range []string{s.Before, s.Want, s.After} {
			if strings.ContainsAny(v, "\n\x00") {
				return nil, fmt.Errorf("parse: value %q of %s", v, s.Knob)
			}
		}
	}
	return j, nil
}

// identify notes which device the port is.
func (j *Journal) identify() error {
	if j.Port == "" || j.root != "" {
		return nil
	}
	l, err := netlink.LinkByName(j.Port)
	if err != nil {
		return fmt.Errorf("find device %s: %w", j.Port, err)
	}
	j.Port, j.MAC = l.Attrs().Name, l.Attrs().HardwareAddr.String()
	ns, err := namespace.Current()
	if err != nil {
		return err
	}
	defer ns.Close()
	id, err := namespace.Identify(ns)
	j.Namespace = &id
	return err
}

// errGone is the error of a port that is not there any more.
var errGone = errors.New("the port is gone, and its settings with it")

// inPort runs fn where the port is: in the namespace it was in, or, if it has been moved home since, in the caller's.
func (j *Journal) inPort(fn func() error) error {
	if j.Port == "" || j.root != "" {
		return fn()
	}
	same := func() error {
		l, err := netlink.LinkByName(j.Port)
		if errors.As(err, new(netlink.LinkNotFoundError)) {
			return errGone
		}
		if err != nil {
			return fmt.Errorf("find device %s: %w", j.Port, err)
		}
		if mac, err := net.ParseMAC(j.MAC); err != nil || !slices.Equal(mac, l.Attrs().HardwareAddr) {
			return errGone // another device of this name
		}
		return fn()
	}
	if j.Namespace != nil {
		if ns, err := namespace.Find(*j.Namespace); err == nil {
			err = namespace.In(ns, same)
			ns.Close()
			if !errors.Is(err, errGone) {
				return err
			}
		}
	}
	return same()
}
