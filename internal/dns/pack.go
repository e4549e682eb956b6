// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"maps"
	"slices"

	"github.com/miekg/dns"
)

// result is an answer before it is packed.
type result struct {
	rcode             int
	answer, authority []dns.RR
}

// longestChain is how many CNAME records are followed.
const longestChain = 8

// resolve answers a question from the records, by RFC 1034, section 4.3.2, RFC 2308 (negative answers carry the SOA) and
// RFC 6604 (the code is that of the chain's end). name is in lower case.
func (z *Zone) resolve(name string, qtype uint16) (r result, err error) {
	for range longestChain + 1 {
		set, exists := z.rrsets[name]
		if !exists {
			if !dns.IsSubDomain(dns.CanonicalName(z.origin), name) {
				return r, nil // a chain that leaves the zone: the client goes on from there
			}
			r.rcode, r.authority = NXDomain, []dns.RR{z.soa()}
			return r, nil
		}
		if qtype == typeANY && len(set) > 0 {
			// RFC 8482: one record tells that there is more than is said.
			r.answer = append(r.answer, &dns.HINFO{Hdr: dns.RR_Header{Name: name, Rrtype: dns.TypeHINFO, Class: dns.ClassINET, Ttl: 3600}, Cpu: "RFC8482"})
			return r, nil
		}
		if list := set[qtype]; len(list) > 0 {
			r.answer = append(r.answer, list...)
			return r, nil
		}
		alias := set[dns.TypeCNAME]
		if len(alias) == 0 {
			r.authority = []dns.RR{z.soa()}
			return r, nil
		}
		r.answer = append(r.answer, alias[0])
		name = dns.CanonicalName(alias[0].(*dns.CNAME).Target)
	}
	return r, errLoop
}

// soa is the SOA record as negative answers carry it: its TTL is how long the absence may be remembered.
func (z *Zone) soa() dns.RR {
	soa := dns.Copy(z.rrsets[dns.CanonicalName(z.origin)][dns.TypeSOA][0]).(*dns.SOA)
	soa.Hdr.Ttl = min(soa.Hdr.Ttl, soa.Minttl)
	return soa
}

// ends are the types that a question for name may find at the end of its chain.
func (z *Zone) ends(name string) []uint16 {
	types := map[uint16]bool{}
	for range longestChain {
		for t := range z.rrsets[name] {
			types[t] = true
		}
		if len(z.rrsets[name]) > 0 {
			types[typeANY] = true
		}
		alias := z.rrsets[name][dns.TypeCNAME]
		if len(alias) == 0 {
			break
		}
		name = dns.CanonicalName(alias[0].(*dns.CNAME).Target)
	}
	return slices.Sorted(maps.Keys(types))
}

// unknownType stands for all types that a name does not have: it is reserved (RFC 6895), so no zone has it.
const unknownType = 65535

func (z *Zone) pack() error {
	z.refused, z.formErr, z.notImp = answer{rcode: Refused}, answer{rcode: FormErr}, answer{rcode: NotImp}
	wire, err := wireName(z.origin)
	if err != nil {
		return fmt.Errorf("%s: %w", z.origin, err)
	}
	z.apex = wire
	for _, name := range z.names() {
		key, err := wireName(name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		n := &node{}
		for _, t := range z.ends(name) {
			a, err := z.packed(name, t)
			if err != nil {
				return fmt.Errorf("%s %s: %w", name, dns.TypeToString[t], err)
			}
			n.types = append(n.types, typed{t, a})
		}
		if n.other, err = z.packed(name, unknownType); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		z.nodes[key] = n
	}
	// The name of an absent one is not known yet, nor where in it the zone's begins: Answer writes the pointer.
	b := make([]byte, maxMessage)
	soa := z.soa()
	end, err := dns.PackRR(soa, b, 0, nil, false)
	if err != nil {
		return fmt.Errorf("pack SOA: %w", err)
	}
	z.nxdomain = answer{rcode: NXDomain, authoritative: true, authorities: 1, body: append([]byte{0xc0, 0}, b[len(z.apex):end]...)}
	return nil
}

const maxMessage = 1<<16 + maxName // of a record that is as long as can be

// packed packs the answer to one question, names compressed against the question and each other.
func (z *Zone) packed(name string, qtype uint16) (answer, error) {
	r, err := z.resolve(name, qtype)
	if err != nil {
		return answer{}, err
	}
	m := &dns.Msg{Question: []dns.Question{{Name: name, Qtype: qtype, Qclass: dns.ClassINET}}, Answer: owned(r.answer), Ns: owned(r.authority), Compress: true}
	b, err := m.Pack()
	if err != nil {
		return answer{}, fmt.Errorf("pack: %w", err)
	}
	key, err := wireName(name)
	if err != nil {
		return answer{}, err
	}
	return answer{rcode: uint16(r.rcode), authoritative: true, answers: uint16(len(r.answer)), authorities: uint16(len(r.authority)),
		body: slices.Clip(b[headerLen+len(key)+questionEnd:])}, nil
}

// owned writes the owners' names in lower case, as that of the question, or they would not be compressed against it.
func owned(list []dns.RR) []dns.RR {
	out := make([]dns.RR, len(list))
	for i, rr := range list {
		out[i] = dns.Copy(rr)
		out[i].Header().Name = dns.CanonicalName(rr.Header().Name)
	}
	return out
}

// wireName is a name on the wire, in lower case.
func wireName(name string) (string, error) {
	b := make([]byte, maxName+1)
	n, err := dns.PackDomainName(dns.CanonicalName(name), b, 0, nil, false)
	if err != nil {
		return "", fmt.Errorf("name: %w", err)
	}
	return string(b[:n]), nil
}
