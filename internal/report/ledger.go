// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"twopath/compare"
)

// place is a ledger bucket in words.
type place struct {
	label string // for the screen
	why   string // what a loss there means
}

// places names the stable ledger ids. An id that is not here is shown by
// itself: a place unknown to the report is still a place.
func places() map[string]place {
	return map[string]place{
		"veth.ring_full":           {"device ring full", "the stack fell behind"},
		"nic.ring_full":            {"NIC ring full", "the host fell behind"},
		"nic.missed":               {"NIC ring full", "the host fell behind"},
		"nic.no_buffer":            {"NIC without buffers", "the driver could not refill its ring"},
		"nic.crc":                  {"damaged on the wire", "cable, connector or clock"},
		"nic.filtered":             {"filtered by the NIC", "MAC or VLAN filter"},
		"softnet.dropped":          {"per-CPU backlog full", "net.core.netdev_max_backlog"},
		"netfilter.drop":           {"netfilter rule", "a rule dropped them"},
		"nft.drop":                 {"netfilter rule", "a rule dropped them"},
		"ip.header":                {"IP header errors", "checksum, version or length"},
		"ip.in_hdr_errors":         {"IP header errors", "checksum, version or length"},
		"ip.in_addr_errors":        {"IP address errors", "not for this host"},
		"ip.in_discards":           {"IP discards", "no memory"},
		"udp.no_port":              {"no socket on the port", "the reader was not there"},
		"udp.no_ports":             {"no socket on the port", "the reader was not there"},
		"udp.checksum":             {"UDP checksum", "damaged, or written wrong"},
		"udp.csum":                 {"UDP checksum", "damaged, or written wrong"},
		"udp.memory":               {"UDP memory limit", "net.ipv4.udp_mem"},
		"sock.full":                {"socket buffer full", "the reader fell behind"},
		"sock.buffer_full":         {"socket buffer full", "the reader fell behind"},
		"sock.rcvbuf":              {"socket buffer full", "the reader fell behind"},
		"sock.drops":               {"socket buffer full", "the reader fell behind"},
		"sock.queued":              {"queued, never read", "left in the socket at the end"},
		"packet.ring_full":         {"AF_PACKET ring full", "the reader fell behind"},
		"packet.drops":             {"AF_PACKET ring full", "the reader fell behind"},
		"xsk.ring_full":            {"AF_XDP RX ring full", "the reader fell behind"},
		"xsk.rx_ring_full":         {"AF_XDP RX ring full", "the reader fell behind"},
		"xsk.fill_empty":           {"AF_XDP fill ring empty", "the reader gave buffers back too late"},
		"xsk.no_buffer":            {"AF_XDP fill ring empty", "the reader gave buffers back too late"},
		"xsk.rx_dropped":           {"AF_XDP no buffer", "fill ring empty, or frame too long"},
		"xsk.invalid_desc":         {"AF_XDP bad descriptor", "a bug of the reader"},
		"xsk.queued":               {"in the AF_XDP ring, unread", "left there at the end"},
		"redirect.failed":          {"redirect failed", "the AF_XDP socket could not take them"},
		"redirect.no_socket":       {"queue without a socket", "arrived on a queue nobody reads"},
		"reader.corrupt_ip":        {"reader: IP checksum", "reached the reader damaged"},
		"reader.corrupt_udp":       {"reader: UDP checksum", "reached the reader damaged"},
		"reader.corrupt_payload":   {"reader: payload", "reached the reader damaged"},
		"reader.short":             {"reader: too short", "no room for the stamp"},
		"gen.dropped":              {"refused at the sender", "never left"},
		"sink.ring_full":           {"sink's ring full", "the peer fell behind, not the SUT"},
		"peer.not_sent":            {"refused at the sender", "never left"},
		"xdp.aborted":              {"XDP_ABORTED", "the program failed"},
		"device.tx_dropped":        {"dropped on transmit", "the driver refused them"},
		"link.rx_dropped":          {"dropped by the device", "no finer witness"},
		"link.tx_dropped":          {"dropped on transmit", "no finer witness"},
		"xsk.tx_invalid_descs":     {"AF_XDP bad TX descriptor", "a bug of the sender"},
		"redirect.pass_to_kernel":  {"passed to the kernel", "not ours by the filter"},
		"udp.rcvbuf_errors":        {"socket buffer full", "the reader fell behind"},
		"udp.mem_errors":           {"UDP memory limit", "net.ipv4.udp_mem"},
		"udp.in_errors":            {"UDP errors", "no finer witness"},
		"ip.no_route":              {"no route", "the host had nowhere to send them"},
		"qdisc.dropped":            {"queueing discipline", "the transmit queue was full"},
		"device.rx_missed":         {"NIC ring full", "the host fell behind"},
		"device.rx_no_buffer":      {"NIC without buffers", "the driver could not refill its ring"},
		"xsk.rx_invalid_descs":     {"AF_XDP bad descriptor", "a bug of the reader"},
		"xsk.rx_fill_ring_empty":   {"AF_XDP fill ring empty", "the reader gave buffers back too late"},
		"redirect.xsk_unbound":     {"queue without a socket", "arrived on a queue nobody reads"},
		"sock.memory":              {"socket memory limit", "net.ipv4.udp_mem"},
		"reader.late_after_window": {"arrived after the end", "the drain was over"},
	}
}

// ledgerLine is one bucket over all shown arms.
type ledgerLine struct {
	at      string
	label   string
	note    string
	packets []*uint64 // by arm; nil when the arm has no such row
	bounded bool
}

// ledgerLines gathers the arms' ledgers, the largest loss first.
func (v *view) ledgerLines() []ledgerLine {
	known := places()
	byAt := map[string]*ledgerLine{}
	for i, a := range v.arms {
		for _, row := range a.Ledger {
			l := byAt[row.At]
			if l == nil {
				p, ok := known[row.At]
				if !ok {
					p.label = row.At
				}
				why := row.Note
				if why == "" {
					why = p.why
				}
				l = &ledgerLine{at: row.At, label: p.label, note: strings.Join(nonEmpty(row.Witness, why), ": "), packets: make([]*uint64, len(v.arms))}
				byAt[row.At] = l
			}
			n := row.Packets
			if l.packets[i] != nil {
				n += *l.packets[i]
			}
			l.packets[i] = &n
			l.bounded = l.bounded || row.Grade == compare.Bounded
		}
	}
	lines := make([]ledgerLine, 0, len(byAt))
	for _, at := range slices.Sorted(maps.Keys(byAt)) {
		l := byAt[at]
		if l.bounded {
			l.note = strings.TrimSpace(l.note + " (bounded)")
		}
		lines = append(lines, *l)
	}
	slices.SortStableFunc(lines, func(a, b ledgerLine) int { return cmp.Compare(b.total(), a.total()) })
	return lines
}

func (l *ledgerLine) total() float64 {
	var n float64
	for _, p := range l.packets {
		if p != nil {
			n += float64(*p)
		}
	}
	return n
}

// ledgerTitle says how many packets the rows add up to.
func (v *view) ledgerTitle() string {
	if len(v.arms) == 0 {
		return ""
	}
	first := v.arms[0]
	same := true
	for _, a := range v.arms {
		same = same && a.Sent == first.Sent && a.Valid == first.Valid
	}
	if same {
		if first.Valid == 0 {
			return "Where the packets went: no valid trial"
		}
		per, each := "", plural(int64(first.Valid), "trial")
		if len(v.arms) > 1 {
			per, each = " per arm", each+" each"
		}
		return fmt.Sprintf("Where %s packets%s went (%s)", uthousands(first.Sent), per, each)
	}
	var parts []string
	for i, a := range v.arms {
		parts = append(parts, fmt.Sprintf("%s %s in %s", letter(i), uthousands(a.Sent), plural(int64(a.Valid), "trial")))
	}
	return "Where the packets went (" + strings.Join(parts, ", ") + ")"
}

// ledgerRow is one printed row of the ledger: its label, its numbers, a remark.
type ledgerRow struct {
	label  string
	values []string
	note   string
	bad    bool // the numbers do not add up, or something is unexplained
}

// ledgerRows are the rows that add up to what was sent: the reader, each
// bucket that anything fell into, and what nobody can explain. With all set,
// buckets that stayed empty are there too.
func (v *view) ledgerRows(all bool) []ledgerRow {
	arms := func(get func(*compare.Arm) uint64) []string {
		out := make([]string, len(v.arms))
		for i, a := range v.arms {
			out[i] = missing
			if has(a) {
				out[i] = uthousands(get(a))
			}
		}
		return out
	}
	rows := []ledgerRow{{label: "reader", values: arms(func(a *compare.Arm) uint64 { return a.Received })}}
	for _, l := range v.ledgerLines() {
		if !all && l.total() == 0 {
			continue
		}
		r := ledgerRow{label: l.label, note: l.note, values: make([]string, len(v.arms))}
		for i, n := range l.packets {
			switch {
			case n != nil:
				r.values[i] = uthousands(*n)
			case has(v.arms[i]):
				r.values[i] = "0"
			default:
				r.values[i] = missing
			}
		}
		rows = append(rows, r)
	}
	unexplained := ledgerRow{label: "unexplained", values: arms(func(a *compare.Arm) uint64 { return a.Unexplained })}
	if v.any(func(a *compare.Arm) bool { return a.Unexplained > 0 }) {
		unexplained.bad, unexplained.note = true, "lost without a witness: please report this"
	}
	rows = append(rows, unexplained)
	if off := v.notClosing(); off != "" {
		rows = append(rows, ledgerRow{label: "DOES NOT ADD UP", values: make([]string, len(v.arms)), note: off, bad: true})
	}
	return rows
}

// notClosing names the arms whose rows do not add up to what was sent. A
// record written by this program never has any; one edited by hand may.
func (v *view) notClosing() string {
	var bad []string
	for i, a := range v.arms {
		sum := a.Received + a.Unexplained
		for _, row := range a.Ledger {
			sum += row.Packets
		}
		if has(a) && sum != a.Sent {
			bad = append(bad, fmt.Sprintf("%s sums to %s of %s sent", letter(i), uthousands(sum), uthousands(a.Sent)))
		}
	}
	return strings.Join(bad, ", ")
}

// addLedger puts the ledger into the arms' grid, under the same columns.
func addLedger(g *grid, v *view, wide bool) {
	if len(v.arms) == 0 || !v.any(has) {
		return
	}
	g.text(v.ledgerTitle(), bold)
	for _, r := range v.ledgerRows(wide) {
		row := g.row(append(append([]string{"  " + r.label}, r.values...), r.note)...)
		if r.bad {
			row.colour(0, red)
		}
	}
}

// byCount sorts keys by count, largest first, names breaking ties.
func byCount(by map[string]uint64) []string {
	return slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(cmp.Compare(by[b], by[a]), cmp.Compare(a, b))
	})
}
