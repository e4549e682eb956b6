// SPDX-License-Identifier: Apache-2.0

package measure

import "twopath/compare"

// crossChecks compares independent counts of one thing, where both were read. They are shown beside the ledger and
// never added to it. A name with "<=" allows the right side to be larger, by other traffic
// or by losses that have a row of their own.
func crossChecks(in *Input) []compare.CrossCheck {
	var out []compare.CrossCheck
	add := func(what string, a, b uint64, ok bool) {
		out = append(out, compare.CrossCheck{What: what, A: a, B: b, OK: ok})
	}
	add("unique received <= sent", in.Unique, in.Sent, in.Unique <= in.Sent)
	if dup, ok := in.To["reader.duplicate"]; ok {
		add("duplicates received <= sent on purpose", dup, in.Injected, dup <= in.Injected)
	}

	xmit, knowXmit := perQueue(in.From, "tx", "xdp_xmit")
	full, _ := perQueue(in.From, "tx", "xdp_xmit_errors")
	if in.Sender == SendLive && knowXmit {
		a, b := in.frames(), addCapped(xmit, full)
		add("generator's frames = sending device's xdp_xmit + xdp_xmit_errors", a, b, a == b)
	}
	took, knowTook := perQueue(in.To, "rx", "xdp_packets")
	if in.Sender == SendLive && knowXmit && knowTook {
		add("frames put on the ring <= frames the receiving NAPI took", xmit, took, xmit <= took)
	}
	if d, ok := in.From["link.tx_dropped"]; ok && knowXmit {
		add("ring overflow <= sender's rtnl tx_dropped", full, d, full <= d)
	}
	drops, knowDrops := perQueue(in.To, "rx", "drops")
	if d, ok := in.To["link.rx_dropped"]; ok && knowXmit && knowDrops {
		a := addCapped(full, drops)
		add("ring overflow + rx_queue_N_drops <= receiver's rtnl rx_dropped", a, d, a <= d)
	}

	if r := in.reassembly(); r.known {
		a, b := in.Fragments.Frames, addCapped(r.got, in.lostFragments())
		add("fragments sent = reassembly got + lost before it", a, b, a == b)
	}

	switch in.Arm {
	case ArmXDP:
		if _, ok := in.To["xsk.rx_dropped"]; ok && in.veth() && knowDrops && !in.Generic && !in.ZeroCopy {
			a := xskLosses(in)
			add("XSK rx_dropped + rx_ring_full <= receiver's rx_queue_N_drops", a, drops, a <= drops)
		}
		if a, ok := in.To["redirect.redirected"]; ok {
			b := addCapped(readerTotal(in), xskLosses(in))
			b = addCapped(addCapped(b, in.To["xsk.queued"]), claimRedirectFailed(in).packets)
			add("redirected = read + lost at the socket + left in the ring", a, b, a == b)
		}
	case ArmUDP:
		if a, ok := sum(in.To, "udp.InDatagrams", "udp6.InDatagrams"); ok {
			b := readerTotal(in)
			add("datagrams read <= Udp InDatagrams", b, a, b <= a)
		}
		fallthrough
	case ArmUDPGRO:
		a, ok := in.To["sock.drops"]
		b, ok2 := sum(in.To, "udp.RcvbufErrors", "udp6.RcvbufErrors", "udp.MemErrors", "udp6.MemErrors")
		if ok && ok2 {
			// Bad checksums and filters are in the socket's drops as well, if found late enough.
			errs, _ := sum(in.To, "udp.InErrors", "udp6.InErrors")
			add("SO_MEMINFO drops = Udp RcvbufErrors + MemErrors (or up to InErrors)", a, b, b <= a && a <= max(b, errs))
		}
	case ArmPacket:
		if a, ok := in.To["packet.packets"]; ok {
			b, _ := sum(in.To, "packet.drops", "packet.queued")
			b = addCapped(b, readerTotal(in))
			add("PACKET_STATISTICS tp_packets = read + dropped + left in the ring", a, b, a == b)
		}
	}
	return out
}

// readerTotal is every packet the reader took, whatever it thought of it.
func readerTotal(in *Input) uint64 {
	if n, ok := in.To["fragments.frames"]; ok { // of which reassembly made datagrams
		return n
	}
	n, _ := sum(in.To, "reader.received", "reader.foreign", "reader.short", "reader.corrupt_ip", "reader.corrupt_udp")
	return n
}
