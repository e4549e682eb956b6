// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"twopath/internal/agent"
)

// sysctl is a setting of the network namespace that the calling thread is in: /proc/sys/net shows that one.
type sysctl string

func (s sysctl) path() string { return "/proc/sys/net/" + string(s) }

func (s sysctl) read() (string, error) {
	b, err := os.ReadFile(s.path())
	if err != nil {
		return "", fmt.Errorf("read sysctl: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

func (s sysctl) write(v string) error {
	if err := os.WriteFile(s.path(), []byte(v), 0); err != nil {
		return fmt.Errorf("set sysctl to %s: %w", v, err)
	}
	return nil
}

// limitFragments sets what bounds the kernel's reassembly of an IP version, if the namespace is the run's own, and returns
// what is in force by the sysctls' names. undo puts everything back; it is never nil.
func limitFragments(f *agent.Fragments, v6 bool) (limits map[string]string, undo func() error, err error) {
	// The lower threshold has no effect since Linux 4.17, but must not exceed the upper one: it goes first, and out of the way.
	settings := []struct{ name, value string }{
		{"low_thresh", "0"}, {"high_thresh", strconv.Itoa(f.Memory)}, {"time", strconv.FormatInt(f.TimeoutNS/1e9, 10)}, {"max_dist", strconv.Itoa(f.Distance)},
	}
	prefix := sysctl("ipv4/ipfrag_")
	if v6 { // ids are 32 bits long there, and no distance is looked at
		prefix, settings = "ipv6/ip6frag_", settings[:3]
	}
	var undone []func() error
	undo = func() error {
		var errs []error
		for i := len(undone) - 1; i >= 0; i-- {
			errs = append(errs, undone[i]())
		}
		undone = nil
		return errors.Join(errs...)
	}
	limits = map[string]string{}
	for _, s := range settings {
		name := prefix + sysctl(s.name)
		old, err := name.read()
		if err != nil {
			return nil, undo, err
		}
		if f.Own {
			if err := name.write(s.value); err != nil {
				return nil, undo, err
			}
			undone = append(undone, func() error { return name.write(old) })
		}
		now, err := name.read()
		if err != nil {
			return nil, undo, err
		}
		if f.Own && now != s.value {
			return nil, undo, fmt.Errorf("sysctl net/%s: set to %s, but it reads %s", name, s.value, now)
		}
		if s.name != "low_thresh" {
			_, short, _ := strings.Cut(string(name), "/")
			limits[short] = now
		}
	}
	return limits, undo, nil
}

// pendingFragments is how many incomplete datagrams the kernel holds in this namespace, of both IP versions.
func pendingFragments() (n uint64, err error) {
	for _, file := range []string{"sockstat", "sockstat6"} {
		b, err := os.ReadFile("/proc/thread-self/net/" + file)
		if errors.Is(err, os.ErrNotExist) {
			continue // a kernel without IPv6
		}
		if err != nil {
			return 0, fmt.Errorf("read socket statistics: %w", err)
		}
		k, err := fragInuse(string(b))
		if err != nil {
			return 0, fmt.Errorf("parse %s: %w", file, err)
		}
		n += k
	}
	return n, nil
}

// fragInuse finds "FRAG: inuse 2 memory 9024", or FRAG6.
func fragInuse(text string) (uint64, error) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) >= 3 && (f[0] == "FRAG:" || f[0] == "FRAG6:") && f[1] == "inuse" {
			return strconv.ParseUint(f[2], 10, 64)
		}
	}
	return 0, errors.New("no line FRAG with inuse")
}
