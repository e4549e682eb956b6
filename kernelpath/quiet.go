// SPDX-License-Identifier: Apache-2.0

package kernelpath

import "fmt"

// Quiet is what keeps the kernel from answering the test flow when no socket reads it: it still takes its own copy of each
// frame that an AF_PACKET socket sees through the stack, and that costs the receiving core more than the ring does.
//
// Service rate of the whole path on one veth core, 64-byte frames, to the measured accuracy of 10 %: frames to [ForeignMAC]
// with Promiscuous, 2.1 M/s; a netfilter drop at ingress or prerouting, made by the caller, 1.95 M/s; QuietSocket,
// 1.55 M/s; QuietNone, 1.05 M/s. Programs that read a NIC through AF_PACKET mostly watch traffic to others, so the first
// is the fair setting, and the others are for when frames must carry the host's own address.
type Quiet int

const (
	QuietNone   Quiet = iota // nothing: UDP counts NoPorts and answers with ICMP port unreachable, at a limited rate
	QuietSocket              // a bound UDP socket with the smallest buffer, never read: RcvbufErrors, no answers
)

var quietNames = [...]string{QuietNone: "none", QuietSocket: "socket"}

// String returns the name used in records.
func (q Quiet) String() string {
	if q < 0 || int(q) >= len(quietNames) {
		return fmt.Sprintf("quiet(%d)", int(q))
	}
	return quietNames[q]
}

// MarshalText makes the name what stands in a JSON record.
func (q Quiet) MarshalText() ([]byte, error) { return []byte(q.String()), nil }

// UnmarshalText is the inverse of MarshalText.
func (q *Quiet) UnmarshalText(b []byte) error {
	for i, name := range quietNames {
		if name == string(b) {
			*q = Quiet(i)
			return nil
		}
	}
	return fmt.Errorf("quiet policy %q: want none or socket", b)
}
