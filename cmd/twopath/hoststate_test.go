// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/vishvananda/netlink"
)

// hostState is all that a run could leave behind on the host: devices with their XDP programs, named namespaces, BPF
// programs that no process holds, agents, and what it writes below /run. Other packages' tests may run at the same time, in
// namespaces of their own; they hold their programs.
func hostState(t *testing.T) []string {
	t.Helper()
	var out []string
	links, err := netlink.LinkList()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range links {
		a := l.Attrs()
		xdp := uint32(0)
		if a.Xdp != nil && a.Xdp.Attached {
			xdp = a.Xdp.ProgId
		}
		if ours(a.Name) {
			out = append(out, fmt.Sprintf("link %s up=%v mtu=%d promisc=%d xdp=%d", a.Name, a.Flags&1 != 0, a.MTU, a.Promisc, xdp))
		}
	}
	for _, pattern := range []string{"/run/netns/twopath-*", "/run/twopath/*"} {
		names, _ := filepath.Glob(pattern)
		for _, n := range names {
			if filepath.Base(n) != "lock" {
				out = append(out, n)
			}
		}
	}
	var ids []ebpf.ProgramID
	for id := ebpf.ProgramID(0); ; {
		next, err := ebpf.ProgramGetNextID(id)
		if errors.Is(err, os.ErrNotExist) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		id = next
		ids = append(ids, id)
	}
	// After the list, or what is loaded meanwhile would be held by nobody; before one is opened, which holds it.
	held := heldPrograms()
	for _, id := range ids {
		p, err := ebpf.NewProgramFromID(id)
		if err != nil {
			continue // it went meanwhile
		}
		if info, err := p.Info(); err == nil && !held[uint32(id)] && slices.Contains([]string{"redirect", "drop", "pass", "sink", "generate", "sched_switch"}, info.Name) {
			out = append(out, fmt.Sprintf("program %s (%d), held by nobody", info.Name, id))
		}
		p.Close()
	}
	for _, pid := range agents() {
		out = append(out, fmt.Sprintf("agent %d", pid))
	}
	slices.Sort(out)
	return out
}

// ours tells the devices that this package's runs see from those that other packages' tests make meanwhile.
func ours(name string) bool {
	for _, prefix := range []string{"eth", "en", "lo", "ifb", "sut", "peer", "tpforeign", "tpport", "tpfar"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// heldPrograms are the BPF programs that some process holds, itself or by a link.
func heldPrograms() map[uint32]bool {
	held := map[uint32]bool{}
	files, _ := filepath.Glob("/proc/[0-9]*/fdinfo/*")
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		for _, line := range strings.Split(string(b), "\n") {
			var id uint32
			if n, _ := fmt.Sscanf(line, "prog_id:\t%d", &id); n == 1 {
				held[id] = true
			}
		}
	}
	return held
}

// agents are the processes started as agents of this test binary.
func agents() (pids []int) {
	own, err := os.Stat("/proc/self/exe")
	if err != nil {
		return nil
	}
	dirs, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, d := range dirs {
		b, err := os.ReadFile(d)
		if err != nil {
			continue
		}
		args := strings.Split(string(b), "\x00")
		exe, err := os.Stat(filepath.Join(filepath.Dir(d), "exe"))
		if err == nil && os.SameFile(own, exe) && len(args) > 1 && args[1] == "agent" {
			var pid int
			if _, err := fmt.Sscanf(d, "/proc/%d/", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// sameHost waits until the host is as it was: the kernel takes namespaces and programs away some time after their owners.
// Programs that were held by nobody before may have gone: other packages' tests attach some so, for a while.
func sameHost(t *testing.T, before []string) {
	t.Helper()
	var now []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		now = hostState(t)
		same := slices.DeleteFunc(slices.Clone(before), func(line string) bool {
			return strings.HasPrefix(line, "program ") && !slices.Contains(now, line)
		})
		if slices.Equal(same, now) {
			return
		}
	}
	t.Fatalf("the host is changed\nbefore: %s\nafter:  %s", strings.Join(before, "\n        "), strings.Join(now, "\n        "))
}
