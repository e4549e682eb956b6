// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"maps"

	"twopath/compare"
	"twopath/internal/agent"
)

// reassemble makes an opened arm fit for datagrams in fragments: an xdp arm gets an assembler for each worker, a kernel arm
// the kernel's limits. Both end up with the same bounds, which are in the record.
func (s *set) reassemble(p agent.Prepare) error {
	other := map[string]string{}
	if before, ok := s.effective["other"].(map[string]string); ok {
		maps.Copy(other, before)
	}
	s.effective["other"] = other
	if p.Engine == compare.XDP {
		for range s.workers {
			a, o, err := newAssembler(p)
			if err != nil {
				return err
			}
			s.assemblers = append(s.assemblers, a)
			other["reassembly_timeout"] = o.Timeout.String()
			other["reassembly_memory"] = fmt.Sprint(o.Bytes)
			other["reassembly_distance"] = fmt.Sprint(o.Distance)
		}
		s.idle = func() (map[string]uint64, error) {
			c := map[string]uint64{}
			for _, a := range s.assemblers {
				a.counters(c)
			}
			return c, nil
		}
		return nil
	}
	limits, undo, err := limitFragments(p.Fragments, !p.Flow.Dst.Is4())
	s.undo = append(s.undo, undo)
	if err != nil {
		return fmt.Errorf("%s:%s: %w", p.Engine, p.Variant, err)
	}
	maps.Copy(other, limits)
	if !p.Fragments.Own {
		s.notes = append(s.notes, "the kernel's limits of reassembly are this host's and were not changed")
	}
	s.idle = func() (map[string]uint64, error) {
		n, err := pendingFragments()
		return map[string]uint64{agent.PendingFragments: n}, err
	}
	return nil
}
