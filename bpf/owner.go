// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Owner is a process that holds a BPF program or a link to it open.
type Owner struct {
	PID  int
	Comm string
}

// owners finds the holders of a program in /proc/PID/fdinfo, where both programs and links show prog_id. Best effort:
// processes may come and go, and those of other PID namespaces are not seen.
func owners(progID uint32) []Owner {
	files, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*") // the pattern is well-formed, which is the only error
	want := "prog_id:\t" + strconv.FormatUint(uint64(progID), 10)
	var out []Owner
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil || !hasLine(b, want) {
			continue
		}
		pid, err := strconv.Atoi(strings.Split(f, "/")[2])
		if err != nil || slices.ContainsFunc(out, func(o Owner) bool { return o.PID == pid }) {
			continue
		}
		comm, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		out = append(out, Owner{PID: pid, Comm: strings.TrimSpace(string(comm))})
	}
	return out
}

func hasLine(b []byte, want string) bool {
	for line := range bytes.Lines(b) {
		if string(bytes.TrimSpace(line)) == want {
			return true
		}
	}
	return false
}
