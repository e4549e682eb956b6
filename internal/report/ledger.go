// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"twopath/compare"
	"twopath/internal/measure"
)

// place is a ledger bucket in words.
type place struct {
	label string // for the screen
	why   string // what a loss there means
}

// places names the stable ledger ids, which measure.Rows documents, for a
// screen: a label of few words, and in few words what a loss there means. An
// id that is not here is shown by itself: a place unknown to the report is
// still a place.
func places() map[string]place {
	const reader, unread = "the reader fell behind", "left there when the reader stopped"
	return map[string]place{
		"gen.not_sent":         {"never left the sender", "too long for live frames, or no NAPI opposite"},
		"tx.ip_discard":        {"sender: IP discards", "no memory or no route"},
		"tx.neighbour":         {"sender: no neighbour", "nobody answered for the address"},
		"tx.qdisc":             {"sender: qdisc", "its limit is smaller than the burst"},
		"tx.device_drop":       {"sender: device", "the receiver's ring was full, or the link down"},
		"xsk.tx_invalid_descs": {"sender: bad descriptor", "a fault of the sender"},
		"send.failed":          {"answer not sent", "no room in buffer or ring, or refused"},
		"xsk.tx_unsent":        {"AF_XDP TX ring, unsent", "the device did not take it"},
		"tx.xdp_tx_full":       {"XDP_TX: no room", "the ring at the other end was full"},
		"veth.ring_full":       {"device ring full", "the stack fell behind"},
		"nic.rx_missed":        {"NIC ring full", "the stack fell behind"},
		"nic.rx_error":         {"damaged on the wire", "cable, transceiver, length"},
		"link.rx_dropped":      {"dropped by the device", "see ethtool -S"},
		"link.other_host":      {"other MAC address", "a wrong neighbour entry"},
		"veth.rx_drop":         {"veth: not a packet", "no memory"},
		"xdp.no_socket":        {"no AF_XDP socket", "closed, or not yet in the map"},
		"xdp.other_queue":      {"queue without a reader", "serve it (--queues), or steer the flow"},
		"xdp.not_ours":         {"passed to the kernel", "not the plan's addresses or ports"},
		"xdp.dropped":          {"XDP program dropped", "another program, or an error in it"},
		"xdp.redirect_failed":  {"redirect failed", "socket not bound, or elsewhere"},
		"xsk.fill_ring_empty":  {"AF_XDP fill ring empty", reader},
		"xsk.frame_too_long":   {"AF_XDP frame too long", "longer than a UMEM chunk holds"},
		"xsk.rx_dropped":       {"AF_XDP no frame", "no frame free, or too long"},
		"xsk.rx_ring_full":     {"AF_XDP RX ring full", reader},
		"xsk.queued_unread":    {"AF_XDP ring, unread", unread},
		"softnet.backlog":      {"per-CPU backlog full", "net.core.netdev_max_backlog"},
		"packet.ring_full":     {"AF_PACKET ring full", reader},
		"packet.queued_unread": {"AF_PACKET ring, unread", unread},
		"ip.header_error":      {"IP header error", "damaged, or badly built"},
		"ip.truncated":         {"IP packet cut", "damaged, or badly built"},
		"ip.addr_error":        {"IP address not ours", "plan and device differ"},
		"ip.no_route":          {"no route", "plan and device differ"},
		"ip.rp_filter":         {"reverse path filter", "net.ipv4.conf.*.rp_filter"},
		"ip.discard":           {"IP discards", "no memory"},
		"fragments.missing":    {"sent incomplete", "nobody could put it together"},
		"fragments.overlap":    {"sent overlapping", "to be dropped: RFC 5722"},
		"fragments.memory":     {"reassembly: no room", "memory, or too far apart"},
		"fragments.invalid":    {"reassembly: contradiction", "damaged, or badly built"},
		"fragments.timeout":    {"reassembly timed out", "some of its fragments did not come"},
		"nf.drop":              {"netfilter rule", "AF_XDP does not pass it"},
		"udp.csum_bad":         {"UDP checksum wrong", "damaged, or badly built"},
		"udp.no_port":          {"no socket on the port", "the reader was not there"},
		"udp.memory_full":      {"UDP memory full", "net.ipv4.udp_mem"},
		"udp.rcvbuf_full":      {"socket buffer full", reader},
		"udp.other_error":      {"UDP: other error", "socket filter or IPsec policy"},
		"udp.queued_unread":    {"socket buffer, unread", unread},
		"reader.wrong":         {"wrong answer", "a fault of the responder"},
		"reader.unasked":       {"answer to no question", "a wrong id or port"},
		"send.silent":          {"no answer due", "cut, or itself an answer"},
		"reader.short":         {"reader: too short", "cut, or not of this test"},
		"reader.corrupt":       {"reader: damaged", "wrong checksum or payload"},
		"reader.late":          {"reader: too late to tell", "perhaps not the first copy"},
		"tcp.refused":          {"connection refused", "nobody listens, or the backlog is full"},
		"tcp.reset":            {"connection reset", "by the server, after it was open"},
		"tcp.timed_out":        {"connection timed out", "a segment was sent again to no end"},
		"tcp.response_timeout": {"no response", "the request was acknowledged and never answered"},
		"tcp.bad_response":     {"wrong response", "not the bytes that were due"},
		"tcp.early_close":      {"closed too early", "before the response was whole"},
		"tcp.idle":             {"idle too long", "nothing came"},
		"tcp.other":            {"connection failed", "another error of the socket: see the record's counters"},
		"tcp.unfinished":       {"still open", "when the wait for the last ones was over"},
	}
}

// noteText is a row's remark: its witness, and what a loss there means. The
// record's own note starts with the general hint of measure.Rows; where that is
// all it says, the short form does.
func noteText(row compare.LedgerRow, short string, hints map[string]string) string {
	why := row.Note
	if hint := hints[strings.TrimPrefix(row.At, compare.ReplyRow)]; short != "" && hint != "" {
		if rest, ok := strings.CutPrefix(why, hint); ok {
			why = short + rest
		}
	}
	if why == "" {
		why = short
	}
	return strings.Join(nonEmpty(row.Witness, why), ": ")
}

func hints() map[string]string {
	out := map[string]string{}
	for _, r := range slices.Concat(measure.Rows(), measure.ConnectionRows()) {
		out[r.ID] = r.Hint
	}
	return out
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
	known, hint := places(), hints()
	byAt := map[string]*ledgerLine{}
	for i, a := range v.arms {
		for _, row := range slices.Concat(a.Unsent, a.Ledger) {
			l := byAt[row.At]
			if l == nil {
				id, answers := strings.CutPrefix(row.At, compare.ReplyRow)
				p, ok := known[id]
				if !ok {
					p.label = id
				}
				if answers {
					p.label = "answer: " + p.label
				}
				l = &ledgerLine{at: row.At, label: p.label, note: noteText(row, p.why, hint), packets: make([]*uint64, len(v.arms))}
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
	unit, _ := v.unit()
	same := true
	for _, a := range v.arms {
		same = same && handed(a) == handed(first) && a.Valid == first.Valid
	}
	if same {
		if first.Valid == 0 {
			return "Where the " + unit + " went: no valid trial"
		}
		per, each := "", plural(int64(first.Valid), "trial")
		if len(v.arms) > 1 {
			per, each = " per arm", each+" each"
		}
		return fmt.Sprintf("Where %s %s%s went (%s)", uthousands(handed(first)), unit, per, each)
	}
	var parts []string
	for i, a := range v.arms {
		parts = append(parts, fmt.Sprintf("%s %s in %s", letter(i), uthousands(handed(a)), plural(int64(a.Valid), "trial")))
	}
	return "Where the " + unit + " went (" + strings.Join(parts, ", ") + ")"
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
	rows := []ledgerRow{{label: v.countedBy(), values: arms(func(a *compare.Arm) uint64 { return a.Received })}}
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
		for _, row := range slices.Concat(a.Unsent, a.Ledger) {
			sum += row.Packets
		}
		if has(a) && sum != handed(a) {
			bad = append(bad, fmt.Sprintf("%s sums to %s of %s sent", letter(i), uthousands(sum), uthousands(handed(a))))
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
