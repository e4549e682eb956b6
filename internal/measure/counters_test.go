// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"twopath/internal/nstest"
)

func TestDelta(t *testing.T) {
	before := Snapshot{At: 5, Counters: map[string]uint64{
		"udp.NoPorts": 7, "sock.drops": 1<<32 - 3, "softnet.dropped": 3<<32 - 1, "ethtool.rx_drops": 100, "link.gone": 1, "icmp6.OutType1": 1}}
	after := Snapshot{At: 105, Counters: map[string]uint64{
		"udp.NoPorts": 9, "sock.drops": 4, "softnet.dropped": 2<<32 + 1, "ethtool.rx_drops": 30, "link.new": 1,
		"icmp6.OutType1": 1, "icmpmsg.OutType3": 8}}
	c := Delta(before, after)
	want := map[string]uint64{"udp.NoPorts": 2, "sock.drops": 7, "softnet.dropped": 2, "ethtool.rx_drops": 30,
		"icmp6.OutType1": 0, "icmpmsg.OutType3": 8}
	if !maps.Equal(c.Counters, want) {
		t.Errorf("counters %v, want %v", c.Counters, want)
	}
	if c.Nanoseconds != 100 || strings.Join(c.Reset, " ") != "ethtool.rx_drops" || strings.Join(c.Missing, " ") != "link.gone link.new" {
		t.Errorf("changes %+v", c)
	}
}

func TestSnapshotAdd(t *testing.T) {
	var s Snapshot
	s.Add(map[string]uint64{"sock.drops": 3})
	s.Add(map[string]uint64{"sock.drops": 4, "xsk.rx_dropped": 1})
	if !maps.Equal(s.Counters, map[string]uint64{"sock.drops": 4, "xsk.rx_dropped": 1}) {
		t.Errorf("%v", s.Counters)
	}
}

func TestParseSNMP(t *testing.T) {
	m := map[string]uint64{}
	text := "Tcp: MaxConn InSegs\nTcp: -1 18446744073709551615\nUdp: InDatagrams NoPorts\nUdp: 76 2\n"
	if err := parseSNMP(text, m); err != nil {
		t.Fatal(err)
	}
	if want := map[string]uint64{"tcp.InSegs": 1<<64 - 1, "udp.InDatagrams": 76, "udp.NoPorts": 2}; !maps.Equal(m, want) {
		t.Errorf("got %v, want %v", m, want)
	}
	for _, bad := range []string{"", "Udp: A\n", "Udp: A B\nUdp: 1\n", "Udp: A\nTcp: 1\n", "Udp A\nUdp 1\n", "Udp: A\nUdp: x\n"} {
		if err := parseSNMP(bad, map[string]uint64{}); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func FuzzParseSNMP(f *testing.F) {
	f.Add("Udp: InDatagrams NoPorts\nUdp: 76 2\n", "Ip6InReceives 1\nUdp6InErrors 3\n")
	f.Fuzz(func(t *testing.T, snmp, snmp6 string) {
		m := map[string]uint64{}
		if parseSNMP(snmp, m) == nil {
			for name := range m {
				if !strings.Contains(name, ".") {
					t.Errorf("name %q has no table", name)
				}
			}
		}
		if m, err := parseSNMP6(snmp6); err == nil && len(m) == 0 {
			t.Errorf("%q: no counter and no error", snmp6)
		}
	})
}

func TestParseSNMP6(t *testing.T) {
	m, err := parseSNMP6("Ip6InReceives                   \t1\nUdpLite6InErrors 4\nIcmp6OutType135 5\n")
	if err != nil {
		t.Fatal(err)
	}
	if want := map[string]uint64{"ip6.InReceives": 1, "udplite6.InErrors": 4, "icmp6.OutType135": 5}; !maps.Equal(m, want) {
		t.Errorf("got %v, want %v", m, want)
	}
	for _, bad := range []string{"", "Ip6InReceives\n", "IpInReceives 1\n", "6A 1\n", "Ip6 1\n", "Ip6X -1\n"} {
		if _, err := parseSNMP6(bad); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

func TestSoftnetColumnsVary(t *testing.T) {
	row := "00000014 00000002 00000003 00000000 00000000 00000000 00000000 00000000 00000000"
	for _, c := range []struct {
		more string
		flow bool
	}{{"", false}, {" 00000001", false}, {" 00000001 00000005", true},
		{" 00000000 00000005 00000000 00000001 00000000 00000000", true}} {
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "net"), 0o755); err != nil {
			t.Fatal(err)
		}
		text := row + c.more + "\n" + row + c.more + "\n"
		if err := os.WriteFile(filepath.Join(dir, "net/softnet_stat"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		m, err := readSoftnet(dir)
		if err != nil {
			t.Fatal(err)
		}
		if m["softnet.processed"] != 40 || m["softnet.dropped"] != 4 || m["softnet.time_squeeze"] != 6 {
			t.Errorf("%q: %v", c.more, m)
		}
		if v, ok := m["softnet.flow_limit"]; ok != c.flow || (ok && v != 10) {
			t.Errorf("%q: flow limit %d, %v", c.more, v, ok)
		}
	}
}

// TestReadThisHost needs no privilege: every source of the running kernel parses and gives the names the ledger uses.
func TestReadThisHost(t *testing.T) {
	r, err := NewReader(ReaderOptions{Device: "lo"})
	if err != nil {
		t.Fatal(err)
	}
	s, err := r.Read()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link.rx_packets", "link.rx_dropped", "udp.RcvbufErrors", "udp.NoPorts", "udp.InCsumErrors",
		"udp.MemErrors", "ip.InHdrErrors", "ip.InAddrErrors", "ip.InDiscards", "ipext.InNoRoutes", "ipext.InTruncatedPkts",
		"tcpext.IPReversePathFilter", "icmp.OutDestUnreachs", "softnet.dropped", "softnet.time_squeeze",
		"stat.arp_cache.unresolved_discards"} {
		if _, ok := s.Counters[name]; !ok {
			t.Errorf("no counter %s", name)
		}
	}
	if _, err := os.Stat("/proc/self/net/snmp6"); err == nil {
		for _, name := range []string{"ip6.InHdrErrors", "udp6.RcvbufErrors", "ip6.InNoRoutes"} {
			if _, ok := s.Counters[name]; !ok {
				t.Errorf("no counter %s", name)
			}
		}
	}
	for name := range s.Counters {
		if strings.HasSuffix(name, ".entries") {
			t.Errorf("%s is a level, not a counter", name)
		}
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Errorf("second Close: %v", err)
	}
	if _, err := NewReader(ReaderOptions{Device: "nosuchdevice0"}); err == nil {
		t.Error("a device that is not there was opened")
	}
}

// TestReadNamespace sends known numbers of datagrams between two namespaces and finds exactly them.
func TestReadNamespace(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	var sut, peer *Reader
	read := func(e *nstest.End, r **Reader) (s Snapshot) {
		e.Do(t, func() {
			var err error
			if *r == nil {
				if *r, err = NewReader(ReaderOptions{Device: e.Name}); err != nil {
					t.Errorf("open: %v", err)
					return
				}
			}
			if s, err = (*r).Read(); err != nil {
				t.Errorf("read: %v", err)
			}
		})
		return s
	}
	sutBefore, peerBefore := read(p.SUT, &sut), read(p.Peer, &peer)
	defer func() { sut.Close(); peer.Close() }()
	const v4, v6 = 30, 20
	p.Peer.Do(t, func() {
		for addr, n := range map[netip.Addr]int{p.SUT.IP4: v4, p.SUT.IP6: v6} {
			c, err := net.ListenUDP("udp", nil) // unconnected: an answer of ICMP unreachable is not our business
			if err != nil {
				t.Errorf("open sender: %v", err)
				return
			}
			for range n {
				if _, err := c.WriteToUDPAddrPort([]byte("twopath"), netip.AddrPortFrom(addr, 9000)); err != nil {
					t.Errorf("send: %v", err)
				}
			}
			c.Close()
		}
	})
	s, q := Delta(sutBefore, read(p.SUT, &sut)), Delta(peerBefore, read(p.Peer, &peer))
	for _, c := range []struct {
		side Changes
		name string
		want uint64
	}{
		{s, "udp.NoPorts", v4}, {s, "udp6.NoPorts", v6}, {s, "udp.InDatagrams", 0}, {q, "udp.OutDatagrams", v4},
		{q, "udp6.OutDatagrams", v6}, {q, "udp.NoPorts", 0}, {s, "link.rx_dropped", 0}, {q, "link.tx_dropped", 0},
	} {
		if got := c.side.Counters[c.name]; got != c.want {
			t.Errorf("%s = %d, want %d", c.name, got, c.want)
		}
	}
	// Neighbour and MLD frames may add to the devices' counts, at any moment, and never take away.
	if rx, tx := s.Counters["link.rx_packets"], q.Counters["link.tx_packets"]; rx < v4+v6 || tx < v4+v6 {
		t.Errorf("received %d frames, peer sent %d, want at least %d", rx, tx, v4+v6)
	}
	for _, name := range []string{"ethtool.rx_queue_0_drops", "ethtool.rx_queue_1_drops", "ethtool.rx_queue_0_xdp_packets",
		"ethtool.tx_queue_1_xdp_xmit_errors", "link.rx_otherhost_dropped", "link.rx_nohandler"} {
		if _, ok := s.Counters[name]; !ok {
			t.Errorf("no counter %s", name)
		}
	}
	if len(s.Reset) != 0 || len(s.Missing) != 0 {
		t.Errorf("reset %v, missing %v", s.Reset, s.Missing)
	}
}
