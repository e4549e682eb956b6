// SPDX-License-Identifier: Apache-2.0

package measure

import "strings"

// to and from make the plain witnesses: the sum of named counters of one side.
func to(t trust, names ...string) func(*Input) claim {
	return func(in *Input) claim { return plain(in.To, in.ToName, t, names) }
}

func from(t trust, names ...string) func(*Input) claim {
	return func(in *Input) claim { return plain(in.From, in.FromName, t, names) }
}

func plain(m map[string]uint64, side string, t trust, names []string) claim {
	n, known := sum(m, names...)
	var moved []string
	for _, name := range names {
		if m[name] > 0 {
			moved = append(moved, name)
		}
	}
	return claim{packets: n, known: known, trust: t, witness: side + " " + strings.Join(moved, " + ")}
}

// claimNotSent: veth counts every frame that reached ndo_xdp_xmit, as xmit or as xmit_errors (veth.c, veth_xdp_xmit).
// Frames refused before that (xdp_do_redirect) move no counter.
func claimNotSent(in *Input) claim {
	ok, known := perQueue(in.From, "tx", "xdp_xmit")
	bad, _ := perQueue(in.From, "tx", "xdp_xmit_errors")
	return claim{packets: subtract(in.frames(), addCapped(ok, bad)), known: known,
		witness: in.FromName + " sent - ethtool tx_queue_N_xdp_xmit - tx_queue_N_xdp_xmit_errors"}
}

func claimRingFull(in *Input) claim {
	n, known := perQueue(in.From, "tx", "xdp_xmit_errors")
	return claim{packets: n, known: known || !in.veth(), witness: in.FromName + " ethtool tx_queue_N_xdp_xmit_errors"}
}

// claimIPDiscard: the IP layer counts what the device or its queueing discipline refused as its own discard too
// (ip_send_skb), once for each message that GSO cuts later.
func claimIPDiscard(in *Input) claim {
	c := plain(in.From, in.FromName, shared, []string{"ip.OutDiscards", "ip6.OutDiscards"})
	qdisc, _ := sum(in.From, "qdisc.drops")
	c.packets = subtract(c.packets, addCapped(claimDeviceDrop(in).packets, qdisc))
	return c
}

// claimXDPTXErrors: veth counts frames of XDP_TX that did not fit the other end's ring (veth.c, veth_xdp_flush_bq).
func claimXDPTXErrors(in *Input) claim {
	n, known := perQueue(in.From, "rx", "xdp_tx_errors")
	return claim{packets: n, known: known, witness: in.FromName + " ethtool rx_queue_N_xdp_tx_errors"}
}

// claimDeviceDrop: veth's tx_dropped is the sum of skbs that did not fit the ring, of xmit_errors of live frames and of
// failed XDP_TX (veth_get_stats64). The latter two have other rows or are not ours.
func claimDeviceDrop(in *Input) claim {
	n, known := in.From["link.tx_dropped"]
	xmit, _ := perQueue(in.From, "tx", "xdp_xmit_errors")
	tx, _ := perQueue(in.From, "rx", "xdp_tx_errors")
	// An AF_PACKET ring keeps what the device dropped and sends it again (tpacket_snd).
	again := in.From["packet.retried"]
	return claim{packets: subtract(n, addCapped(addCapped(xmit, tx), again)), known: known, trust: shared, witness: in.FromName + " rtnl tx_dropped"}
}

// claimRxDropped: on veth rx_dropped already holds the sender's xmit_errors and the receiver's rx_queue_N_drops; a
// driver may count failed redirects in it too. And it holds what the sender's XDP_TX could not send (veth_get_stats64).
func claimRxDropped(in *Input) claim {
	n, known := in.To["link.rx_dropped"]
	held, _ := perQueue(in.From, "tx", "xdp_xmit_errors")
	back, _ := perQueue(in.From, "rx", "xdp_tx_errors")
	held = addCapped(held, back)
	drops, counted := perQueue(in.To, "rx", "drops")
	if !counted {
		drops = xskLosses(in)
	}
	return claim{packets: subtract(n, addCapped(held, drops)), known: known, trust: weak, witness: in.ToName + " rtnl rx_dropped"}
}

func claimVethDrop(in *Input) claim {
	n, known := perQueue(in.To, "rx", "drops")
	if !in.veth() {
		n, known = 0, true // drivers use the name for other things; theirs are in rx_dropped
	}
	return claim{packets: n, known: known, trust: shared, witness: in.ToName + " ethtool rx_queue_N_drops"}
}

func claimNoSocket(in *Input) claim {
	n, known := in.To["redirect.no_socket"]
	return claim{packets: subtract(n, in.To["redirect.other_queue"]), known: known, witness: in.ToName + " redirect program no_socket"}
}

func claimXDPDrops(in *Input) claim {
	n, known := perQueue(in.To, "rx", "xdp_drops")
	if !in.veth() || in.Generic {
		n, known = 0, true
	}
	ours, _ := sum(in.To, "redirect.no_socket", "redirect.dropped", "redirect.counted")
	return claim{packets: subtract(n, ours), known: known, trust: shared, witness: in.ToName + " ethtool rx_queue_N_xdp_drops"}
}

// xskLosses is what reached a socket and was lost there. rx_fill_ring_empty_descs must not be added: in copy mode its
// packets are in rx_dropped.
func xskLosses(in *Input) uint64 {
	n, _ := sum(in.To, "xsk.rx_dropped", "xsk.rx_ring_full")
	return n
}

// claimRedirectFailed: a failed redirect lands in rx_queue_N_drops, whether or not an XSK counter moved (veth.c).
func claimRedirectFailed(in *Input) claim {
	n, known := perQueue(in.To, "rx", "drops")
	if !in.veth() || in.Generic {
		n, known = 0, true
	}
	return claim{packets: subtract(n, xskLosses(in)), known: known, witness: in.ToName + " ethtool rx_queue_N_drops"}
}

// xskDropped splits rx_dropped of a copy-mode socket: each failed allocation from the fill ring is one dropped packet
// there (net/xdp/xsk.c), and the only other reason is the length.
func xskDropped(in *Input) (empty, long, undecided uint64, known bool) {
	dropped, known := in.To["xsk.rx_dropped"]
	descs, split := in.To["xsk.rx_fill_ring_empty_descs"]
	if !split || in.ZeroCopy {
		return 0, 0, dropped, known
	}
	empty = min(dropped, descs)
	return empty, dropped - empty, 0, known
}

func claimFillEmpty(in *Input) claim {
	n, _, _, known := xskDropped(in)
	return claim{packets: n, known: known, witness: in.ToName + " XDP_STATISTICS rx_dropped (rx_fill_ring_empty_descs)"}
}

func claimTooLong(in *Input) claim {
	_, n, _, known := xskDropped(in)
	return claim{packets: n, known: known, witness: in.ToName + " XDP_STATISTICS rx_dropped"}
}

func claimXSKDropped(in *Input) claim {
	_, _, n, known := xskDropped(in)
	return claim{packets: n, known: known, witness: in.ToName + " XDP_STATISTICS rx_dropped"}
}

// claimBacklog: without NAPI on the receiving veth, an skb that finds the backlog full is counted by the sending end
// too, as tx_dropped (veth_xmit), and has its row there.
func claimBacklog(in *Input) claim {
	n, known := in.To["softnet.dropped"]
	if in.veth() && in.Sender&sendSKB != 0 {
		n = subtract(n, claimDeviceDrop(in).packets)
	}
	return claim{packets: n, known: known, trust: shared, witness: in.ToName + " softnet_stat dropped"}
}

func claimOtherHost(in *Input) claim {
	if in.Arm&(ArmXDP|ArmSink) != 0 {
		return plain(in.To, in.ToName, shared, []string{"redirect.foreign_mac"})
	}
	return plain(in.To, in.ToName, shared, []string{"link.rx_otherhost_dropped"})
}

func claimNetfilter(in *Input) claim {
	c := claim{known: true, trust: shared, witness: in.ToName + " nft counters"}
	for name, v := range in.To {
		if strings.HasPrefix(name, "nft.") {
			c.packets = addCapped(c.packets, v)
		}
	}
	return c
}

// udpDrops takes a UDP socket's drops apart. sk_drops (SO_MEMINFO) counts every datagram the socket refused: for want
// of buffer or of memory, but also bad checksums found when read and filters. SNMP tells these apart, for the whole
// namespace; it is used only to take out of sk_drops what RcvbufErrors and MemErrors do not cover.
type udpDrops struct {
	rcvbuf, memory, other uint64
	own                   bool // rcvbuf comes from the socket itself
	known                 bool
}

func splitUDP(in *Input) udpDrops {
	full, knownSNMP := sum(in.To, "udp.RcvbufErrors", "udp6.RcvbufErrors")
	memory, _ := sum(in.To, "udp.MemErrors", "udp6.MemErrors")
	csum, _ := sum(in.To, "udp.InCsumErrors", "udp6.InCsumErrors")
	errs, _ := sum(in.To, "udp.InErrors", "udp6.InErrors")
	other := subtract(errs, addCapped(addCapped(full, memory), csum))
	drops, own := in.To["sock.drops"]
	if !own {
		return udpDrops{rcvbuf: full, memory: memory, other: other, known: knownSNMP}
	}
	beyond := subtract(drops, addCapped(full, memory)) // refused, but not for want of room
	atRead := min(beyond, csum)
	filtered := min(beyond-atRead, other)
	room := drops - atRead - filtered
	d := udpDrops{own: true, known: true, other: other, memory: min(memory, room)}
	d.rcvbuf = room - d.memory
	return d
}

// mostMerged is UDP_GRO_CNT_MAX: how many datagrams the kernel merges into one at most (net/ipv4/udp_offload.c).
const mostMerged = 64

func (in *Input) merged(c claim) claim {
	if in.Arm == ArmUDPGRO && c.packets > 0 {
		c.most = c.packets * mostMerged
		if c.packets > ^uint64(0)/mostMerged {
			c.most = ^uint64(0)
		}
		c.note = "the witness counts merged datagrams of up to 64 packets"
	}
	return c
}

func claimRcvbuf(in *Input) claim {
	d := splitUDP(in)
	c := claim{packets: d.rcvbuf, known: d.known, witness: in.ToName + " SO_MEMINFO drops"}
	if !d.own {
		c.trust = shared
		c.witness = in.ToName + " Udp RcvbufErrors (SO_MEMINFO was not read)"
	}
	return in.merged(c)
}

func claimUDPMemory(in *Input) claim {
	d := splitUDP(in)
	return in.merged(claim{packets: d.memory, known: d.known, trust: shared, witness: in.ToName + " Udp MemErrors"})
}

func claimUDPOther(in *Input) claim {
	d := splitUDP(in)
	return in.merged(claim{packets: d.other, known: d.known, trust: shared, witness: in.ToName + " Udp InErrors"})
}

func claimQueued(in *Input) claim {
	n, known := in.To["sock.queued"]
	return in.merged(claim{packets: n, known: known, witness: in.ToName + " datagrams left in the socket"})
}
