// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"fmt"
	"slices"

	"github.com/miekg/dns"
)

// Check compares the reply to a query with what the zone's records say. It reads the reply with the library, not with this
// package's own code, and is for tests and for what a peer expects, before traffic flows. Foreign names are to be refused.
func (z *Zone) Check(q Query, reply []byte) error {
	var m dns.Msg
	if err := m.Unpack(reply); err != nil {
		return fmt.Errorf("%s: the reply does not parse: %w", q, err)
	}
	want := result{rcode: Refused}
	if dns.IsSubDomain(dns.CanonicalName(z.origin), dns.CanonicalName(q.Name)) {
		var err error
		if want, err = z.resolve(dns.CanonicalName(q.Name), q.Type); err != nil {
			return fmt.Errorf("%s: %w", q, err)
		}
	}
	switch {
	case !m.Response:
		return fmt.Errorf("%s: not a response", q)
	case len(m.Question) != 1 || m.Question[0].Name != q.Name || m.Question[0].Qtype != q.Type:
		return fmt.Errorf("%s: another question: %v", q, m.Question)
	case m.Rcode != want.rcode:
		return fmt.Errorf("%s: %s instead of %s", q, dns.RcodeToString[m.Rcode], dns.RcodeToString[want.rcode])
	case m.Truncated:
		if len(m.Answer)+len(m.Ns) > 0 {
			return fmt.Errorf("%s: truncated, with records in it", q)
		}
		return nil
	case m.Authoritative != (m.Rcode != Refused):
		return fmt.Errorf("%s: authoritative is %v", q, m.Authoritative)
	}
	if !same(m.Answer, want.answer) {
		return fmt.Errorf("%s: answers %v instead of %v", q, m.Answer, want.answer)
	}
	if !same(m.Ns, want.authority) {
		return fmt.Errorf("%s: authority %v instead of %v", q, m.Ns, want.authority)
	}
	return nil
}

// same compares records one by one, without regard to the case of names.
func same(a, b []dns.RR) bool {
	return slices.EqualFunc(a, b, func(x, y dns.RR) bool { return dns.IsDuplicate(x, y) && x.Header().Ttl == y.Header().Ttl })
}
