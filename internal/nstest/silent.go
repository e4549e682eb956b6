// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	silence    = 50 * time.Millisecond // reports leave 4 to 12 ms apart once the intervals are short (measured)
	silenceMax = 5 * time.Second
	reports    = 2 // each change is reported so many times (RFC 3810, 9.14.1: the robustness variable)
)

// Silent returns once the kernel has sent what it sends by itself over a new cable: multicast listener reports, which
// can not be switched off. For tests that count frames which are not theirs.
func (p *Pair) Silent(t testing.TB) {
	t.Helper()
	for _, e := range []*End{p.SUT, p.Peer} {
		e.Do(t, func() {
			last, since := -1, time.Now()
			for deadline := time.Now().Add(silenceMax); ; time.Sleep(time.Millisecond) {
				sent := icmp6(t, "Icmp6OutMsgs")
				if sent != last {
					last, since = sent, time.Now()
				}
				if time.Since(since) >= silence && icmp6(t, "Icmp6OutMLDv2Reports") >= reports {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s is not silent after %v: %d ICMPv6 messages", e.Name, silenceMax, sent)
				}
			}
		})
	}
}

// ICMPv6Sent is how many messages the kernel of this end has sent by itself so far.
func (e *End) ICMPv6Sent(t testing.TB) (n uint64) {
	t.Helper()
	e.Do(t, func() { n = uint64(icmp6(t, "Icmp6OutMsgs")) })
	return n
}

// icmp6 reads a counter of the calling thread's namespace.
func icmp6(t testing.TB, name string) int {
	t.Helper()
	b, err := os.ReadFile("/proc/thread-self/net/snmp6")
	must(t, "read ICMPv6 counters", err)
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == name {
			n, err := strconv.Atoi(f[1])
			must(t, "read "+name, err)
			return n
		}
	}
	t.Fatalf("no counter %s", name)
	return 0
}
