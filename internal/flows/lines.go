// SPDX-License-Identifier: Apache-2.0

package flows

import "bytes"

// lineLen is how much of a request line is kept; longer ones are told apart by that much.
const lineLen = 120

// lineTable counts different request lines, a bounded number of them.
type lineTable struct {
	entries []line
	mask    uint64
	limit   int
	used    int
	other   uint64 // of lines that found the table full
}

type line struct {
	n    uint64
	len  int
	text [lineLen]byte
}

func newLineTable(limit int) lineTable {
	size := 1
	for size < 2*limit {
		size *= 2
	}
	return lineTable{entries: make([]line, size), mask: uint64(size - 1), limit: limit}
}

func (t *lineTable) count(b []byte) {
	b = b[:min(len(b), lineLen)]
	h := uint64(mixA)
	for _, c := range b {
		h = (h ^ uint64(c)) * mixB
	}
	for i := h ^ h>>32; ; i++ {
		e := &t.entries[i&t.mask]
		if e.n == 0 {
			if t.used == t.limit {
				t.other++
				return
			}
			t.used++
			e.len = copy(e.text[:], b)
		} else if !bytes.Equal(e.text[:e.len], b) {
			continue
		}
		e.n++
		return
	}
}

func (t *lineTable) counts() map[string]uint64 {
	m := make(map[string]uint64, t.used)
	for i := range t.entries {
		if e := &t.entries[i]; e.n > 0 {
			m[string(e.text[:e.len])] = e.n
		}
	}
	if t.other > 0 {
		m[""] = t.other
	}
	return m
}
