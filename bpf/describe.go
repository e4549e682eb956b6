// SPDX-License-Identifier: Apache-2.0

package bpf

import "fmt"

// Description is what there is to say of somebody's loaded program.
type Description struct {
	ProgID    uint32
	Name, Tag string  // as bpftool shows them; empty when not readable
	Owner     []Owner // processes that hold the program or its link; none when it was attached without a link and left
}

// Describe looks a program up by its id.
func Describe(progID uint32) Description {
	d := Description{ProgID: progID, Owner: owners(progID)}
	d.Name, d.Tag = programName(progID)
	return d
}

// String names the program and its owners.
func (d Description) String() string {
	s := fmt.Sprintf("program id %d, name %q, tag %s", d.ProgID, d.Name, d.Tag)
	for _, o := range d.Owner {
		s += fmt.Sprintf(", held by %s (pid %d)", o.Comm, o.PID)
	}
	if len(d.Owner) == 0 {
		s += ", held by no process (attached without a link)"
	}
	return s
}
