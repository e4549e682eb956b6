// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/vishvananda/netlink"
)

// addrGenModeNone is IN6_ADDR_GEN_MODE_NONE (include/uapi/linux/if_link.h): no link-local address by itself.
const addrGenModeNone = 1

// quietNamespace sets what devices made in the calling thread's namespace start with, so that IPv6 does not talk by
// itself: duplicate address detection, router solicitations and link-local addresses are off, and multicast listener
// reports, which can not be switched off, leave within milliseconds instead of seconds. /proc/sys/net shows the
// thread's own namespace, so nothing of this is seen outside. A kernel without IPv6 has no such files.
func quietNamespace() error {
	for _, k := range []struct{ path, value string }{
		{"ipv6/conf/default/accept_dad", "0"},
		{"ipv6/conf/default/accept_ra", "0"},
		{"ipv6/conf/default/router_solicitations", "0"},
		{"ipv6/conf/default/mldv1_unsolicited_report_interval", "1"}, // ms
		{"ipv6/conf/default/mldv2_unsolicited_report_interval", "1"}, // ms
	} {
		if err := os.WriteFile("/proc/sys/net/"+k.path, []byte(k.value), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("set sysctl: %w", err)
		}
	}
	return nil
}

// hasIPv6 says whether the kernel has the protocol (it may be compiled out, or booted with ipv6.disable=1).
func hasIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return err == nil
}

// quietDevice keeps the kernel from giving the device a link-local address when it comes up.
func quietDevice(l netlink.Link) error {
	if !hasIPv6() {
		return nil
	}
	if err := netlink.LinkSetIP6AddrGenMode(l, addrGenModeNone); err != nil {
		return fmt.Errorf("switch link-local address off: %w", err)
	}
	return nil
}

const (
	silence    = 40 * time.Millisecond  // the reports leave 4 to 12 ms apart (measured)
	reportsMax = 300 * time.Millisecond // how long to wait for them at all
	silenceMax = time.Second
	reports    = 2 // each change is reported so many times (RFC 3810, 9.14.1: the robustness variable)
)

// waitSilent returns once the multicast reports for the addresses just added have gone and the cable has carried nothing
// for a while. One that is never silent is an error, since no count on it could be trusted.
func waitSilent(sides ...*Side) error {
	var seen uint64
	start := time.Now()
	for since := start; ; time.Sleep(time.Millisecond) {
		var now uint64
		sent := true
		for _, s := range sides {
			err := s.Do(func() error {
				l, err := netlink.LinkByIndex(s.Index)
				if err != nil {
					return fmt.Errorf("read counters of %s: %w", s.Name, err)
				}
				now += l.Attrs().Statistics.TxPackets
				sent = sent && (!hasIPv6() || mldReports() >= reports)
				return nil
			})
			if err != nil {
				return err
			}
		}
		if now != seen {
			seen, since = now, time.Now()
		}
		if time.Since(since) >= silence && (sent || time.Since(start) >= reportsMax) {
			return nil
		}
		if time.Since(start) >= silenceMax {
			return fmt.Errorf("cable is not silent: %d packets a second after it came up", seen)
		}
	}
}

// mldReports counts the multicast listener reports sent in the calling thread's namespace.
func mldReports() int {
	b, err := os.ReadFile("/proc/thread-self/net/snmp6")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "Icmp6OutMLDv2Reports" {
			n, _ := strconv.Atoi(f[1])
			return n
		}
	}
	return 0
}
