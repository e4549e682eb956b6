// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"twopath/internal/agent"
	"twopath/internal/measure"
	"twopath/internal/netstack"
	"twopath/internal/packet"
)

// assembler puts datagrams together of the frames that an AF_XDP worker lends, and checks them as the kernel does.
type assembler struct {
	r      *netstack.Reassembler
	v      packet.Verifier
	into   []byte
	now    int64
	frames uint64
}

// newAssembler bounds reassembly as the kernel's is bounded. The number of datagrams is left to their memory, as there.
func newAssembler(p agent.Prepare) (*assembler, netstack.Options, error) {
	f := p.Fragments
	o := netstack.Options{Bytes: f.Memory, Datagrams: max(f.Memory/2048, 1), Timeout: f.Timeout(), Distance: f.Distance}
	r, err := netstack.New(o)
	if err != nil {
		return nil, o, err
	}
	return &assembler{r: r, into: make([]byte, netstack.MaxPayload),
		v: packet.Verifier{DstPort: p.Flow.DstPort, Checksum: p.Options["csum"] != "off"}}, o, nil
}

// Batch tells the time.
func (a *assembler) Batch(now int64) {
	a.now = now
	a.r.Expire(now)
}

// Frame takes a frame, whole datagrams and fragments alike. What reassembly drops is in its counters.
func (a *assembler) Frame(b []byte) ([]byte, packet.Verdict) {
	a.frames++
	if len(b) < packet.EthernetLen {
		return nil, packet.Short
	}
	d, what := a.r.Add(a.now, b[packet.EthernetLen:], a.into)
	if what != netstack.Whole && what != netstack.Unbroken {
		return nil, packet.Held
	}
	if d.Protocol != packet.ProtoUDP {
		return nil, packet.Foreign
	}
	return a.v.Segment(d.Addresses, d.Payload)
}

// counters adds what was counted until now under the ledger's names.
func (a *assembler) counters(to map[string]uint64) {
	pending := a.r.Expire(measure.Monotonic())
	c := a.r.Counters()
	for name, n := range map[string]uint64{"received": c.Fragments, "used": c.Used, "whole": c.Datagrams, "unbroken": c.Unbroken, "begun": c.Begun,
		"timeout": c.Timeout, "overlap": c.Overlap, "inconsistent": c.Inconsistent, "too_big": c.TooBig + c.NoBuffer, "id_reuse": c.IDReuse,
		"evicted": c.Evicted, "duplicate": c.Duplicate, "bad_length": c.BadLength + c.Beyond, "bad_header": c.BadHeader, "frames": a.frames} {
		to["fragments."+name] += n
	}
	to[agent.PendingFragments] += uint64(pending)
}
