// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"twopath/compare"
)

// fragmentsText is the load of the test fragments, and what bounded reassembly.
func fragmentsText(t *compare.Traffic) string {
	f := t.Fragments
	s := fmt.Sprintf("IPv%d datagrams of %s B payload in %d fragments, packets of %s B at most, %s", max(t.IPVersion, 4), bytesText(t.PayloadBytes), f.Fragments, thousands(int64(f.MTU)), f.Pattern)
	if f.Datagrams > 0 {
		s += ", " + uthousands(f.Datagrams) + " a trial"
	}
	limits := []string{"reassembly: " + trimZeros(fixed(f.TimeoutSeconds, 1)) + " s", memoryText(float64(f.MemoryBytes))}
	if t.IPVersion != 6 {
		limits = append(limits, "distance "+thousands(int64(f.Distance)))
	}
	return s + " (" + strings.Join(limits, ", ") + ")"
}

// undeliverable says how much of the loss was in what was sent; "" when nothing of it was.
func (v *view) undeliverable() string {
	for _, a := range v.arms {
		if a.Fragments != nil && a.Fragments.Undeliverable > 0 && a.Sent > 0 {
			return percent(float64(a.Fragments.Undeliverable)/float64(a.Sent)) + " were sent so that nobody may receive them"
		}
	}
	return ""
}

// fragmentCaveats tell how the two engines' reassembly differ, and what this program's leaves out.
func fragmentCaveats(v *view) []Caveat {
	f := v.doc.Traffic.Fragments
	if f == nil {
		return nil
	}
	out := one("datagrams", "", "packets here are datagrams, not frames; rates on the wire count each of their fragments once")
	if v.engine("xdp") != nil {
		out = append(out, one("pair-fragments", "", "the XDP program takes all fragments between the two addresses, those of other flows too: only the first of a datagram has a port")...)
	}
	if v.engine("xdp") != nil && v.engine("kernel") != nil {
		out = append(out, one("reassembly", "--frag-memory", "with its memory full the kernel refuses new datagrams, AF_XDP's reassembly gives up the oldest; the kernel also answers time-outs with ICMP")...)
	}
	return out
}
