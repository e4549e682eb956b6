// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"twopath/compare"
	"twopath/internal/reproduce"
)

// udpReceive sets "How fast can the Linux stack receive?" beside ours: its lines, then what it looks at.
func (p *page) udpReceive(docs []compare.Document) {
	for _, step := range []struct{ id, title string }{
		{reproduce.StepFlood, "Flood, the reader on a core of its own"},
		{reproduce.StepOneCore, "10 Gb/s at one core for stack and reader"},
		{reproduce.StepReusePort, "SO_REUSEPORT: two sockets, two threads, 64 flows"},
	} {
		for _, d := range ofStep(docs, step.id) {
			v := newView(d)
			p.line("")
			p.lines(p.paintFirst(bold, step.title, wrapHanging(step.title+": "+strings.Join(nonEmpty(trafficText(&d.Traffic), rateWords(d), flowsText(&d.Traffic), placementText(&d.Rig)), ", "), p.options.Width, 2)))
			for i, a := range v.arms {
				p.line("  " + letter(i) + " " + oneLine(a.Name) + "  " + effectiveText(a))
			}
			if step.id == reproduce.StepFlood {
				p.lines(p.receiverLines(v).lines(0, p.options.Width))
			}
			p.lines(p.looks(v, step.id).lines(0, p.options.Width))
		}
	}
	p.line("")
	for i, s := range udpReceiveClosing(docs) {
		word := ""
		if i == 0 {
			word = "FOUND"
		}
		p.label(word, bold, s)
	}
}

// receiverLines are the lines that the source's receiver prints, one each million datagrams.
func (p *page) receiverLines(v *view) *grid {
	g := &grid{page: p, columns: []align{left, right, right, right, right, right, right}}
	g.row("  each 1,000,000", "index", "length", "us", "ns each", "epoll_wait", "read")
	g.row("  theirs", missing, thousands(reproduce.UDPReceivePayload), "~"+thousands(reproduce.UDPReceiveElapsedUs), thousands(reproduce.UDPReceiveNs)+"+", missing, missing)
	most := 3
	if p.options.Wide {
		most = 1 << 20
	}
	for i, a := range v.arms {
		n := 0
		for _, t := range v.trialsOf(a) {
			for _, m := range t.Milestones {
				if n++; n > most || m.Packets == 0 {
					continue
				}
				per := 1e6 / float64(m.Packets) // a batch may reach past the million
				us := float64(m.ElapsedNs) / 1000 * per
				g.row("  ours "+letter(i), thousands(int64(m.Index)), fixed(float64(m.Bytes)/float64(m.Packets), 0), fixed(us, 0), fixed(us/1000, 0),
					fixed(float64(m.Waits)*per, 0), fixed(float64(m.Calls)*per, 0))
			}
		}
		if n == 0 && has(a) {
			g.row("  ours "+letter(i), missing, missing, perMillion(a), opt(a.NsPerPacket, nanoseconds), missing, missing)
		}
	}
	return g
}

// perMillion is the us that a million packets took.
func perMillion(a *compare.Arm) string {
	if a.ReceivedPPS == nil || *a.ReceivedPPS <= 0 {
		return missing
	}
	return fixed(1e12/(*a.ReceivedPPS), 0)
}

// looks is what the source looks at while it runs.
func (p *page) looks(v *view, step string) *grid {
	g := &grid{page: p, columns: []align{left, left}}
	head := []string{"  look at", "theirs"}
	for i := range v.arms {
		g.columns = append(g.columns, right)
		head = append(head, letter(i))
	}
	g.row(head...)
	row := func(label, theirs string, value func(*compare.Arm) string) {
		cells := []string{"  " + label, theirs}
		for _, a := range v.arms {
			cells = append(cells, value(a))
		}
		g.row(cells...)
	}
	saw := map[string]string{}
	for _, l := range reproduce.UDPReceiveSaw() {
		saw[l.At] = l.Saw
	}
	row("us for 1,000,000", "~"+thousands(reproduce.UDPReceiveElapsedUs), perMillion)
	row("offered pps", "", func(a *compare.Arm) string { return opt(a.OfferedPPS, pps) })
	row("received pps", "", func(a *compare.Arm) string { return opt(a.ReceivedPPS, pps) })
	row("NIC receive drops", saw["NIC receive drops (RX-DRP)"], func(a *compare.Arm) string {
		return countAndShare(rowsOf(a, "veth.ring_full", "nic.rx_missed", "tx.device_drop", "link.rx_dropped"), a)
	})
	row("softirq and NAPI", saw["softirq on the stack's core"], func(a *compare.Arm) string {
		return v.busiest(a, func(c compare.CPUShare) float64 { return c.Softirq + c.NAPI })
	})
	row("user thread", saw["user thread on its core"], func(a *compare.Arm) string {
		return v.busiest(a, func(c compare.CPUShare) float64 { return c.Reader })
	})
	row("context switches / million", saw["context switches"], func(a *compare.Arm) string { return v.counterPerMillion(a, "sut.reader.context_switches") })
	row("socket buffer (or ring) full", saw["socket buffer overflow"], func(a *compare.Arm) string {
		return countAndShare(rowsOf(a, "udp.rcvbuf_full", "xsk.rx_ring_full", "xsk.fill_ring_empty"), a)
	})
	row("waits / million", "printed with each line", func(a *compare.Arm) string {
		return v.counterPerMillion(a, "sut.syscalls.epoll_wait", "sut.syscalls.poll", "sut.xsk.waits")
	})
	row("reading calls / million", "printed with each line", func(a *compare.Arm) string {
		return v.counterPerMillion(a, "sut.syscalls.read", "sut.syscalls.recvmmsg")
	})
	if step == reproduce.StepReusePort {
		row("shares of the threads", "", workerText)
	}
	if v.any(func(a *compare.Arm) bool { return a.Unexplained > 0 }) {
		row("lost, unexplained", "", func(a *compare.Arm) string { return countAndShare(a.Unexplained, a) })
	}
	return g
}

// busiest is the CPU with the largest share of something over an arm's trials: "CPU 1: 93 %".
func (v *view) busiest(a *compare.Arm, of func(compare.CPUShare) float64) string {
	sum, n := map[int]float64{}, 0
	for _, t := range v.trialsOf(a) {
		if len(t.ByCPU) == 0 {
			continue
		}
		n++
		for _, c := range t.ByCPU {
			sum[c.CPU] += of(c)
		}
	}
	if n == 0 {
		return missing
	}
	best, most := -1, -1.0
	for cpu, s := range sum {
		if s > most || s == most && cpu < best {
			best, most = cpu, s
		}
	}
	return fmt.Sprintf("CPU %d: %s", best, percentRound(most/float64(n)))
}

// udpReceiveClosing says what of the source's findings shows here.
func udpReceiveClosing(docs []compare.Document) []string {
	var out []string
	gbits := float64(reproduce.UDPReceiveEvery) * (reproduce.UDPReceivePayload + 46 + compare.WireOverhead) * 8 / (reproduce.UDPReceiveElapsedUs * 1000)
	for _, d := range ofStep(docs, reproduce.StepFlood) {
		v := newView(d)
		epoll := find(v, "kernel:epoll")
		xdp := find(v, "xdp:")
		if epoll == nil || epoll.NsPerPacket == nil {
			continue
		}
		s := fmt.Sprintf("A datagram takes the stack and an epoll reader %s ns here; the source has %d ns and more.", nanoseconds(*epoll.NsPerPacket), reproduce.UDPReceiveNs)
		if xdp != nil && xdp.NsPerPacket != nil {
			s += fmt.Sprintf(" Bypass takes %s ns for the same datagrams: the stack takes %s that.", nanoseconds(*xdp.NsPerPacket), ratioText(*epoll.NsPerPacket / *xdp.NsPerPacket))
		}
		out = append(out, s)
		if d.Rig.Placement == compare.PlaceSender {
			out = append(out, "This machine has too few CPUs for a sender, a stack and a reader of their own, so the stack runs on the sender's core and slows it down: the time per datagram holds sending too, and the device drops less than the source's.")
		}
		if big := find(v, "kernel:epoll+rcvbuf=8M"); big != nil && has(big) && has(epoll) {
			out = append(out, bufferFinding(epoll, big))
		}
	}
	for _, d := range ofStep(docs, reproduce.StepOneCore) {
		v := newView(d)
		if a := find(v, "kernel:epoll"); a != nil && has(a) && a.Lost > 0 {
			ring, socket := rowsOf(a, "veth.ring_full", "nic.rx_missed"), rowsOf(a, "udp.rcvbuf_full")
			where := "the device's ring, as the source says: the CPU cannot keep up with the NIC"
			if socket > ring {
				where = "the socket's buffer, where the source saw few: its reader had a core of its own"
			}
			out = append(out, fmt.Sprintf("With one core for all, an epoll reader loses %s, most of it at %s.", opt(a.LossRatio, percent), where))
		}
	}
	for _, d := range ofStep(docs, reproduce.StepReusePort) {
		v := newView(d)
		one, two := find(v, "kernel:epoll"), findWith(v, "reuseport")
		if one == nil || two == nil || one.ReceivedPPS == nil || two.ReceivedPPS == nil {
			continue
		}
		s := fmt.Sprintf("Two SO_REUSEPORT threads receive %s what one does (shares %s)", ratioText(*two.ReceivedPPS / *one.ReceivedPPS), workerText(two))
		if cpus := slices.Compact(slices.Sorted(slices.Values(two.Effective.CPUs))); len(cpus) < 2 {
			s += ", but both are on one CPU: that shows that the counts are right, not how it scales"
		}
		out = append(out, s+".")
	}
	return append(out, fmt.Sprintf("The source's %s us are taken as printed: on the wire they would be %s Gb/s, more than its 10 Gb/s link carries (that is 872,000 us).", thousands(reproduce.UDPReceiveElapsedUs), fixed(gbits, 1)))
}

func bufferFinding(small, big *compare.Arm) string {
	a, b := rowsOf(small, "udp.rcvbuf_full"), rowsOf(big, "udp.rcvbuf_full")
	switch {
	case a == 0 && b == 0:
		return "The socket's buffer never overflowed, with 208 KiB or 16 MiB: the stack, not the reader, sets the pace, as the source found."
	case b < a:
		return fmt.Sprintf("A bigger SO_RCVBUF takes socket overflow from %s to %s, as the source says.", countAndShare(a, small), countAndShare(b, big))
	}
	return fmt.Sprintf("A bigger SO_RCVBUF does not cure the overflow (%s, then %s): the reader is too slow, which the source answers with SO_REUSEPORT.", countAndShare(a, small), countAndShare(b, big))
}

// find is the first arm whose name starts so.
func find(v *view, prefix string) *compare.Arm {
	for _, a := range v.arms {
		if strings.HasPrefix(a.Name, prefix) {
			return a
		}
	}
	return nil
}

// findWith is the first arm with an option.
func findWith(v *view, option string) *compare.Arm {
	for _, a := range v.arms {
		if _, ok := a.Requested[option]; ok {
			return a
		}
	}
	return nil
}
