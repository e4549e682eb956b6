// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"twopath/compare"
)

// counters merges maps; later ones win.
func counters(ms ...map[string]uint64) map[string]uint64 {
	out := map[string]uint64{}
	for _, m := range ms {
		maps.Copy(out, m)
	}
	return out
}

// vethPeer is what the sending veth end shows when xmit frames went through and full found the ring full.
func vethPeer(xmit, full uint64) map[string]uint64 {
	return map[string]uint64{"ethtool.peer_ifindex": 0, "ethtool.tx_queue_0_xdp_xmit": xmit,
		"ethtool.tx_queue_0_xdp_xmit_errors": full, "link.tx_dropped": full, "ethtool.rx_queue_0_xdp_tx_errors": 0}
}

// vethSUT is what the receiving end shows: packets taken, frames it dropped, ring overflow.
func vethSUT(took, drops, full uint64) map[string]uint64 {
	return map[string]uint64{"ethtool.peer_ifindex": 0, "ethtool.rx_queue_0_xdp_packets": took, "ethtool.rx_queue_0_drops": drops,
		"ethtool.rx_queue_0_xdp_drops": 0, "link.rx_dropped": drops + full, "link.rx_packets": took, "link.rx_errors": 0,
		"link.rx_missed_errors": 0, "link.rx_otherhost_dropped": 0, "softnet.dropped": 0}
}

func xskZero() map[string]uint64 {
	return map[string]uint64{"xsk.rx_dropped": 0, "xsk.rx_ring_full": 0, "xsk.rx_fill_ring_empty_descs": 0, "xsk.queued": 0,
		"redirect.no_socket": 0, "redirect.other_queue": 0, "redirect.foreign_mac": 0, "redirect.too_short": 0}
}

func udpZero() map[string]uint64 {
	return map[string]uint64{"udp.RcvbufErrors": 0, "udp.MemErrors": 0, "udp.InCsumErrors": 0, "udp.InErrors": 0, "udp.NoPorts": 0,
		"udp6.RcvbufErrors": 0, "udp6.InErrors": 0, "ip.InHdrErrors": 0, "ip.InAddrErrors": 0, "ip.InDiscards": 0,
		"ipext.InNoRoutes": 0, "ipext.InTruncatedPkts": 0, "tcpext.IPReversePathFilter": 0, "sock.drops": 0, "sock.queued": 0}
}

func readerZero() map[string]uint64 {
	return map[string]uint64{"reader.short": 0, "reader.corrupt_ip": 0, "reader.corrupt_udp": 0, "reader.corrupt_payload": 0, "reader.late": 0}
}

// live is a live-frame trial without any loss, to be spoiled by the tests.
func live(arm Arm, sent, unique uint64) Input {
	return Input{Arm: arm, Sender: SendLive, Sent: sent, Unique: unique, From: vethPeer(sent, 0),
		To: counters(vethSUT(sent, 0, 0), xskZero(), udpZero(), readerZero())}
}

func row(id string, n uint64, g compare.Grade) compare.LedgerRow {
	return compare.LedgerRow{At: id, Packets: n, Grade: g}
}

// pieced is a trial of 1,000 datagrams in three fragments each, of which 100 did not come; full frames were lost in the ring.
func pieced(arm Arm, missing, overlapping, full uint64, to map[string]uint64) Input {
	in := live(arm, 1000, 900)
	in.Fragments = &Fragments{Frames: 3000 - missing, Missing: missing, Overlapping: overlapping}
	in.From = vethPeer(in.Fragments.Frames-full, full)
	got := "ip.ReasmReqds"
	if arm == ArmXDP {
		got = "fragments.received"
	}
	in.To = counters(in.To, vethSUT(in.Fragments.Frames-full, 0, full), map[string]uint64{got: in.Fragments.Frames - full}, to)
	return in
}

func TestLedgerRows(t *testing.T) {
	exact, bounded := compare.Exact, compare.Bounded
	reached := map[string]bool{}
	set := func(arm Arm, change func(in *Input)) Input {
		in := live(arm, 1000, 900)
		change(&in)
		return in
	}
	to := func(arm Arm, n map[string]uint64) Input { return set(arm, func(in *Input) { maps.Copy(in.To, n) }) }
	one := func(name string) map[string]uint64 { return map[string]uint64{name: 100} }
	kernelSender := func(s Sender, from map[string]uint64) Input {
		return set(ArmXDP, func(in *Input) { in.Sender, in.From = s, counters(map[string]uint64{"link.tx_dropped": 0}, from) })
	}
	for _, c := range []struct {
		name string
		in   Input
		want []compare.LedgerRow
	}{
		{"gen.not_sent: counters at 0", set(ArmUDP, func(in *Input) { in.From = vethPeer(900, 0) }), []compare.LedgerRow{row("gen.not_sent", 100, exact)}},
		{"tx.ip_discard", set(ArmUDP, func(in *Input) { in.Sender, in.From = SendUDP, one("ip.OutDiscards") }), []compare.LedgerRow{row("tx.ip_discard", 100, exact)}},
		{"tx.neighbour", set(ArmUDP, func(in *Input) { in.Sender, in.From = SendUDP, one("stat.arp_cache.unresolved_discards") }), []compare.LedgerRow{row("tx.neighbour", 100, exact)}},
		{"tx.qdisc", set(ArmUDP, func(in *Input) { in.Sender, in.From = SendUDP, one("qdisc.drops") }), []compare.LedgerRow{row("tx.qdisc", 100, exact)}},
		{"xsk.tx_invalid_descs", kernelSender(SendXSK, one("xsk.tx_invalid_descs")), []compare.LedgerRow{row("xsk.tx_invalid_descs", 100, exact)}},
		{"send.failed", kernelSender(SendUDP, one("send.failed")), []compare.LedgerRow{row("send.failed", 100, exact)}},
		{"send.silent", kernelSender(SendUDP, one("send.silent")), []compare.LedgerRow{row("send.silent", 100, exact)}},
		{"reader.wrong", set(ArmSink, func(in *Input) { in.Sender, in.To = SendUDP, one("reader.wrong") }), []compare.LedgerRow{row("reader.wrong", 100, exact)}},
		{"reader.unasked", set(ArmSink, func(in *Input) { in.Sender, in.To = SendUDP, one("reader.unasked") }), []compare.LedgerRow{row("reader.unasked", 100, exact)}},
		{"xsk.tx_unsent", kernelSender(SendXSK, one("xsk.tx_unsent")), []compare.LedgerRow{row("xsk.tx_unsent", 100, exact)}},
		{"tx.xdp_tx_full: both ends count it as dropped too", set(ArmSink, func(in *Input) {
			in.Sender = SendXDPTX
			in.From = counters(vethSUT(900, 0, 0), map[string]uint64{"link.tx_dropped": 100, "ethtool.rx_queue_0_xdp_tx_errors": 100})
			in.To = counters(vethPeer(0, 0), map[string]uint64{"link.rx_dropped": 100})
		}), []compare.LedgerRow{row("tx.xdp_tx_full", 100, exact)}},
		{"tx.device_drop: an skb sender on veth", kernelSender(SendXSK, one("link.tx_dropped")), []compare.LedgerRow{row("tx.device_drop", 100, exact)}},
		{"veth.ring_full: four counters, one loss", set(ArmUDP, func(in *Input) {
			in.From = vethPeer(900, 100)
			maps.Copy(in.To, vethSUT(900, 0, 100))
		}), []compare.LedgerRow{row("veth.ring_full", 100, exact)}},
		{"nic.rx_missed", to(ArmNoSocket, one("link.rx_missed_errors")), []compare.LedgerRow{row("nic.rx_missed", 100, exact)}},
		{"nic.rx_error", to(ArmUDP, one("link.rx_errors")), []compare.LedgerRow{row("nic.rx_error", 100, exact)}},
		{"link.rx_dropped", to(ArmUDP, one("link.rx_dropped")), []compare.LedgerRow{row("link.rx_dropped", 100, exact)}},
		{"veth.rx_drop", to(ArmUDP, vethSUT(1000, 100, 0)), []compare.LedgerRow{row("veth.rx_drop", 100, exact)}},
		{"xdp.no_socket: the drop verdict is the same frame", to(ArmXDP, map[string]uint64{"redirect.no_socket": 100, "ethtool.rx_queue_0_xdp_drops": 100}),
			[]compare.LedgerRow{row("xdp.no_socket", 100, exact)}},
		{"xdp.other_queue", to(ArmXDP, map[string]uint64{"redirect.no_socket": 100, "redirect.other_queue": 70}),
			[]compare.LedgerRow{row("xdp.no_socket", 30, exact), row("xdp.other_queue", 70, exact)}},
		{"xdp.not_ours", to(ArmXDP, map[string]uint64{"redirect.vlan": 60, "redirect.foreign_port": 40}), []compare.LedgerRow{row("xdp.not_ours", 100, exact)}},
		{"xdp.dropped", to(ArmXDP, one("ethtool.rx_queue_0_xdp_drops")), []compare.LedgerRow{row("xdp.dropped", 100, exact)}},
		{"xdp.redirect_failed", to(ArmXDP, vethSUT(1000, 100, 0)), []compare.LedgerRow{row("xdp.redirect_failed", 100, exact)}},
		{"xsk.fill_ring_empty: one frame in four counters", to(ArmXDP, counters(vethSUT(1000, 100, 0),
			map[string]uint64{"xsk.rx_dropped": 100, "xsk.rx_fill_ring_empty_descs": 100})), []compare.LedgerRow{row("xsk.fill_ring_empty", 100, exact)}},
		{"xsk.frame_too_long", to(ArmXDP, counters(vethSUT(1000, 100, 0), one("xsk.rx_dropped"))), []compare.LedgerRow{row("xsk.frame_too_long", 100, exact)}},
		{"both reasons", to(ArmXDP, counters(vethSUT(1000, 100, 0), map[string]uint64{"xsk.rx_dropped": 100, "xsk.rx_fill_ring_empty_descs": 30})),
			[]compare.LedgerRow{row("xsk.fill_ring_empty", 30, exact), row("xsk.frame_too_long", 70, exact)}},
		{"xsk.rx_dropped: zero-copy counts attempts", set(ArmXDP, func(in *Input) {
			in.ZeroCopy = true
			maps.Copy(in.To, counters(vethSUT(1000, 100, 0), map[string]uint64{"xsk.rx_dropped": 100, "xsk.rx_fill_ring_empty_descs": 9999}))
		}), []compare.LedgerRow{row("xsk.rx_dropped", 100, exact)}},
		{"xsk.rx_ring_full, native", to(ArmXDP, counters(vethSUT(1000, 100, 0), one("xsk.rx_ring_full"))), []compare.LedgerRow{row("xsk.rx_ring_full", 100, exact)}},
		{"xsk.rx_ring_full, generic: the device counts nothing", set(ArmXDP, func(in *Input) {
			in.Generic = true
			in.To["xsk.rx_ring_full"] = 100
		}), []compare.LedgerRow{row("xsk.rx_ring_full", 100, exact)}},
		{"xsk.queued_unread", to(ArmXDP, one("xsk.queued")), []compare.LedgerRow{row("xsk.queued_unread", 100, exact)}},
		{"softnet.backlog", to(ArmUDP, one("softnet.dropped")), []compare.LedgerRow{row("softnet.backlog", 100, exact)}},
		{"softnet.backlog seen by the sending veth too", set(ArmUDP, func(in *Input) {
			in.Sender, in.From = SendPacket, one("link.tx_dropped")
			in.To["softnet.dropped"] = 100
		}), []compare.LedgerRow{row("tx.device_drop", 100, exact)}},
		{"packet.ring_full: the stack's counters saw copies", to(ArmPacket, map[string]uint64{"packet.drops": 100, "udp.NoPorts": 1000}),
			[]compare.LedgerRow{row("packet.ring_full", 100, exact)}},
		{"packet.queued_unread", to(ArmPacket, one("packet.queued")), []compare.LedgerRow{row("packet.queued_unread", 100, exact)}},
		{"link.other_host", to(ArmUDP, one("link.rx_otherhost_dropped")), []compare.LedgerRow{row("link.other_host", 100, exact)}},
		{"link.other_host, xdp: once, though passed on", to(ArmXDP, map[string]uint64{"redirect.foreign_mac": 100, "link.rx_otherhost_dropped": 100}),
			[]compare.LedgerRow{row("link.other_host", 100, exact)}},
		{"ip.header_error", to(ArmUDP, one("ip.InHdrErrors")), []compare.LedgerRow{row("ip.header_error", 100, exact)}},
		{"ip.truncated", to(ArmUDP, one("ipext.InTruncatedPkts")), []compare.LedgerRow{row("ip.truncated", 100, exact)}},
		{"ip.addr_error, IPv6", to(ArmUDP, one("ip6.InAddrErrors")), []compare.LedgerRow{row("ip.addr_error", 100, exact)}},
		{"ip.no_route", to(ArmUDP, one("ipext.InNoRoutes")), []compare.LedgerRow{row("ip.no_route", 100, exact)}},
		{"ip.rp_filter", to(ArmUDP, one("tcpext.IPReversePathFilter")), []compare.LedgerRow{row("ip.rp_filter", 100, exact)}},
		{"ip.discard", to(ArmUDP, one("ip.InDiscards")), []compare.LedgerRow{row("ip.discard", 100, exact)}},
		{"nf.drop", to(ArmUDP, map[string]uint64{"nft.input": 60, "nft.prerouting": 40}), []compare.LedgerRow{row("nf.drop", 100, exact)}},
		{"udp.csum_bad, 60 B: found at entry, no socket drop", to(ArmUDP, map[string]uint64{"udp.InCsumErrors": 100, "udp.InErrors": 100}),
			[]compare.LedgerRow{row("udp.csum_bad", 100, exact)}},
		{"udp.csum_bad, 200 B: found when read, socket drop as well", to(ArmUDP, map[string]uint64{"udp.InCsumErrors": 100, "udp.InErrors": 100, "sock.drops": 100}),
			[]compare.LedgerRow{row("udp.csum_bad", 100, exact)}},
		{"small bad checksums beside overflow", to(ArmUDP, map[string]uint64{"udp.InCsumErrors": 40, "udp.RcvbufErrors": 60, "udp.InErrors": 100, "sock.drops": 60}),
			[]compare.LedgerRow{row("udp.csum_bad", 40, exact), row("udp.rcvbuf_full", 60, exact)}},
		{"long bad checksums beside overflow", to(ArmUDP, map[string]uint64{"udp.InCsumErrors": 40, "udp.RcvbufErrors": 60, "udp.InErrors": 100, "sock.drops": 100}),
			[]compare.LedgerRow{row("udp.csum_bad", 40, exact), row("udp.rcvbuf_full", 60, exact)}},
		{"udp.no_port", to(ArmUDP, one("udp.NoPorts")), []compare.LedgerRow{row("udp.no_port", 100, exact)}},
		{"udp.rcvbuf_full", to(ArmUDP, map[string]uint64{"sock.drops": 100, "udp.RcvbufErrors": 100, "udp.InErrors": 100}), []compare.LedgerRow{row("udp.rcvbuf_full", 100, exact)}},
		{"udp.rcvbuf_full: a kernel that forgot the SNMP counter", to(ArmUDP, one("sock.drops")), []compare.LedgerRow{row("udp.rcvbuf_full", 100, exact)}},
		{"udp.rcvbuf_full without SO_MEMINFO", set(ArmUDP, func(in *Input) {
			delete(in.To, "sock.drops")
			in.To["udp.RcvbufErrors"], in.To["udp.InErrors"] = 100, 100
		}), []compare.LedgerRow{row("udp.rcvbuf_full", 100, exact)}},
		{"udp.memory_full", to(ArmUDP, map[string]uint64{"sock.drops": 100, "udp.MemErrors": 80, "udp.RcvbufErrors": 20, "udp.InErrors": 100}),
			[]compare.LedgerRow{row("udp.memory_full", 80, exact), row("udp.rcvbuf_full", 20, exact)}},
		{"udp.other_error: a socket filter", to(ArmUDP, map[string]uint64{"sock.drops": 100, "udp.InErrors": 100}), []compare.LedgerRow{row("udp.other_error", 100, exact)}},
		{"udp.queued_unread", to(ArmUDP, one("sock.queued")), []compare.LedgerRow{row("udp.queued_unread", 100, exact)}},
		{"udp.rcvbuf_full with GRO: 5 drops stand for 100 packets", to(ArmUDPGRO, map[string]uint64{"sock.drops": 5, "udp.RcvbufErrors": 5, "udp.InErrors": 5}),
			[]compare.LedgerRow{row("udp.rcvbuf_full", 100, bounded)}},
		{"GRO: one drop stands for 64 packets at most", to(ArmUDPGRO, map[string]uint64{"sock.drops": 1}), []compare.LedgerRow{row("udp.rcvbuf_full", 64, bounded)}},
		{"GRO: known rows first", to(ArmUDPGRO, map[string]uint64{"sock.drops": 5, "udp.NoPorts": 60}),
			[]compare.LedgerRow{row("udp.no_port", 60, exact), row("udp.rcvbuf_full", 40, bounded)}},
		{"reader.short", to(ArmXDP, one("reader.short")), []compare.LedgerRow{row("reader.short", 100, exact)}},
		{"reader.corrupt", to(ArmXDP, map[string]uint64{"reader.corrupt_udp": 90, "reader.corrupt_ip": 10}), []compare.LedgerRow{row("reader.corrupt", 100, exact)}},
		{"reader.late", to(ArmXDP, one("reader.late")), []compare.LedgerRow{row("reader.late", 100, exact)}},
		{"fragments.missing, fragments.overlap: as sent", pieced(ArmUDP, 60, 40, 0, map[string]uint64{"ip.ReasmTimeout": 60, "ipext.ReasmOverlaps": 40, "ip.ReasmFails": 100}),
			[]compare.LedgerRow{row("fragments.missing", 60, exact), row("fragments.overlap", 40, exact)}},
		{"the same over IPv6, where overlaps are not shown", pieced(ArmUDP, 60, 40, 0, map[string]uint64{"ip6.ReasmTimeout": 60, "ip6.ReasmFails": 100}),
			[]compare.LedgerRow{row("fragments.missing", 60, exact), row("fragments.overlap", 40, exact)}},
		{"the same with AF_XDP", pieced(ArmXDP, 60, 40, 0, map[string]uint64{"fragments.timeout": 60, "fragments.overlap": 40}),
			[]compare.LedgerRow{row("fragments.missing", 60, exact), row("fragments.overlap", 40, exact)}},
		{"a ring that lost fragments of 40 datagrams, of 20 all", pieced(ArmUDP, 60, 0, 50, map[string]uint64{"ip.ReasmTimeout": 80, "ip.ReasmFails": 80}),
			[]compare.LedgerRow{row("veth.ring_full", 40, bounded), row("fragments.missing", 60, exact)}},
		{"fragments.memory: the kernel counts each fragment that it refuses", pieced(ArmUDP, 60, 0, 0, map[string]uint64{"ip.ReasmTimeout": 60, "ip.ReasmFails": 180}),
			[]compare.LedgerRow{row("fragments.missing", 60, exact), row("fragments.memory", 40, bounded)}},
		{"fragments.memory with AF_XDP", pieced(ArmXDP, 60, 0, 0, map[string]uint64{"fragments.timeout": 10, "fragments.evicted": 90}),
			[]compare.LedgerRow{row("fragments.missing", 10, exact), row("fragments.memory", 90, exact)}},
		{"fragments.invalid", pieced(ArmXDP, 0, 0, 0, map[string]uint64{"fragments.inconsistent": 100}), []compare.LedgerRow{row("fragments.invalid", 100, exact)}},
		{"fragments.timeout: nobody saw where the others went", pieced(ArmUDP, 0, 0, 0, map[string]uint64{"ip.ReasmTimeout": 100, "ip.ReasmFails": 100}),
			[]compare.LedgerRow{row("fragments.timeout", 100, exact)}},
		{"reassembly means nothing where there are no fragments", to(ArmUDP, map[string]uint64{"ip.ReasmTimeout": 100, "ip.ReasmFails": 100}), nil},
		{"nobody saw it", live(ArmUDP, 1000, 900), nil},
		{"stack counters mean nothing to xdp", to(ArmXDP, map[string]uint64{"udp.NoPorts": 100, "ip.InHdrErrors": 50, "sock.drops": 5}), nil},
		{"other traffic cannot take a socket's loss", to(ArmUDP, map[string]uint64{"ip.InHdrErrors": 5000, "udp.NoPorts": 300, "sock.drops": 100, "udp.RcvbufErrors": 100, "udp.InErrors": 100}),
			[]compare.LedgerRow{row("udp.rcvbuf_full", 100, exact)}},
		{"other traffic is cut to what is left, in path order", to(ArmUDP, map[string]uint64{"ip.InHdrErrors": 30, "udp.NoPorts": 300, "sock.drops": 20, "udp.RcvbufErrors": 20, "udp.InErrors": 20}),
			[]compare.LedgerRow{row("ip.header_error", 30, bounded), row("udp.no_port", 50, bounded), row("udp.rcvbuf_full", 20, exact)}},
		{"own witnesses beyond the loss are cut in path order", to(ArmXDP, counters(vethSUT(1000, 180, 0), map[string]uint64{"xsk.rx_dropped": 80, "xsk.rx_fill_ring_empty_descs": 80, "xsk.rx_ring_full": 100})),
			[]compare.LedgerRow{row("xsk.fill_ring_empty", 80, bounded), row("xsk.rx_ring_full", 20, bounded)}},
	} {
		for _, w := range c.want {
			reached[w.At] = true
		}
		t.Run(c.name, func(t *testing.T) {
			r := Build(c.in)
			got := slices.Clone(r.Rows)
			for i := range got {
				if got[i].Witness == "" || got[i].Note == "" {
					t.Errorf("%s: witness %q, note %q", got[i].At, got[i].Witness, got[i].Note)
				}
				got[i].Witness, got[i].Note = "", ""
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("rows (-want +got):\n%s", d)
			}
			checkAccount(t, c.in, r)
		})
	}
	for _, r := range Rows() {
		if !reached[r.ID] {
			t.Errorf("no case reaches row %s", r.ID)
		}
	}
}

// checkAccount holds for every input: the record's own identities, known ids in path order, no empty row.
func checkAccount(t *testing.T, in Input, r Result) {
	t.Helper()
	if r.Lost != subtract(in.Sent, in.Unique) {
		t.Errorf("lost %d of sent %d, unique %d", r.Lost, in.Sent, in.Unique)
	}
	trial := compare.Trial{Sent: max(in.Sent, in.Unique), Received: in.Unique, Lost: r.Lost, Ledger: r.Rows,
		Unexplained: r.Unexplained, Valid: true, Seconds: 1, Started: time.Unix(0, 0)}
	if err := trial.Check(); err != nil {
		t.Error(err)
	}
	at := -1
	for _, row := range r.Rows {
		i := slices.IndexFunc(Rows(), func(d Row) bool { return d.ID == row.At })
		if i <= at {
			t.Errorf("row %s is unknown, double or out of path order", row.At)
		}
		at = i
		if row.Packets == 0 {
			t.Errorf("row %s is empty", row.At)
		}
	}
	if r.OwnExcess > 0 || r.SharedExcess > 0 {
		if !slices.ContainsFunc(r.Checks, func(c compare.CrossCheck) bool { return !c.OK }) {
			t.Errorf("witnesses exceed the loss by %d and %d, and no check failed: %+v", r.OwnExcess, r.SharedExcess, r.Checks)
		}
	}
}

// The grade in the documentation follows from the witness's trust.
func TestDocumentedGrades(t *testing.T) {
	for _, s := range ledgerRows() {
		in := live(s.arms&-s.arms, 10, 5)
		in.Sender = s.senders & -s.senders
		want := gradeExact
		switch s.claim(&in).trust {
		case own:
		case pieces:
			want = gradePieces
		default:
			want = gradeShared
		}
		if got := s.doc.Grade; got != want && !(got == gradeMerged && want == gradeExact) {
			t.Errorf("%s: grade %q, want %q", s.doc.ID, got, want)
		}
	}
}

func TestLedgerWithoutLoss(t *testing.T) {
	in := live(ArmUDP, 1000, 1000)
	in.To["reader.received"], in.To["udp.InDatagrams"] = 1000, 1000
	r := Build(in)
	if r.Lost != 0 || len(r.Rows) != 0 || r.Unexplained != 0 || len(r.Blind) != 0 {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("check failed: %+v", c)
		}
	}
}

// TestLedgerOfFragmentsWithoutLoss: frames are checked against frames, datagrams against datagrams.
func TestLedgerOfFragmentsWithoutLoss(t *testing.T) {
	for _, arm := range []Arm{ArmUDP, ArmXDP} {
		in := pieced(arm, 0, 0, 0, map[string]uint64{"reader.received": 1000, "redirect.redirected": 3000, "fragments.frames": 3000, "udp.InDatagrams": 1000})
		if arm == ArmUDP {
			delete(in.To, "fragments.frames")
		}
		in.Unique = 1000
		r := Build(in)
		if r.Lost != 0 || len(r.Rows) != 0 || len(r.Blind) != 0 {
			t.Errorf("%+v", r)
		}
		for _, c := range r.Checks {
			if !c.OK {
				t.Errorf("check failed: %+v", c)
			}
		}
		in.To["ip.ReasmReqds"], in.To["fragments.received"] = 2990, 2990
		if !slices.ContainsFunc(Build(in).Checks, func(c compare.CrossCheck) bool {
			return strings.HasPrefix(c.What, "fragments sent") && !c.OK && c.B == 2990
		}) {
			t.Errorf("10 fragments that nobody saw were not missed: %+v", Build(in).Checks)
		}
	}
}

func TestLedgerMoreReceivedThanSent(t *testing.T) {
	r := Build(live(ArmUDP, 900, 1000))
	if r.Lost != 0 || r.Unexplained != 0 || r.Checks[0].OK || r.Checks[0].A != 1000 || r.Checks[0].B != 900 {
		t.Errorf("%+v", r)
	}
}

func TestLedgerBlind(t *testing.T) {
	in := live(ArmXDP, 10, 5)
	delete(in.To, "xsk.queued")
	delete(in.To, "xsk.rx_ring_full")
	r := Build(in)
	if got := strings.Join(r.Blind, " "); got != "xsk.rx_ring_full xsk.queued_unread" {
		t.Errorf("blind: %s", got)
	}
	if r.Unexplained != 5 {
		t.Errorf("unexplained %d", r.Unexplained)
	}
}

// Duplicates that were dropped are in the witnesses, and no number was lost by them.
func TestLedgerDroppedDuplicates(t *testing.T) {
	in := live(ArmUDP, 1000, 990)
	in.Injected = 50
	in.From = vethPeer(1020, 30)
	maps.Copy(in.To, vethSUT(1020, 0, 30))
	in.To["reader.duplicate"] = 30
	r := Build(in)
	if r.OwnExcess != 0 || r.Unexplained != 0 || len(r.Rows) != 1 || r.Rows[0].Packets != 10 {
		t.Errorf("%+v", r)
	}
	for _, c := range r.Checks {
		if !c.OK {
			t.Errorf("check failed: %+v", c)
		}
	}
	in.To["reader.duplicate"] = 49 // now only one duplicate can have been dropped, but 20 too many drops are claimed
	if r = Build(in); r.OwnExcess != 19 {
		t.Errorf("own excess %d, want 19", r.OwnExcess)
	}
}

func TestLedgerChecks(t *testing.T) {
	find := func(r Result, what string) *compare.CrossCheck {
		for i := range r.Checks {
			if strings.Contains(r.Checks[i].What, what) {
				return &r.Checks[i]
			}
		}
		return nil
	}
	type change = map[string]uint64
	for _, c := range []struct {
		what     string
		arm      Arm
		good     change
		bad      change
		badFrom  change
		goodFrom change
	}{
		{what: "duplicates received", arm: ArmXDP, good: change{"reader.duplicate": 0}, bad: change{"reader.duplicate": 1}},
		{what: "generator's frames", arm: ArmXDP, badFrom: change{"ethtool.tx_queue_0_xdp_xmit": 999}},
		{what: "NAPI took", arm: ArmUDP, bad: change{"ethtool.rx_queue_0_xdp_packets": 999}},
		{what: "sender's rtnl tx_dropped", arm: ArmUDP, badFrom: change{"ethtool.tx_queue_0_xdp_xmit_errors": 2}},
		{what: "receiver's rtnl rx_dropped", arm: ArmUDP, good: change{"ethtool.rx_queue_0_drops": 3, "link.rx_dropped": 3}, bad: change{"ethtool.rx_queue_0_drops": 3, "link.rx_dropped": 2}},
		{what: "XSK rx_dropped", arm: ArmXDP, good: change{"ethtool.rx_queue_0_drops": 3, "xsk.rx_ring_full": 3}, bad: change{"ethtool.rx_queue_0_drops": 2, "link.rx_dropped": 2, "xsk.rx_ring_full": 3}},
		{what: "redirected =", arm: ArmXDP, good: change{"redirect.redirected": 13, "reader.received": 10, "xsk.queued": 3}, bad: change{"redirect.redirected": 13, "reader.received": 10}},
		{what: "datagrams read", arm: ArmUDP, good: change{"udp.InDatagrams": 10, "reader.received": 9, "reader.foreign": 1}, bad: change{"udp.InDatagrams": 9, "reader.received": 10}},
		{what: "SO_MEMINFO", arm: ArmUDP, good: change{"sock.drops": 8, "udp.RcvbufErrors": 5, "udp.InCsumErrors": 3, "udp.InErrors": 8}, bad: change{"sock.drops": 5, "udp.RcvbufErrors": 6}},
		{what: "tp_packets", arm: ArmPacket, good: change{"packet.packets": 12, "packet.drops": 2, "reader.received": 10}, bad: change{"packet.packets": 12, "reader.received": 10}},
	} {
		for _, ok := range []bool{true, false} {
			in := live(c.arm, 1000, 1000)
			if ok {
				maps.Copy(in.To, c.good)
				maps.Copy(in.From, c.goodFrom)
			} else {
				maps.Copy(in.To, c.bad)
				maps.Copy(in.From, c.badFrom)
			}
			k := find(Build(in), c.what)
			if k == nil {
				t.Errorf("%s: no such check", c.what)
			} else if k.OK != ok {
				t.Errorf("%s: ok is %v, want %v: %+v", c.what, k.OK, ok, *k)
			}
		}
	}
}

// counterNames is every counter a row or check looks at.
func counterNames() []string {
	m := counters(vethPeer(0, 0), vethSUT(0, 0, 0), xskZero(), udpZero(), readerZero())
	for _, n := range []string{"packet.packets", "packet.drops", "packet.queued", "nft.a", "qdisc.drops", "ip.OutDiscards", "udp6.MemErrors",
		"reader.received", "reader.duplicate", "reader.foreign", "redirect.redirected", "redirect.vlan", "xsk.tx_invalid_descs",
		"stat.arp_cache.unresolved_discards", "udp.InDatagrams", "ethtool.tx_queue_17_xdp_xmit_errors", "ethtool.rx_queue_3_drops"} {
		m[n] = 0
	}
	return slices.Sorted(maps.Keys(m))
}

func randomInput(r *rand.Rand) Input {
	number := func() uint64 {
		switch r.IntN(8) {
		case 0:
			return ^uint64(0) - uint64(r.IntN(3))
		case 1:
			return r.Uint64()
		case 2, 3:
			return 0
		default:
			return uint64(r.IntN(1000))
		}
	}
	fill := func() map[string]uint64 {
		m := map[string]uint64{}
		keep := r.IntN(4)
		for _, n := range counterNames() {
			if r.IntN(4) <= keep {
				m[n] = number()
			}
		}
		return m
	}
	return Input{Arm: Arm(1) << r.IntN(6), Sender: Sender(1) << r.IntN(4), Generic: r.IntN(2) == 0, ZeroCopy: r.IntN(2) == 0,
		Sent: number(), Unique: number(), Injected: number(), From: fill(), To: fill()}
}

func TestLedgerRandom(t *testing.T) {
	for seed := range uint64(20_000) {
		in := randomInput(rand.New(rand.NewPCG(seed, 7)))
		r := Build(in)
		checkAccount(t, in, r)
		if d := cmp.Diff(r, Build(in)); d != "" {
			t.Errorf("not deterministic: %s", d)
		}
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, in)
		}
	}
}

func FuzzLedger(f *testing.F) {
	f.Add(uint64(1), uint64(2), uint64(1000), uint64(10))
	f.Fuzz(func(t *testing.T, seed1, seed2, sent, unique uint64) {
		in := randomInput(rand.New(rand.NewPCG(seed1, seed2)))
		in.Sent, in.Unique = sent, unique
		checkAccount(t, in, Build(in))
	})
}

func TestRowIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Rows() {
		if seen[r.ID] {
			t.Errorf("id %s twice", r.ID)
		}
		seen[r.ID] = true
		for field, text := range map[string]string{"What": r.What, "Witness": r.Witness, "Grade": r.Grade, "Hint": r.Hint} {
			if text == "" || strings.ContainsAny(text, "|\n") {
				t.Errorf("%s: %s is %q: want one line without a bar", r.ID, field, text)
			}
		}
		if a, b, ok := strings.Cut(r.ID, "."); !ok || a == "" || b == "" {
			t.Errorf("id %q is not place.event", r.ID)
		}
	}
}
