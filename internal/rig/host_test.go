// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
)

// hostState lists what a rig could leave behind: devices with their addresses and state, named namespaces, mounts of
// namespaces, and journals.
func hostState(t testing.TB) []string {
	t.Helper()
	var out []string
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		a := l.Attrs()
		line := fmt.Sprintf("link %d %s %s mtu %d flags %x promisc %d", a.Index, a.Name, a.HardwareAddr, a.MTU, a.RawFlags, a.Promisc)
		addrs, err := netlink.AddrList(l, netlink.FAMILY_ALL)
		if err != nil {
			t.Fatal(err)
		}
		for _, ad := range addrs {
			line += " " + ad.IPNet.String()
		}
		out = append(out, line)
	}
	for _, dir := range []string{"/run/netns", "/run/twopath"} {
		if _, err := os.Stat(dir); err == nil {
			out = append(out, dir)
		}
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			out = append(out, dir+"/"+e.Name())
		}
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, "netns") {
			out = append(out, "mount "+line)
		}
	}
	return out
}

// sameHost waits until the host is as it was: the kernel drops namespaces in the background.
func sameHost(t testing.TB, before []string) {
	t.Helper()
	var after []string
	for deadline := time.Now().Add(2 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if after = hostState(t); slices.Equal(before, after) {
			return
		}
	}
	t.Errorf("host is not as it was\nbefore:\n%s\nafter:\n%s", strings.Join(before, "\n"), strings.Join(after, "\n"))
}
