// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"

	"twopath/compare"
	"twopath/internal/nstest"
)

func TestSplitPeer(t *testing.T) {
	for in, want := range map[string][2]string{":eth1": {"", "eth1"}, "host:eth1": {"host", "eth1"}, "me@host:eth1": {"me@host", "eth1"},
		"[2001:db8::1]:eth1": {"2001:db8::1", "eth1"}, "me@[2001:db8::1]:eth1": {"me@2001:db8::1", "eth1"}} {
		host, device, err := splitPeer(in)
		if err != nil || host != want[0] || device != want[1] {
			t.Errorf("%s: %q %q %v, want %q", in, host, device, err, want)
		}
	}
	for _, in := range []string{"", "host", "host:", "-oProxyCommand=x:eth1"} {
		if _, _, err := splitPeer(in); exitCode(err) != exitUsage {
			t.Errorf("%q: %v", in, err)
		}
	}
}

// secondHost is another network namespace with one end of a cable in it, and an ssh that leads there.
func secondHost(t *testing.T) (env []string) {
	t.Helper()
	name := fmt.Sprintf("tphost%d", os.Getpid())
	here, err := netns.Get()
	if err != nil {
		t.Fatal(err)
	}
	defer here.Close()
	done := make(chan error)
	go func() { // NewNamed switches the thread
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		there, err := netns.NewNamed(name)
		if err == nil {
			there.Close()
			err = netns.Set(here)
		}
		done <- err
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netns.DeleteNamed(name) })
	there, err := netns.GetFromName(name)
	if err != nil {
		t.Fatal(err)
	}
	defer there.Close()
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tpfar0"}, PeerName: "tpfar1", PeerNamespace: netlink.NsFd(int(there))}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(veth) })
	if err := netlink.LinkSetUp(veth); err != nil {
		t.Fatal(err)
	}
	h, err := netlink.NewHandleAt(there)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	l, err := h.LinkByName("tpfar1")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.LinkSetUp(l); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// What is typed is ssh -o BatchMode=yes HOST sudo -n twopath agent.
	script := fmt.Sprintf("#!/bin/sh\n[ \"$3 $4 $5 $6 $7\" = 'otherhost sudo -n twopath agent' ] || exit 255\nexec ip netns exec %s env %s=1 %s agent\n",
		name, programVariable, os.Args[0])
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
}

// TestTwoHosts runs an arm of each engine on a port of this host with the peer on another, and finds both ports as before.
func TestTwoHosts(t *testing.T) {
	nstest.Root(t)
	env := secondHost(t)
	before := hostState(t)
	for _, arm := range []string{"kernel:recvmmsg", "xdp:auto"} {
		p := startWith(t, "run udp-rx "+arm+" --nic tpfar0 --peer otherhost:tpfar1 --rate 10k --count 1000 --json -", env)
		code := p.wait(t, 3*time.Minute)
		if p.out.Len() == 0 {
			t.Fatalf("%s: exit %d: %s", arm, code, p.err.String())
		}
		d := document(t, p.out.Bytes())
		if d.Rig.Kind != "hosts" || len(d.Trials) == 0 {
			t.Errorf("%s: rig %q, %d trials, %s", arm, d.Rig.Kind, len(d.Trials), p.err.String())
		}
		for _, tr := range d.Trials {
			if tr.Kind == compare.Measured && (tr.Sent != 1000 || tr.Received+tr.Lost != tr.Sent || tr.Unexplained != 0) {
				t.Errorf("%s: sent %d received %d lost %d unexplained %d", arm, tr.Sent, tr.Received, tr.Lost, tr.Unexplained)
			}
		}
		sameHost(t, before)
	}
}

func TestHostThatCannotBeReached(t *testing.T) {
	nstest.Root(t)
	env := secondHost(t)
	p := startWith(t, "run udp-rx xdp:auto --nic tpfar0 --peer nosuchhost:tpfar1 --rate 10k --count 1000", env)
	if code := p.wait(t, time.Minute); code != exitMachine || !strings.Contains(p.err.String(), "nosuchhost") {
		t.Errorf("exit %d: %s", code, p.err.String())
	}
}
