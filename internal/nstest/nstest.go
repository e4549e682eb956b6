// SPDX-License-Identifier: Apache-2.0

// Package nstest gives tests real network devices: pairs of veth interfaces in two namespaces of their own,
// which go away with the test. It is imported by tests only.
package nstest

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// RequireRoot is the environment variable that turns skips for want of privilege or kernel features into failures.
const RequireRoot = "TWOPATH_REQUIRE_ROOT"

// Root skips the test unless it runs as root with CAP_NET_ADMIN and CAP_SYS_ADMIN in the initial user namespace.
func Root(t testing.TB) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv(RequireRoot) == "1" {
		t.Fatalf("%s=1, but this test needs root and runs as uid %d", RequireRoot, os.Geteuid())
	}
	t.Skipf("needs root (uid %d): namespaces, veth and XDP", os.Geteuid())
}

// Options shapes a pair. The zero value is one queue and MTU 1500 on both ends.
type Options struct {
	Queues     int  // rx and tx queues of the SUT's end and of the peer's end; 0 means 1
	PeerQueues int  // rx and tx queues of the peer's end; 0 means the same as Queues
	MTU        int  // bytes; 0 means 1500
	NoGRO      bool // leave GRO off (then there is no NAPI unless XDP is attached)
}

// Pair is two namespaces joined by a veth cable.
type Pair struct {
	SUT, Peer *End
}

// End is one side of the cable.
type End struct {
	NS    netns.NsHandle
	Name  string // interface name, sut0 or peer0
	Index int    // interface index inside NS
	MAC   net.HardwareAddr
	IP4   netip.Addr // 198.18.0.1 (SUT) or .2 (peer), /24
	IP6   netip.Addr // 2001:2::1 or ::2, /64
}

// NewPair makes the namespaces and the cable, sets addresses and static neighbours, and brings both ends up.
// Everything is removed when the test ends.
func NewPair(t testing.TB, o Options) *Pair {
	t.Helper()
	Root(t)
	if o.Queues == 0 {
		o.Queues = 1
	}
	if o.PeerQueues == 0 {
		o.PeerQueues = o.Queues
	}
	if o.MTU == 0 {
		o.MTU = 1500
	}
	p := &Pair{
		SUT: &End{Name: "sut0", MAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 1},
			IP4: netip.MustParseAddr("198.18.0.1"), IP6: netip.MustParseAddr("2001:2::1")},
		Peer: &End{Name: "peer0", MAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 2},
			IP4: netip.MustParseAddr("198.18.0.2"), IP6: netip.MustParseAddr("2001:2::2")},
	}
	for _, e := range []*End{p.SUT, p.Peer} {
		ns, err := newNamespace()
		if err != nil {
			t.Fatalf("make namespace: %v", err)
		}
		e.NS = ns
		t.Cleanup(func() { ns.Close() })
	}
	p.SUT.Do(t, func() {
		la := netlink.NewLinkAttrs()
		la.Name, la.MTU, la.HardwareAddr = p.SUT.Name, o.MTU, p.SUT.MAC
		la.NumRxQueues, la.NumTxQueues = o.Queues, o.Queues
		v := &netlink.Veth{LinkAttrs: la, PeerName: p.Peer.Name, PeerHardwareAddr: p.Peer.MAC,
			PeerNumRxQueues: uint32(o.PeerQueues), PeerNumTxQueues: uint32(o.PeerQueues), PeerMTU: uint32(o.MTU),
			PeerNamespace: netlink.NsFd(int(p.Peer.NS))}
		must(t, "add veth", netlink.LinkAdd(v))
		t.Cleanup(func() { p.SUT.Do(t, func() { _ = netlink.LinkDel(v) }) })
	})
	for _, e := range []*End{p.SUT, p.Peer} {
		other := p.Peer
		if e == p.Peer {
			other = p.SUT
		}
		e.Do(t, func() { e.configure(t, other, !o.NoGRO) })
	}
	return p
}

func (e *End) configure(t testing.TB, other *End, gro bool) {
	t.Helper()
	// Quiet IPv6 before the link is up, or MLD and DAD frames mix with the test's.
	for f, value := range map[string]string{"accept_dad": "0", "router_solicitations": "0", "accept_ra": "0",
		"mldv1_unsolicited_report_interval": "1", "mldv2_unsolicited_report_interval": "1"} { // ms
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+e.Name+"/"+f, []byte(value), 0)
	}
	l, err := netlink.LinkByName(e.Name)
	must(t, "find "+e.Name, err)
	e.Index = l.Attrs().Index
	must(t, "set lo up", netlink.LinkSetUp(&netlink.Device{LinkAttrs: netlink.LinkAttrs{Name: "lo", Index: 1}}))
	must(t, "set up", netlink.LinkSetUp(l))
	if gro {
		must(t, "switch GRO on", setGRO(e.Name, true))
	}
	must(t, "add IPv4", netlink.AddrAdd(l, mustAddr(t, fmt.Sprintf("%s/24", e.IP4))))
	a6 := mustAddr(t, fmt.Sprintf("%s/64", e.IP6))
	a6.Flags = unix.IFA_F_NODAD
	must(t, "add IPv6", netlink.AddrAdd(l, a6))
	waitLocal(t, e.IP6)
	for _, ip := range []netip.Addr{other.IP4, other.IP6} {
		must(t, "add neighbour", netlink.NeighSet(&netlink.Neigh{LinkIndex: e.Index, State: netlink.NUD_PERMANENT,
			IP: ip.AsSlice(), HardwareAddr: other.MAC}))
	}
}

// Do runs fn on an OS thread inside the end's network namespace. The thread is not reused afterwards unless it could
// be put back. fn may call t.Fatal: the failure is reported by the test's goroutine.
func (e *End) Do(t testing.TB, fn func()) {
	t.Helper()
	done := make(chan bool, 1)
	onThread(func() {
		ok := false
		defer func() { done <- ok }()
		if err := netns.Set(e.NS); err != nil {
			t.Errorf("enter namespace: %v", err)
			return
		}
		fn()
		ok = true
	})
	if !<-done {
		t.FailNow()
	}
}

// onThread runs fn on a goroutine whose OS thread ends with it, so no other goroutine sees what it does to the thread. The
// process's main thread is never ended but parked, namespace and all, so it is held while another thread is found.
func onThread(fn func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			fn()
			return
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			runtime.LockOSThread()
			fn()
		}()
		<-done
		runtime.UnlockOSThread()
	}()
}

// waitLocal waits until an IPv6 address is the host's own: the kernel's worker adds its local route some time after the
// address, and frames until then are dropped (Ip6InAddrErrors).
func waitLocal(t testing.TB, a netip.Addr) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		routes, err := netlink.RouteGet(a.AsSlice())
		if err == nil && len(routes) > 0 && routes[0].Type == unix.RTN_LOCAL {
			return
		}
	}
	t.Fatalf("%s is not local after 5 s", a)
}

func newNamespace() (netns.NsHandle, error) {
	type result struct {
		ns  netns.NsHandle
		err error
	}
	c := make(chan result)
	onThread(func() {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			c <- result{-1, fmt.Errorf("unshare: %w", err)}
			return
		}
		ns, err := netns.Get()
		c <- result{ns, err}
	})
	r := <-c
	return r.ns, r.err
}

func mustAddr(t testing.TB, s string) *netlink.Addr {
	t.Helper()
	a, err := netlink.ParseAddr(s)
	must(t, "parse "+s, err)
	return a
}

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
