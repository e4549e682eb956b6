// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

const tuneSchema = "twopath-tune/1"

// tuned is the journal: what was set, and what it was before.
type tuned struct {
	Schema   string    `json:"schema"`
	Settings []Setting `json:"settings"`
}

func tunedPath(dir string) string {
	if dir == "" {
		dir = StateDir
	}
	return filepath.Join(dir, "tune.json")
}

// writeTuned makes the journal, whole or not at all, and refuses to write over one: what that says was before would
// be lost.
func writeTuned(dir string, plan []Setting) error {
	path := tunedPath(dir)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("make journal directory: %w", err)
	}
	b, err := json.MarshalIndent(tuned{tuneSchema, plan}, "", " ")
	if err != nil {
		return fmt.Errorf("encode tuning journal: %w", err)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".tune-*")
	if err != nil {
		return fmt.Errorf("write tuning journal: %w", err)
	}
	_, err = f.Write(append(b, '\n'))
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Link(f.Name(), path) // unlike a rename, fails when there is one
	}
	err = errors.Join(err, os.Remove(f.Name()))
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%w (journal %s)", ErrTuned, path)
	}
	if err != nil {
		return fmt.Errorf("write tuning journal: %w", err)
	}
	return nil
}

func readTuned(dir string) ([]Setting, error) {
	b, err := os.ReadFile(tunedPath(dir))
	if err != nil {
		return nil, fmt.Errorf("read tuning journal: %w", err)
	}
	return parseTuned(b)
}

// parseTuned reads a journal's text, and only what this version can have written.
func parseTuned(b []byte) ([]Setting, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	var t tuned
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("parse tuning journal: %w", err)
	}
	if t.Schema != tuneSchema {
		return nil, fmt.Errorf("parse tuning journal: schema %q, want %q", t.Schema, tuneSchema)
	}
	for _, s := range t.Settings {
		switch k := s.Knob; {
		case k.Kind == kindFile && filepath.IsAbs(k.Target) && filepath.Clean(k.Target) == k.Target:
		case (k.Kind == kindFeature || k.Kind == kindRxRing) && k.Target != "" && !strings.ContainsAny(k.Target, "/\x00"):
		default:
			return nil, fmt.Errorf("parse tuning journal: setting %q of kind %q of %q", s.ID, k.Kind, k.Target)
		}
	}
	return t.Settings, nil
}

// removeTuned deletes the journal, and the directory when that was the last file in it.
func removeTuned(dir string) error {
	path := tunedPath(dir)
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("remove tuning journal: %w", err)
	}
	_ = os.Remove(filepath.Dir(path)) // fails while other journals are there
	return nil
}
