// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"twopath/internal/nstest"
)

// refused asserts that both ways to take a port refuse it with the given cause, and leave no journal.
func refused(t *testing.T, name, id string, usage bool) *Refusal {
	t.Helper()
	var r *Refusal
	for what, take := range map[string]func() (*Rig, error){
		"pair":   func() (*Rig, error) { return NewPair(PairOptions{IF: name, PeerIF: "nic1"}) },
		"remote": func() (*Rig, error) { return NewRemote(RemoteOptions{IF: name}) },
	} {
		rig, err := take()
		if !errors.As(err, &r) || r.ID != id || r.Usage != usage || r.Cure == "" {
			t.Errorf("%s with %q: got %v (%+v), want refusal %s, usage %t, with a cure", what, name, err, r, id, usage)
		}
		if err == nil {
			rig.Close()
		}
	}
	nothingLeft(t)
	t.Log(r)
	return r
}

func TestRefusals(t *testing.T) {
	ports(t)
	refused(t, "", "no-device", true)
	if r := refused(t, "nic00", "no-device", true); !strings.Contains(r.Cure, "did you mean nic0?") {
		t.Errorf("cure %q names no near device", r.Cure)
	}
	if r := refused(t, "wlp0s20f3", "no-device", true); !strings.Contains(r.Cure, "nic0, ") && !strings.Contains(r.Cure, ", nic0") {
		t.Errorf("cure %q lists no devices", r.Cure)
	}
	refused(t, "lo", "loopback", true)
	var r *Refusal
	if _, err := NewPair(PairOptions{IF: "nic0", PeerIF: "nic0"}); !errors.As(err, &r) || r.ID != "same-device" || !r.Usage {
		t.Errorf("same device twice: %v", err)
	}
	ip(t, "link", "property", "add", "dev", "nic0", "altname", "port-with-a-long-name")
	if _, err := NewPair(PairOptions{IF: "nic0", PeerIF: "port-with-a-long-name"}); !errors.As(err, &r) || r.ID != "same-device" {
		t.Errorf("same device by its other name: %v", err)
	}
	if err := Usable("port-with-a-long-name", nil); err != nil {
		t.Errorf("alternative name: %v", err)
	}

	ip(t, "link", "set", "nic0", "down")
	refused(t, "nic0", "down", false)
	ip(t, "link", "set", "nic0", "up")
	ip(t, "addr", "add", "fd00:9::1/64", "dev", "nic0", "nodad") // lost when it went down

	for _, c := range []string{"route add default via 10.9.0.2 dev nic0", "route add default via fd00:9::2 dev nic0",
		"route add default table 77 via 10.9.0.2 dev nic0", "route add default nexthop via 10.9.0.2 nexthop via 10.9.2.2"} {
		ip(t, strings.Fields(c)...)
		refused(t, "nic0", "default-route", false)
		ip(t, strings.Fields(strings.Replace(c, "add", "del", 1))...)
	}
	if err := Usable("nic0", []netip.Addr{netip.MustParseAddr("10.9.0.77")}); !errors.As(err, &r) || r.ID != "ssh-route" {
		t.Errorf("port to a protected address: %v", err)
	}
	if err := Usable("nic0", []netip.Addr{netip.MustParseAddr("10.9.2.2"), netip.MustParseAddr("127.0.0.1")}); err != nil {
		t.Errorf("other addresses protected: %v", err)
	}

	ip(t, "link", "add", "br9", "type", "bridge")
	defer ip(t, "link", "del", "br9")
	refused(t, "br9", "virtual-device", true)
	ip(t, "link", "set", "nic0", "master", "br9")
	refused(t, "nic0", "enslaved", false)
	ip(t, "link", "set", "nic0", "nomaster")

	moving := func(id string) { // where it is, it may be used
		t.Helper()
		if _, err := NewPair(PairOptions{IF: "nic0", PeerIF: "nic1"}); !errors.As(err, &r) || r.ID != id || r.Usage {
			t.Errorf("pair: %v, want refusal %s", err, id)
		}
		if err := Usable("nic0", nil); err != nil {
			t.Errorf("in place: %v", err)
		}
		nothingLeft(t)
	}
	tc(t, "qdisc", "add", "dev", "nic0", "root", "tbf", "rate", "100mbit", "burst", "10k", "limit", "10k")
	moving("qdisc")
	tc(t, "qdisc", "del", "dev", "nic0", "root")
	tc(t, "qdisc", "add", "dev", "nic0", "clsact")
	moving("qdisc")
	tc(t, "qdisc", "del", "dev", "nic0", "clsact")

	ns, err := newNamed("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	ip(t, "link", "set", "nic0", "netns", "elsewhere")
	if _, err := NewRemote(RemoteOptions{IF: "nic0"}); !errors.As(err, &r) || r.ID != "other-namespace" || !strings.Contains(r.What, "elsewhere") {
		t.Errorf("device in another namespace: %v", err)
	}
	ip(t, "-n", "elsewhere", "link", "set", "nic0", "netns", "/proc/"+pid()+"/ns/net")
	if err := errors.Join(ns.Close(), removeNamed("elsewhere")); err != nil {
		t.Error(err)
	}
}

func pid() string { p, _ := os.Readlink("/proc/self"); return filepath.Base(p) }

func tc(t testing.TB, args ...string) {
	t.Helper()
	if out, err := exec.Command("tc", args...).CombinedOutput(); err != nil {
		t.Fatalf("tc %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func TestForeignXDPIsRefused(t *testing.T) {
	ports(t)
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Apache-2.0",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2 /* XDP_PASS */), asm.Return()}})
	if err != nil {
		t.Fatal(err)
	}
	defer prog.Close()
	info, err := prog.Info()
	if err != nil {
		t.Fatal(err)
	}
	programID, ok := info.ID()
	id := uint32(programID)
	l, err := netlink.LinkByName("nic0")
	if err != nil || !ok {
		t.Fatal(err, ok)
	}
	for mode, flag := range map[string]link.XDPAttachFlags{"native": link.XDPDriverMode, "generic": link.XDPGenericMode} {
		x, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: l.Attrs().Index, Flags: flag})
		if err != nil {
			t.Fatal(err)
		}
		if r := refused(t, "nic0", "xdp-attached", false); !strings.Contains(r.What, mode) || r.XDP != id {
			t.Errorf("%q, program %d: want it to say %s, and program %d", r.What, r.XDP, mode, id)
		}
		x.Close()
	}
}

func TestNonRootIsRefused(t *testing.T) {
	c := nstest.Unprivileged(t, reexec("unprivileged"))
	c.Stderr = nil // CombinedOutput's
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(out)), "\n") {
		what, id, _ := strings.Cut(line, " ")
		if id != "privilege false" && !(what == "recover" && id == "none") {
			t.Errorf("%s: got %q, want an environment refusal for privilege", what, id)
		}
	}
}

func TestParseProcAddr(t *testing.T) {
	for in, want := range map[string]string{
		"0100007F:0016":                         "127.0.0.1:22",
		"B80D01200000000000000000010000FF:1F90": "[2001:db8::ff00:1]:8080",
		"0000000000000000FFFF00000101A8C0:0016": "[::ffff:192.168.1.1]:22",
	} {
		if got, ok := parseProcAddr(in); !ok || got.String() != want {
			t.Errorf("%s: got %v, %t, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", ":", "0100007F", "01:0016", "0100007F:10016", "zz00007F:0016"} {
		if got, ok := parseProcAddr(in); ok {
			t.Errorf("%q: got %v, want a refusal", in, got)
		}
	}
}

func TestEstablishedPeers(t *testing.T) {
	table := filepath.Join(t.TempDir(), "tcp")
	text := `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100000A:0016 0200000A:C350 01 00000000:00000000 00:00000000 00000000     0        0 1
   1: 0100000A:0016 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 2
   2: 0100000A:0017 0300000A:C350 01 00000000:00000000 00:00000000 00000000     0        0 3
`
	if err := os.WriteFile(table, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := establishedPeers(table, 22); len(got) != 1 || got[0].String() != "10.0.0.2" {
		t.Errorf("got %v, want 10.0.0.2", got)
	}
}

func TestNearest(t *testing.T) {
	for in, want := range map[string]string{"eth0": "eth0", "eth1": "eth0", "etho": "eth0", "enp3s0f": "enp3s0f1", "wifi": ""} {
		if got := nearest(in, []string{"eth0", "enp3s0f1"}); got != want {
			t.Errorf("%s: got %q, want %q", in, got, want)
		}
	}
}
