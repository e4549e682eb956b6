// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Leftover is a journal somebody wrote and has not undone.
type Leftover struct {
	Journal    string   // path
	Kind       string   // "pair", "remote" or "up"
	PID        int      // of the owner
	Alive      bool     // the owner still runs: not a leftover but in use
	Persistent bool     // made by rig up, to stay until rig down
	Namespaces []string // names in /run/netns
	Devices    []string // names of devices that were taken
}

// Stale says whether Recover would undo it.
func (l Leftover) Stale() bool { return !l.Alive && !l.Persistent }

// Leftovers lists what journals in dir ("" means StateDir) describe, changing nothing. Anybody may ask.
func Leftovers(dir string) ([]Leftover, error) {
	if dir == "" {
		dir = StateDir
	}
	js, err := journals(dir)
	var out []Leftover
	for _, j := range js {
		out = append(out, j.leftover())
	}
	return out, err
}

func (j *journal) leftover() Leftover {
	l := Leftover{Journal: j.path, Kind: j.Kind, PID: j.Owner.PID, Alive: j.Owner.Alive(), Persistent: j.Persistent, Namespaces: j.Namespaces}
	for _, d := range j.Devices {
		l.Devices = append(l.Devices, d.Name)
	}
	return l
}

// Recover undoes what dead owners left according to the journals in dir ("" means StateDir): devices go home with their
// addresses and state, namespaces and journals go. It returns what it undid. What live owners use, and what rig up made,
// stays. It may be called at any time, by any number of processes.
func Recover(dir string) (_ []Leftover, err error) {
	if dir == "" {
		dir = StateDir
	}
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	unlock, err := lock(dir)
	if err != nil {
		return nil, privilege(err)
	}
	defer func() { err = errors.Join(err, unlock()) }()
	return recoverLocked(dir)
}

// lockRecovered takes the lock to set something up, after what dead owners left has been undone.
func lockRecovered(dir string) (unlock func() error, err error) {
	if unlock, err = lock(dir); err != nil {
		return nil, privilege(err)
	}
	if _, err := recoverLocked(dir); err != nil {
		return nil, errors.Join(err, unlock())
	}
	return unlock, nil
}

func recoverLocked(dir string) ([]Leftover, error) {
	js, err := journals(dir)
	errs := []error{err}
	var out []Leftover
	for _, j := range js {
		l := j.leftover()
		if !l.Stale() {
			continue
		}
		if err := j.undo(); err != nil {
			errs = append(errs, fmt.Errorf("recover what process %d left: %w", l.PID, err))
			continue
		}
		out = append(out, l)
	}
	// Half-written files of processes that died writing: under the lock, nobody writes now.
	half, _ := filepath.Glob(filepath.Join(dir, ".journal-*"))
	for _, h := range half {
		errs = append(errs, os.Remove(h))
	}
	return out, errors.Join(errs...)
}

// Stray is something of ours that no journal and no live controller accounts for.
type Stray struct {
	What string // "process 123 (twopath agent)" or "namespace twopath-sut"
	Cure string // what to type
}

// Strays lists agents whose controller has gone, and our namespaces without a journal in dir ("" means StateDir).
func Strays(dir string) ([]Stray, error) {
	left, err := Leftovers(dir)
	known := map[string]bool{}
	for _, l := range left {
		for _, n := range l.Namespaces {
			known[n] = true
		}
	}
	var out []Stray
	for _, n := range namedNamespaces() {
		if (n == SUTNamespace || n == PeerNamespace) && !known[n] {
			out = append(out, Stray{"namespace " + n, "look what is in it (ip -n " + n + " link), then: ip netns del " + n})
		}
	}
	return append(out, orphans()...), err
}

// orphans lists processes "twopath agent" that were handed to the first process because their parent died.
func orphans() []Stray {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []Stray
	for _, d := range dirs {
		cmdline, err := os.ReadFile("/proc/" + d.Name() + "/cmdline")
		args := strings.Split(string(cmdline), "\x00")
		if err != nil || len(args) < 2 || filepath.Base(args[0]) != "twopath" || args[1] != "agent" {
			continue
		}
		status, err := os.ReadFile("/proc/" + d.Name() + "/status")
		if err == nil && strings.Contains(string(status), "\nPPid:\t1\n") {
			out = append(out, Stray{"process " + d.Name() + " (twopath agent) without a controller", "kill " + d.Name()})
		}
	}
	return out
}
