// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"twopath/internal/process"
)

// StateDir is where journals are kept unless options say otherwise. It is gone after a reboot, and so is all that a
// journal could undo.
const StateDir = "/run/twopath"

const journalSchema = "twopath-journal/1"

// journal is what has to be undone, written before it is done. One file per rig.
type journal struct {
	Schema     string   `json:"schema"`
	Kind       string   `json:"kind"` // of the rig, or "up"
	Owner      owner    `json:"owner"`
	Persistent bool     `json:"persistent"`           // made to outlive its owner (rig up)
	Namespaces []string `json:"namespaces,omitempty"` // made by us, in /run/netns
	Devices    []device `json:"devices,omitempty"`

	path string
}

// create writes a new journal file into dir, which is made if need be.
func (j *journal) create(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make journal directory: %w", err)
	}
	j.Schema = journalSchema
	j.path = filepath.Join(dir, fmt.Sprintf("journal-%d-%s.json", j.Owner.PID, name))
	if _, err := os.Stat(j.path); err == nil {
		return fmt.Errorf("write journal: %s: %w", j.path, fs.ErrExist)
	}
	return j.write()
}

// write replaces the file as a whole, and returns when it is on disk.
func (j *journal) write() error {
	b, err := json.MarshalIndent(j, "", " ")
	if err != nil {
		return fmt.Errorf("encode journal: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(j.path), ".journal-*")
	if err != nil {
		return fmt.Errorf("write journal: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), j.path)
	}
	if err != nil {
		return fmt.Errorf("write journal: %w", errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}

// remove deletes the file, and the directory when that was the last one.
func (j *journal) remove() error {
	if err := os.Remove(j.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove journal: %w", err)
	}
	return nil
}

// parseJournal reads a journal's text, of this version only: what another version left can not be undone by guessing.
func parseJournal(b []byte) (*journal, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	j := new(journal)
	if err := d.Decode(j); err != nil {
		return nil, fmt.Errorf("parse journal: %w", err)
	}
	if j.Schema != journalSchema {
		return nil, fmt.Errorf("parse journal: schema %q, want %q", j.Schema, journalSchema)
	}
	for _, n := range j.Namespaces {
		if !validNamespace(n) {
			return nil, fmt.Errorf("parse journal: namespace %q", n)
		}
	}
	for _, d := range j.Devices {
		if err := d.check(); err != nil {
			return nil, fmt.Errorf("parse journal: %w", err)
		}
	}
	return j, nil
}

// journals reads all journal files of a directory. Unreadable ones are reported and do not hide the others.
func journals(dir string) ([]*journal, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "journal-*.json"))
	if err != nil {
		return nil, fmt.Errorf("list journals: %w", err)
	}
	var out []*journal
	var errs []error
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if errors.Is(err, fs.ErrNotExist) {
			continue // its owner just finished
		}
		var j *journal
		if err == nil {
			j, err = parseJournal(b)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", p, err))
			continue
		}
		j.path = p
		out = append(out, j)
	}
	return out, errors.Join(errs...)
}

// lock serialises changes to what journals describe, between processes: held while setting up and while undoing, not in
// between.
func lock(dir string) (unlock func() error, err error) { return process.Lock(dir) }

// validNamespace guards paths made from a journal's text.
func validNamespace(n string) bool {
	return n != "" && n != "." && n != ".." && !strings.ContainsAny(n, "/\x00")
}
