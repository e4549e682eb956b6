// SPDX-License-Identifier: Apache-2.0

package measure

// Row describes one ledger row for people: documentation and reports are made from it. Ids are stable.
type Row struct {
	ID      string
	What    string // what happened to the packet, one line
	Witness string // the counter it is read from
	Grade   string // how far to trust it, in general; a record's row says it for that trial
	Hint    string // what it tells, or what to do
}

// Rows lists all ledger rows in path order: sender, wire and device, XDP and AF_XDP, stack, socket, reader.
func Rows() []Row {
	specs := ledgerRows()
	out := make([]Row, len(specs))
	for i, s := range specs {
		out[i] = s.doc
	}
	return out
}

// AtSender tells whether a row is of packets that never left the sending device.
func AtSender(id string) bool {
	switch id {
	case "gen.not_sent", "tx.ip_discard", "tx.neighbour", "tx.qdisc", "tx.device_drop", "xsk.tx_invalid_descs":
		return true
	}
	return false
}

// rowSpec is a row with the arms and senders it applies to and its witness.
type rowSpec struct {
	doc     Row
	arms    Arm
	senders Sender
	claim   func(*Input) claim
}

const (
	armsUDP   = ArmUDP | ArmUDPGRO
	armsStack = armsUDP | ArmPacket // packets climb into the stack and must do so to arrive
	armsAll   = armsStack | ArmNoSocket | ArmXDP | ArmSink
	sendSKB   = SendXSK | SendPacket | SendUDP // one sk_buff per frame
	sendAll   = sendSKB | SendLive | SendXDPTX
)

// Grades in general.
const (
	gradeExact  = "exact"
	gradeShared = "exact if the account closes, else bounded: it counts other traffic too"
	gradePieces = "exact if the account closes to the packet, else bounded: it counts fragments, or parts of datagrams"
	gradeMerged = "exact; bounded with UDP_GRO, whose drops count merged datagrams"
)

// ledgerRows is the ledger, in path order.
func ledgerRows() []rowSpec {
	return []rowSpec{
		{Row{"gen.not_sent", "the generator redirected the frame, and it never reached the sending device's transmit function",
			"sender: sent - (ethtool tx_queue_N_xdp_xmit + tx_queue_N_xdp_xmit_errors)", gradeExact,
			"frame too long for live frames (3,408 B), or the receiving end has no NAPI (GRO off and no XDP)"},
			armsAll, SendLive, claimNotSent},
		{Row{"send.failed", "the responder had read the request, and its answer could not be sent", "sender: answers that found no room or were refused", gradeExact,
			"the send buffer or TX ring stayed full, or a netfilter rule refused it"},
			armsAll, sendSKB, from(own, "send.failed")},
		{Row{"send.silent", "the responder had read the request, and no answer was due to it", "sender: requests without an answer", gradeExact,
			"it was cut, or itself an answer"},
			armsAll, sendSKB, from(own, "send.silent")},
		{Row{"tx.ip_discard", "the sender's IP layer threw it away", "sender: Ip OutDiscards without what the device and its qdisc dropped", gradeShared,
			"no memory or no usable route at the sender"},
			armsAll, SendUDP, claimIPDiscard},
		{Row{"tx.neighbour", "it waited for a neighbour's address, and the wait queue was full or nobody answered",
			"sender: /proc/net/stat/{arp,ndisc}_cache unresolved_discards", gradeShared, "resolve the neighbour before the run"},
			armsAll, SendUDP, from(shared, "stat.arp_cache.unresolved_discards", "stat.ndisc_cache.unresolved_discards")},
		{Row{"tx.qdisc", "the sender's queueing discipline dropped it", "sender: rtnetlink qdisc drops", gradeShared,
			"the qdisc's limit is smaller than the burst; AF_XDP does not pass it"},
			armsAll, SendUDP, from(shared, "qdisc.drops")},
		{Row{"xsk.tx_invalid_descs", "the kernel refused the sender's descriptor", "sender: XDP_STATISTICS tx_invalid_descs", gradeExact,
			"length 0, longer than a chunk, or outside the UMEM: a fault of the sender"},
			armsAll, SendXSK, from(own, "xsk.tx_invalid_descs")},
		{Row{"xsk.tx_unsent", "it lay in the AF_XDP TX ring when the sender stopped", "sender: descriptors left in the TX ring", gradeExact,
			"the kernel did not take it: the device was stopped or stuck"},
			armsAll, SendXSK, from(own, "xsk.tx_unsent")},
		{Row{"tx.xdp_tx_full", "the program sent it back, and the device had no room", "sender: ethtool rx_queue_N_xdp_tx_errors", gradeExact,
			"on veth: the ring of 256 entries at the other end was full"},
			armsAll, SendXDPTX, claimXDPTXErrors},
		{Row{"tx.device_drop", "the sending device dropped it",
			"sender: rtnl tx_dropped without tx_queue_N_xdp_xmit_errors and rx_queue_N_xdp_tx_errors", gradeShared,
			"on veth: the receiver's 256-entry ring was full, so the receiver fell behind; also link down or frame too long"},
			armsAll, sendAll, claimDeviceDrop},
		{Row{"veth.ring_full", "the receiving veth's ring of 256 entries was full", "sender: ethtool tx_queue_N_xdp_xmit_errors", gradeExact,
			"what empties the ring (NAPI with the stack or the XDP program) fell behind"},
			armsAll, sendAll, claimRingFull},
		{Row{"nic.rx_missed", "the NIC had no free descriptor", "receiver: rtnl rx_missed_errors", gradeShared,
			"NAPI fell behind: longer rings (ethtool -G), or a core of its own"},
			armsAll, sendAll, to(shared, "link.rx_missed_errors")},
		{Row{"nic.rx_error", "the NIC saw a bad frame", "receiver: rtnl rx_errors", gradeShared, "cable, transceiver, or frame length"},
			armsAll, sendAll, to(shared, "link.rx_errors")},
		{Row{"link.rx_dropped", "the receiving device or the stack's entry dropped it",
			"receiver: rtnl rx_dropped without what other rows hold (ring full, failed redirects)", gradeShared,
			"a protocol nobody handles, or a reason only the driver knows: see ethtool -S"},
			armsAll &^ ArmNoSocket, sendAll, claimRxDropped},
		{Row{"veth.rx_drop", "veth took it from the ring and could not make a packet of it", "receiver: ethtool rx_queue_N_drops", gradeShared,
			"no memory, or an XDP program failed"},
			armsAll &^ (ArmXDP | ArmSink), sendAll, claimVethDrop},
		{Row{"xdp.no_socket", "it came on a queue where no AF_XDP socket was bound", "receiver: redirect program, reason no_socket", gradeExact,
			"the socket was closed, or not yet in the map"},
			ArmXDP, sendAll, claimNoSocket},
		{Row{"xdp.other_queue", "it came on a queue that no reader serves", "receiver: redirect program, frames on queues without socket", gradeExact,
			"serve all queues (--queues), or steer the flow"},
			ArmXDP, sendAll, to(own, "redirect.other_queue")},
		{Row{"xdp.not_ours", "the XDP program took it for other traffic and passed it to the kernel",
			"receiver: XDP program, reasons too_short, vlan, foreign_ip, ip_options, fragment, foreign_port", gradeShared,
			"addresses, ports or tags are not the plan's"},
			ArmXDP | ArmSink, sendAll, to(weak, "redirect.too_short", "redirect.vlan", "redirect.foreign_ip", "redirect.ip_options",
				"redirect.fragment", "redirect.foreign_port")},
		{Row{"xdp.dropped", "an XDP program dropped it, or ended in error", "receiver: ethtool rx_queue_N_xdp_drops without no_socket", gradeShared,
			"another program is attached, or the program aborted"},
			ArmXDP, sendAll, claimXDPDrops},
		{Row{"xdp.redirect_failed", "the redirect failed before it reached a socket",
			"receiver: ethtool rx_queue_N_drops without XSK rx_dropped and rx_ring_full", gradeExact,
			"the socket is not bound, or bound to another queue or device"},
			ArmXDP, sendAll, claimRedirectFailed},
		{Row{"xsk.fill_ring_empty", "the socket had no free frame", "receiver: XDP_STATISTICS rx_dropped, of which rx_fill_ring_empty_descs", gradeExact,
			"the reader fell behind and gave no frames back"},
			ArmXDP, sendAll, claimFillEmpty},
		{Row{"xsk.frame_too_long", "it did not fit a UMEM chunk", "receiver: XDP_STATISTICS rx_dropped beyond rx_fill_ring_empty_descs", gradeExact,
			"the largest frame is chunk - 256 B - headroom"},
			ArmXDP, sendAll, claimTooLong},
		{Row{"xsk.rx_dropped", "the socket dropped it, for want of a frame or for its length", "receiver: XDP_STATISTICS rx_dropped", gradeExact,
			"the cause cannot be told: fill-ring statistics were not read, or the socket is zero-copy"},
			ArmXDP, sendAll, claimXSKDropped},
		{Row{"xsk.rx_ring_full", "the socket's RX ring was full", "receiver: XDP_STATISTICS rx_ring_full", gradeExact, "the reader fell behind"},
			ArmXDP, sendAll, to(own, "xsk.rx_ring_full")},
		{Row{"xsk.queued_unread", "it lay in the RX ring when the reader stopped", "receiver: descriptors left in the RX ring", gradeExact,
			"the reader stopped before it had drained its ring"},
			ArmXDP, sendAll, to(own, "xsk.queued")},
		{Row{"softnet.backlog", "a CPU's backlog queue was full", "receiver: /proc/net/softnet_stat dropped (whole host)", gradeShared,
			"the stack fell behind: net.core.netdev_max_backlog; the device has no NAPI of its own"},
			armsStack, sendAll, claimBacklog},
		{Row{"packet.ring_full", "the AF_PACKET ring was full", "receiver: PACKET_STATISTICS tp_drops", gradeExact, "the reader fell behind"},
			ArmPacket, sendAll, to(own, "packet.drops")},
		{Row{"packet.queued_unread", "it lay in the AF_PACKET ring when the reader stopped", "receiver: frames left in the ring", gradeExact,
			"the reader stopped before it had drained its ring"},
			ArmPacket, sendAll, to(own, "packet.queued")},
		{Row{"link.other_host", "its destination MAC is not the receiver's",
			"receiver: rtnl rx_otherhost_dropped; with XDP the program's reason foreign_mac", gradeShared, "a wrong neighbour entry at the sender"},
			armsUDP | ArmXDP | ArmSink, sendAll, claimOtherHost},
		{Row{"ip.header_error", "its IP header was wrong (checksum, version, length)", "receiver: Ip InHdrErrors", gradeShared, "damaged, or badly built"},
			armsUDP, sendAll, to(shared, "ip.InHdrErrors", "ip6.InHdrErrors")},
		{Row{"ip.truncated", "it was shorter than its IP header says", "receiver: IpExt InTruncatedPkts", gradeShared, "cut on the way, or badly built"},
			armsUDP, sendAll, to(shared, "ipext.InTruncatedPkts", "ip6.InTruncatedPkts")},
		{Row{"ip.addr_error", "its destination address is not the receiver's", "receiver: Ip InAddrErrors", gradeShared, "addresses of the plan and the device differ"},
			armsUDP, sendAll, to(shared, "ip.InAddrErrors", "ip6.InAddrErrors")},
		{Row{"ip.no_route", "the receiver has no route for its address", "receiver: IpExt InNoRoutes", gradeShared, "addresses of the plan and the device differ"},
			armsUDP, sendAll, to(shared, "ipext.InNoRoutes", "ip6.InNoRoutes")},
		{Row{"ip.rp_filter", "its source address came in by the wrong device", "receiver: TcpExt IPReversePathFilter", gradeShared, "net.ipv4.conf.*.rp_filter"},
			armsUDP, sendAll, to(shared, "tcpext.IPReversePathFilter")},
		{Row{"ip.discard", "the IP layer threw it away", "receiver: Ip InDiscards", gradeShared, "no memory"},
			armsUDP, sendAll, to(shared, "ip.InDiscards", "ip6.InDiscards")},
		{Row{"fragments.missing", "one of its fragments was left out on purpose, and reassembly timed out",
			"receiver: Ip ReasmTimeout; with AF_XDP this program's reassembly; as many as the sender left out", gradeShared, "no loss of the receiver's: nobody could put it together"},
			armsUDP | ArmXDP, sendAll, claimMissing},
		{Row{"fragments.overlap", "its fragments overlapped, so that it had to be dropped (RFC 5722)",
			"receiver: IpExt ReasmOverlaps, for IPv6 Ip6 ReasmFails; with AF_XDP this program's reassembly", gradeShared, "no loss of the receiver's where it was sent so"},
			armsUDP | ArmXDP, sendAll, claimOverlap},
		{Row{"fragments.memory", "reassembly had no room for it, or (IPv4) too many other fragments came between its own",
			"receiver: Ip ReasmFails beyond ReasmTimeout and ReasmOverlaps; with AF_XDP this program's reassembly", gradePieces,
			"ipfrag_high_thresh, ipfrag_max_dist: --frag-memory, --frag-distance. The kernel refuses what is new, AF_XDP's reassembly gives up what is oldest"},
			armsUDP | ArmXDP, sendAll, claimReassemblyMemory},
		{Row{"fragments.invalid", "its fragments contradicted each other, or were no proper ones", "receiver: with AF_XDP this program's reassembly (the kernel's are in fragments.memory)",
			gradePieces, "damaged, or badly built"},
			ArmXDP, sendAll, claimReassemblyInvalid},
		{Row{"fragments.timeout", "some of its fragments came, and others did not, or too late",
			"receiver: Ip ReasmTimeout beyond fragments.missing; with AF_XDP this program's reassembly", gradePieces, "fragments were lost before reassembly, and no row above knows of them"},
			armsUDP | ArmXDP, sendAll, claimReassemblyTimeout},
		{Row{"nf.drop", "a netfilter rule dropped it", "receiver: nft counters of the rules that drop", gradeShared, "AF_XDP does not pass netfilter"},
			armsUDP, sendAll, claimNetfilter},
		{Row{"udp.csum_bad", "its UDP checksum was wrong", "receiver: Udp InCsumErrors", gradeShared, "damaged on the way, or badly built"},
			armsUDP, sendAll, to(shared, "udp.InCsumErrors", "udp6.InCsumErrors")},
		{Row{"udp.no_port", "nobody had the port open", "receiver: Udp NoPorts", gradeShared, "the reader was not yet, or no longer, there"},
			armsUDP, sendAll, to(shared, "udp.NoPorts", "udp6.NoPorts")},
		{Row{"udp.memory_full", "all UDP sockets together had used up their memory", "receiver: Udp MemErrors", gradeShared, "net.ipv4.udp_mem"},
			armsUDP, sendAll, claimUDPMemory},
		{Row{"udp.rcvbuf_full", "the socket's buffer was full", "receiver: SO_MEMINFO drops, without those Udp InCsumErrors, MemErrors and InErrors explain",
			gradeMerged, "the reader fell behind"},
			armsUDP, sendAll, claimRcvbuf},
		{Row{"udp.other_error", "the socket refused it for another reason", "receiver: Udp InErrors beyond RcvbufErrors, MemErrors and InCsumErrors",
			gradeShared, "a socket filter or an IPsec policy"},
			armsUDP, sendAll, claimUDPOther},
		{Row{"udp.queued_unread", "it lay in the socket's buffer when the reader stopped", "receiver: datagrams found queued after the run", gradeMerged,
			"the reader stopped before it had drained its socket"},
			armsUDP, sendAll, claimQueued},
		{Row{"reader.short", "the reader got it cut, or too short for a stamp", "receiver: reader", gradeExact, "buffer too small, or not a frame of this test"},
			armsAll &^ ArmNoSocket, sendAll, to(own, "reader.short")},
		{Row{"reader.corrupt", "the reader found a wrong checksum or payload", "receiver: reader", gradeExact,
			"damaged on the way, or badly built; the kernel's readers never see a wrong checksum"},
			armsAll &^ ArmNoSocket, sendAll, to(own, "reader.corrupt_ip", "reader.corrupt_udp", "reader.corrupt_payload")},
		{Row{"reader.wrong", "the answer came, and was not the right one", "receiver: answers compared with those expected", gradeExact,
			"another question, response code or record: a fault of the responder, or damage on the way that its checksum covers"},
			ArmSink, sendSKB, to(own, "reader.wrong")},
		{Row{"reader.unasked", "the answer came under a port and id that no question was out with", "receiver: answers that nobody asked for", gradeShared,
			"a fault of the responder; answers that came twice count here too"},
			ArmSink, sendSKB, to(shared, "reader.unasked")},
		{Row{"reader.late", "it came so long after its neighbours that nobody knows whether it was the first copy", "receiver: sequence window", gradeExact,
			"not lost on the way; a larger window would tell"},
			armsAll &^ ArmNoSocket, sendAll, to(own, "reader.late")},
	}
}
