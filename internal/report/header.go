// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"twopath/compare"
)

// titleText says what was sent, how fast, and where.
func titleParts(doc *compare.Document) []string {
	rate, place := rateWords(doc), placeText(doc)
	if pingPong(doc) {
		rate = pingPongWords(&doc.Traffic)
	}
	if doc.Sends() {
		rate = strings.Replace(rate, "the sender can", "the SUT can", 1)
	}
	if connects(doc) {
		rate = strings.Replace(strings.Replace(rate, "the sender can", "they come", 1), " pps", " connections/s", 1)
		return nonEmpty(append([]string{strings.Join(nonEmpty(connectionText(doc), rate), ", ")}, nonEmpty(rigText(&doc.Rig), place)...)...)
	}
	parts := []string{strings.Join(nonEmpty(trafficText(&doc.Traffic), rate, flowsText(&doc.Traffic)), ", ")}
	parts = append(parts, nonEmpty(rigText(&doc.Rig), place)...)
	return nonEmpty(parts...)
}

func trafficText(t *compare.Traffic) string {
	if t.Capture != nil {
		return captureText(t.Capture)
	}
	size := fmt.Sprint(t.Size)
	var s string
	switch {
	case t.Fragments != nil:
		return fragmentsText(t)
	case t.FrameBytes <= 0 || !finite(t.FrameBytes):
		return ""
	case strings.Contains(size, "imix"):
		s = fmt.Sprintf("imix frames (mean %s B with FCS, %s B payload)", bytesText(t.FrameBytes), bytesText(t.PayloadBytes))
	default:
		s = fmt.Sprintf("%s B frames (%s B payload)", bytesText(t.FrameBytes), bytesText(t.PayloadBytes))
	}
	if t.IPVersion == 6 {
		s += " IPv6"
	}
	return s
}

func bytesText(v float64) string { return trimZeros(fixed(v, 1)) }

func rateWords(doc *compare.Document) string {
	t := &doc.Traffic
	if doc.Search != nil {
		return searchLoads(doc)
	}
	if t.PPS == nil {
		switch t.Rate.Unit {
		case compare.NoRate:
			return ""
		case compare.MaxRate:
			if t.Capture != nil && t.Capture.Speed > 0 {
				return ""
			}
			return "as fast as the sender can"
		}
		return fmt.Sprintf("rate %v", t.Rate)
	}
	s := pps(*t.PPS) + " pps"
	if t.WireBPS != nil {
		s += " = " + shortBits(*t.WireBPS) + " on the wire"
	}
	return s
}

// pingPongWords says how requests follow each other where each waits for the answer before.
func pingPongWords(t *compare.Traffic) string {
	if t.PPS == nil {
		return "ping-pong: one request at a time"
	}
	return "ping-pong: one request at a time, at most " + pps(*t.PPS) + " a second"
}

func flowsText(t *compare.Traffic) string {
	var parts []string
	if t.Flows > 0 {
		parts = append(parts, plural(int64(t.Flows), "flow"))
	}
	if t.Queues > 1 {
		parts = append(parts, plural(int64(t.Queues), "queue"))
	}
	return strings.Join(parts, ", ")
}

func rigText(r *compare.Rig) string {
	switch r.Kind {
	case "":
		return ""
	case "veth":
		return "veth rig"
	case "ports":
		return strings.TrimSpace(fmt.Sprintf("two ports, %s to %s %s", r.Peer, r.SUT, parens(r.Driver)))
	case "hosts":
		return strings.TrimSpace(fmt.Sprintf("two hosts, %s to %s %s", r.Peer, r.SUT, parens(r.Driver)))
	}
	return r.Kind
}

func placementText(r *compare.Rig) string {
	cpu := func(role string) string {
		if n := r.CPUs[role]; len(n) > 0 {
			return cpusText(n)
		}
		return "the " + role + "'s CPU"
	}
	switch r.Placement {
	case "":
		return ""
	case "shared":
		return "NAPI and reader share " + cpu("sut")
	case "split":
		napi := "its own CPU"
		if n := r.CPUs["napi"]; len(n) > 0 {
			napi = cpusText(n)
		}
		return "NAPI on " + napi + ", reader on " + cpu("sut")
	case "sender":
		return "NAPI on the sender's " + strings.TrimPrefix(cpu("peer"), "the peer's ") + ", reader on " + cpu("sut")
	}
	return "placement " + r.Placement
}

// placeText says what runs where.
func placeText(doc *compare.Document) string {
	if doc.Sends() {
		return sendingText(doc)
	}
	return placementText(&doc.Rig)
}

// sendingText says who sends and who counts, where the SUT is the sender.
func sendingText(doc *compare.Document) string {
	s := "the SUT sends"
	if n := doc.Rig.CPUs["sut"]; len(n) > 0 {
		s += " on " + cpusText(n)
	}
	s += ", the peer counts"
	for i := range doc.Arms {
		if where := doc.Arms[i].Effective.Other["peer_napi"]; where != "" {
			return s + " (NAPI " + where + ")"
		}
	}
	return s
}

// cpusText is "CPU 0" or "CPUs 0 2 4".
func cpusText(cpus []int) string {
	if len(cpus) == 1 {
		return "CPU " + strconv.Itoa(cpus[0])
	}
	return "CPUs " + cpuList(cpus)
}

// hostText is the machine in a few words.
func hostText(h *compare.Host, wide bool) string {
	var parts []string
	if h.Kernel != "" || h.Arch != "" {
		parts = append(parts, strings.Join(nonEmpty("Linux", h.Kernel, h.Arch), " "))
	}
	if h.CPUs > 0 {
		parts = append(parts, plural(int64(h.CPUs), "CPU"))
	}
	if h.Virtual != "" {
		s := "VM"
		if wide {
			s += " (" + h.Virtual + ")"
		}
		parts = append(parts, s)
	}
	if wide {
		parts = append(parts, nonEmpty(h.CPUModel, h.OS)...)
	}
	return strings.Join(parts, ", ")
}

// senderText says what made the packets and how much more it could have made.
func senderText(doc *compare.Document) string {
	g := &doc.Rig.Generator
	if doc.Sends() {
		if l := doc.Limit; l != nil && l.PPS != nil && finite(*l.PPS) {
			return "the SUT; " + limitText(l.Name) + " in its place bring over " + shortRate(*l.PPS)
		}
		return ""
	}
	if g.Method == "" {
		return ""
	}
	s := methodText(g.Method)
	if g.CPU != nil {
		s += " on CPU " + strconv.Itoa(*g.CPU)
	}
	if g.OfferedPPS != nil && finite(*g.OfferedPPS) {
		s += ", can offer " + shortRate(*g.OfferedPPS)
		if r := headroom(doc); r != nil {
			s += " = " + significantShort(*r) + " x this load"
		}
	}
	return s
}

// headroom is the sender's own ceiling over the load asked for; nil for max.
func headroom(doc *compare.Document) *float64 {
	g := &doc.Rig.Generator
	if g.Headroom != nil {
		return g.Headroom
	}
	if g.OfferedPPS == nil || doc.Traffic.PPS == nil || *doc.Traffic.PPS <= 0 {
		return nil
	}
	return compare.Num(*g.OfferedPPS / *doc.Traffic.PPS)
}

// significantShort is two digits, for "3.3 x this load".
func significantShort(v float64) string {
	if finite(v) && math.Abs(v) < 9.95 {
		return fixed(v, 1)
	}
	return fixed(v, 0)
}

func methodText(m string) string {
	switch m {
	case "xdp-live-frames":
		return "XDP live frames"
	case "af_xdp":
		return "AF_XDP transmit"
	case "af_packet":
		return "AF_PACKET transmit"
	case "af_inet":
		return "UDP socket"
	}
	return m
}

func parens(s string) string {
	if s == "" {
		return ""
	}
	return "(" + s + ")"
}

func nonEmpty(ss ...string) []string {
	var out []string
	for _, s := range ss {
		if s != "" {
			out = append(out, s)
		}
	}
	return out
}
