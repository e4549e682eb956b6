// SPDX-License-Identifier: Apache-2.0

package measure

import "slices"

// firstWhole is the row from which on witnesses count datagrams: reassembly's own first. Those before it, in path order,
// count what came by: fragments, when there are any.
func firstWhole(specs []rowSpec) int {
	return slices.IndexFunc(specs, func(s rowSpec) bool { return s.doc.ID == "fragments.missing" })
}

// reassembly is what the receiver's reassembly counted, the kernel's or this program's.
type reassembly struct {
	got     uint64 // fragments
	timeout uint64 // datagrams
	overlap uint64 // datagrams
	memory  uint64 // datagrams or fragments
	invalid uint64 // datagrams or fragments
	known   bool

	timeoutBy, overlapBy, memoryBy, invalidBy string // witnesses
}

func (in *Input) reassembly() (r reassembly) {
	if in.Fragments == nil {
		return r
	}
	if in.Arm == ArmXDP {
		m := in.To
		r.got, r.known = m["fragments.received"], true
		r.timeout, r.overlap = m["fragments.timeout"], m["fragments.overlap"]
		r.memory = addCapped(m["fragments.evicted"], m["fragments.id_reuse"])
		r.invalid, _ = sum(m, "fragments.inconsistent", "fragments.too_big", "fragments.bad_header")
		w := in.ToName + " reassembly "
		r.timeoutBy, r.overlapBy, r.memoryBy, r.invalidBy = w+"timeout", w+"overlap", w+"evicted + id_reuse", w+"inconsistent + too_big + bad_header"
		return r
	}
	r.got, r.known = sum(in.To, "ip.ReasmReqds", "ip6.ReasmReqds")
	fails, _ := sum(in.To, "ip.ReasmFails", "ip6.ReasmFails")
	r.timeout, _ = sum(in.To, "ip.ReasmTimeout", "ip6.ReasmTimeout")
	r.overlap, _ = sum(in.To, "ipext.ReasmOverlaps")
	rest := subtract(fails, addCapped(r.timeout, r.overlap))
	r.timeoutBy, r.overlapBy, r.memoryBy = in.ToName+" Ip ReasmTimeout", in.ToName+" IpExt ReasmOverlaps", in.ToName+" Ip ReasmFails - ReasmTimeout - ReasmOverlaps"
	if n := in.To["ip6.ReasmFails"]; n > 0 { // Linux does not show IPv6's overlaps: the sender knows how many there must be
		v6 := min(rest, in.Fragments.Overlapping)
		r.overlap, rest = r.overlap+v6, rest-v6
		r.timeoutBy, r.overlapBy, r.memoryBy = in.ToName+" Ip6 ReasmTimeout", in.ToName+" Ip6 ReasmFails - ReasmTimeout, as many as were sent so", in.ToName+" Ip6 ReasmFails - ReasmTimeout, beyond the overlapping sent"
	}
	r.memory = rest
	return r
}

// missing is how many of the timeouts are of datagrams that were sent incomplete.
func (r reassembly) missing(in *Input) uint64 {
	if in.Fragments == nil {
		return 0
	}
	return min(r.timeout, in.Fragments.Missing)
}

func claimMissing(in *Input) claim {
	r := in.reassembly()
	return claim{packets: r.missing(in), known: r.known || in.Fragments == nil, trust: shared, witness: r.timeoutBy + ", as many as were sent so"}
}

func claimOverlap(in *Input) claim {
	r := in.reassembly()
	return claim{packets: r.overlap, known: r.known || in.Fragments == nil, trust: shared, witness: r.overlapBy}
}

func claimReassemblyMemory(in *Input) claim {
	r := in.reassembly()
	return claim{packets: r.memory, known: r.known || in.Fragments == nil, trust: pieces, witness: r.memoryBy}
}

func claimReassemblyInvalid(in *Input) claim {
	r := in.reassembly()
	return claim{packets: r.invalid, known: r.known || in.Fragments == nil, trust: pieces, witness: r.invalidBy}
}

func claimReassemblyTimeout(in *Input) claim {
	r := in.reassembly()
	return claim{packets: r.timeout - r.missing(in), known: r.known || in.Fragments == nil, trust: pieces, witness: r.timeoutBy}
}

// lostFragments is how many frames the witnesses before reassembly count as lost.
func (in *Input) lostFragments() (n uint64) {
	specs := ledgerRows()
	for _, s := range specs[:firstWhole(specs)] {
		if s.arms&in.Arm != 0 && s.senders&in.Sender != 0 {
			if c := s.claim(in); c.known && c.trust == own {
				n = addCapped(n, c.packets)
			}
		}
	}
	return n
}
