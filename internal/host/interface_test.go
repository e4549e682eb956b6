// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"

	"twopath/internal/nstest"
)

func TestDescribeVeth(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 3, MTU: 1400})
	p.SUT.Do(t, func() {
		d, err := Describe(p.SUT.Name)
		if err != nil {
			t.Fatal(err)
		}
		if d.Driver != "veth" || d.Type != "veth" || d.RxQueues != 3 || d.TxQueues != 3 || d.MTU != 1400 || !d.Up || !d.Carrier || d.Attached != "" ||
			d.MAC != p.SUT.MAC.String() || d.Index != p.SUT.Index || !slices.Contains(d.Offloads, "rx-gro") {
			t.Errorf("%+v", d)
		}
		if d.XDP == nil || !d.XDP.Has("basic") || !d.XDP.Has("redirect") || !d.XDP.Has("ndo-xmit") || d.XDP.Has("xsk-zerocopy") {
			t.Errorf("XDP features %+v", d.XDP)
		}
		f := d.Facts("nic.")
		if f["nic.driver"] != "veth" || f["nic.rx_queues"] != "3" || !strings.Contains(f["nic.xdp_features"], "redirect") {
			t.Errorf("facts %v", f)
		}
		for k, v := range f {
			if v == "" || v == "0" {
				t.Errorf("fact %s is %q", k, v)
			}
		}
		if _, err := Describe("none0"); !errors.As(err, new(netlink.LinkNotFoundError)) {
			t.Errorf("missing device: %v", err)
		}
	})
}

func TestInterfaceChecks(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	look := func() map[string]Check {
		t.Helper()
		return sound(t, interfaceChecks(p.SUT.Name))
	}
	p.SUT.Do(t, func() {
		l, err := netlink.LinkByName(p.SUT.Name)
		if err != nil {
			t.Fatal(err)
		}
		status(t, look(), map[string]Status{"nic.driver": Pass, "nic.link": Pass, "nic.xdp": Pass, "nic.zerocopy": Warn, "nic.xdp_attached": Pass,
			"nic.mtu": Pass, "nic.queues": Pass, "nic.rings": Skip, "nic.qdisc": Pass, "nic.route": Pass, "nic.offloads": Pass})
		status(t, map[string]Check{"xdp.attached": attachedAnywhere()}, map[string]Status{"xdp.attached": Pass})

		prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "Apache-2.0",
			Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 2 /* XDP_PASS */), asm.Return()}})
		if err != nil {
			t.Fatal(err)
		}
		defer prog.Close()
		x, err := link.AttachXDP(link.XDPOptions{Program: prog, Interface: p.SUT.Index, Flags: link.XDPGenericMode})
		if err != nil {
			t.Fatal(err)
		}
		c := look()["nic.xdp_attached"]
		if c.Status != Fail || !strings.Contains(c.What, "generic") {
			t.Errorf("attached program: %+v", c)
		}
		status(t, map[string]Check{"xdp.attached": attachedAnywhere()}, map[string]Status{"xdp.attached": Warn})
		x.Close()

		if err := netlink.LinkSetMTU(l, 9000); err != nil {
			t.Fatal(err)
		}
		route := &netlink.Route{LinkIndex: p.SUT.Index, Gw: net.IPv4(198, 18, 0, 2)}
		if err := netlink.RouteAdd(route); err != nil {
			t.Fatal(err)
		}
		tbf := &netlink.Tbf{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: p.SUT.Index, Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0)},
			Rate: 1 << 20, Limit: 1 << 16, Buffer: 1 << 12}
		if err := netlink.QdiscAdd(tbf); err != nil {
			t.Fatal(err)
		}
		checks := look()
		want := Warn
		if checks["nic.xdp"].Status == Pass && strings.Contains(checks["nic.xdp"].What, "rx-sg") {
			want = Pass // the driver takes fragments
		}
		status(t, checks, map[string]Status{"nic.mtu": want, "nic.route": Fail, "nic.qdisc": Warn})

		if err := netlink.LinkSetDown(l); err != nil {
			t.Fatal(err)
		}
		status(t, look(), map[string]Status{"nic.link": Fail})
	})
	p.Peer.Do(t, func() { // its other end is down
		status(t, sound(t, interfaceChecks(p.Peer.Name)), map[string]Status{"nic.link": Fail})
		c := interfaceChecks("none0")
		if len(c) != 1 || c[0].Status != Fail || c[0].Cure == "" {
			t.Errorf("missing device: %+v", c)
		}
	})
}
