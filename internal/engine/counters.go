// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"

	"twopath/internal/measure"
)

// withOwn reads the device and the namespace, and adds what an engine or a program counts itself.
func withOwn(r *measure.Reader, own map[string]uint64) (map[string]uint64, error) {
	s, err := r.Read()
	if err != nil {
		return nil, err
	}
	maps.Copy(s.Counters, own)
	return s.Counters, nil
}

// reasonCounters are a program's exits under the ledger's names.
func reasonCounters(reasons map[string]uint64) map[string]uint64 {
	c := make(map[string]uint64, len(reasons))
	for k, v := range reasons {
		c["redirect."+k] = v
	}
	return c
}
