// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"

	"twopath/compare"
)

// What is said otherwise where the SUT is the sender.

// handed is what an arm's rows add up to: what its engine took where the SUT sends, else what was sent to it.
func handed(a *compare.Arm) uint64 {
	if a.Handed != nil {
		return *a.Handed
	}
	return a.Sent
}

// unsentRatio is the share of what the engine took that never left; nil where the SUT does not send.
func unsentRatio(a *compare.Arm) *float64 {
	if a.Handed == nil {
		return nil
	}
	return compare.Num(float64(*a.Handed-min(a.Sent, *a.Handed)) / float64(*a.Handed))
}

// countedBy is who counts what arrived.
func (v *view) countedBy() string {
	switch {
	case v.doc.Sends():
		return "peer"
	case connects(v.doc):
		return "completed"
	case v.echoes():
		return "answered"
	}
	return "reader"
}

func (v *view) sentLabel() string {
	if v.doc.Sends() {
		return "sent"
	}
	if v.echoes() {
		return "asked"
	}
	return "offered"
}

func (v *view) sentNote() string {
	if v.doc.Sends() {
		return "left the SUT"
	}
	return ""
}

// threads are those whose cycles are counted.
func (v *view) threads() string {
	if v.doc.Sends() {
		return "sending threads"
	}
	if v.echoes() {
		return "answering threads"
	}
	return "reading threads"
}

// sendingCaveats say what the arms of a send test do not do alike, and what the rig adds.
func sendingCaveats(v *view) []Caveat {
	var out []Caveat
	var direct, gso []string
	inline := false
	for i, a := range v.arms {
		if engineOf(a) == "xdp" || a.Requested["variant"] == "packet" {
			direct = append(direct, letter(i))
		}
		if a.Requested["gso"] == "on" {
			gso = append(gso, letter(i))
		}
		inline = inline || a.Effective.Other["peer_napi"] == "inline"
	}
	if inline {
		out = append(out, one("peer-inline", "--peer-napi threaded", "the peer receives in the SUT's own softirq: its time is in the SUT's rate and cost")...)
	}
	if len(direct) > 0 && v.engine("kernel") != nil {
		out = append(out, one("skips-tx", "", "%s: no routing, netfilter, cgroups, queueing disciplines; whole frames with all checksums, where the kernel leaves UDP's to the device",
			strings.Join(direct, ", "))...)
	}
	if v.doc.Rig.Kind == "veth" {
		out = append(out, one("veth-skb", "--nic IF", "on veth each frame sent is an sk_buff that the peer copies for its XDP program")...)
		if len(gso) > 0 {
			out = append(out, one("veth-gso", "--nic IF", "%s is cut into frames in software: the peer's XDP program switches the SUT's offload off", strings.Join(gso, ", "))...)
		}
	}
	return out
}
