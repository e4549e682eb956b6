// SPDX-License-Identifier: Apache-2.0

// Package process names processes for good, so that what they left behind can be told from what they use.
package process

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Owner names a process for good: process ids are used again, and a journal may be read after a reboot.
type Owner struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start"` // clock ticks since boot, field 22 of /proc/PID/stat (proc_pid_stat(5))
	Boot  string `json:"boot"`  // /proc/sys/kernel/random/boot_id
}

// This names the calling process.
func This() (Owner, error) {
	o := Owner{PID: os.Getpid()}
	var err error
	if o.Start, err = StartTime(o.PID); err != nil {
		return Owner{}, err
	}
	o.Boot, err = BootID()
	return o, err
}

// Alive says whether the process still runs.
func (o Owner) Alive() bool {
	boot, err := BootID()
	if err != nil || boot != o.Boot {
		return false
	}
	start, err := StartTime(o.PID)
	return err == nil && start == o.Start
}

// BootID is different after each boot of the machine.
func BootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("read boot id: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}

// StartTime reads when a process was started. One that has ended and waits to be reaped is an error: it does nothing
// any more.
func StartTime(pid int) (uint64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read process: %w", err)
	}
	state, start, err := ParseStat(string(b))
	if err == nil && (state == "Z" || state == "X") {
		err = fmt.Errorf("process %d has ended", pid)
	}
	return start, err
}

// ParseStat takes state and start time from the text of /proc/PID/stat. The name, field 2, may hold spaces and
// parentheses, so fields are counted from its end.
func ParseStat(s string) (state string, start uint64, err error) {
	i := strings.LastIndexByte(s, ')')
	f := strings.Fields(s[i+1:])
	if i < 0 || len(f) < 20 {
		return "", 0, fmt.Errorf("parse process state: %q has no field 22", s)
	}
	start, err = strconv.ParseUint(f[19], 10, 64)
	if err != nil {
		return "", 0, fmt.Errorf("parse process start time: %w", err)
	}
	return f[0], start, nil
}
