// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"

	"twopath/compare"
)

// Caveat is something a reader must bear in mind about this very run, with
// what to type to have it otherwise.
type Caveat struct {
	ID   string `json:"id"`
	Text string `json:"text"`
	Flag string `json:"flag,omitempty"` // what changes it; empty when nothing does
}

// String is the caveat as the screen prints it.
func (c Caveat) String() string {
	if c.Flag == "" {
		return c.Text
	}
	return c.Text + " (" + c.Flag + ")"
}

// Typed says whether Flag begins with what can be typed, rather than with advice.
func (c Caveat) Typed() bool { return strings.HasPrefix(c.Flag, "--") }

// Caveats derives from a record what holds for this run and not for a NIC, or
// not for a fair comparison. The gravest come first.
func Caveats(doc *compare.Document) []Caveat {
	v := newView(doc)
	var out []Caveat
	for _, f := range []func(*view) []Caveat{
		blockCaveats, searchCaveats, modeCaveats, loadCaveats, echoCaveats, placementCaveats, rigCaveats, fragmentCaveats, fairnessCaveats, machineCaveats, settingCaveats, balanceCaveats, ledgerCaveats,
	} {
		out = append(out, f(v)...)
	}
	return out
}

func one(id, flag, format string, args ...any) []Caveat {
	return []Caveat{{ID: id, Text: fmt.Sprintf(format, args...), Flag: flag}}
}

func blockCaveats(v *view) []Caveat {
	c := v.doc.Verdict
	if c == nil || c.Blocks == 0 || c.Blocks >= compare.MinBlocks {
		return nil
	}
	return one("few-blocks", fmt.Sprintf("--blocks %d", compare.MinBlocks), "%s cannot tell a difference from noise: %d are needed", plural(int64(c.Blocks), "block"), compare.MinBlocks)
}

// modeCaveats are about arms that did not run as their name says.
func modeCaveats(v *view) []Caveat {
	var out []Caveat
	for i, a := range v.arms {
		if asked, got, fell := fellBack(a); fell {
			out = append(out, one("fell-back", "--strict refuses", "%s asked for %s and got %s", letter(i), bindText(asked), bindText(got))...)
		}
		for _, note := range v.trialNotes(a) {
			out = append(out, one("mode-note", "", "%s: %s", letter(i), note)...)
		}
		if a.Effective.Attach == "generic" {
			out = append(out, one("generic-xdp", "", "%s ran generic XDP: every packet became an skb first, so it saves less", letter(i))...)
		}
		variant := a.Requested["variant"]
		if variant == "nosocket" || a.Name == "kernel:nosocket" {
			out = append(out, one("no-socket", "kernel:recvmmsg delivers", "%s only counts at the device, no program gets the packets", letter(i))...)
		}
		if variant == "asavie" || a.Name == "xdp:asavie" {
			out = append(out, one("asavie", "", "%s is the asavie/xdp library as it is, not this program's own path", letter(i))...)
		}
	}
	return out
}

// trialNotes are what an arm's trials had to say about modes, each once.
func (v *view) trialNotes(a *compare.Arm) []string {
	var out []string
	for _, t := range v.trialsOf(a) {
		for _, n := range t.Notes {
			if !slices.Contains(out, n) {
				out = append(out, n)
			}
		}
	}
	return out
}

// loadCaveats are about the offered load and who made it.
func loadCaveats(v *view) []Caveat {
	if v.doc.Sends() {
		return nil
	}
	var out []Caveat
	g := &v.doc.Rig.Generator
	maxRate := v.doc.Traffic.PPS == nil
	closed := v.doc.ClosedLoop()
	switch {
	case !closed && v.doc.Rig.Placement == compare.PlaceSender:
		out = append(out, one("sender-napi", "--placement shared", "the sender's core does the receiver's kernel work: its cost is not the reader's")...)
	case closed:
		out = append(out, one("closed-loop", "--placement shared", "closed loop: the sender's core does the receiver's kernel work, so a slow receiver slows the sender; service rates are compared, loss is not judged")...)
	}
	if v.doc.Search == nil && maxRate && !closed && !pingPong(v.doc) && v.doc.Traffic.Rate.Unit == compare.MaxRate {
		out = append(out, one("overload", "--rate 1M", "unpaced flood: shows behaviour under overload, not capacity")...)
	}
	if v.doc.Plan.Driver == compare.DriverDnsperf {
		out = append(out, one("dnsperf", "--driver xdp", "dnsperf waits for answers, with 100 queries out at most: an arm that answers late is asked less, and dnsperf may be what is slow; its latency counts from the sending")...)
	}
	if h := headroom(v.doc); h != nil && *h < 1.2 {
		out = append(out, one("low-headroom", "a lower --rate", "the sender itself can offer only %s x this load", significant(*h))...)
	}
	if g.Method != "" && g.Method != "xdp-live-frames" && g.Method != compare.DriverDnsperf {
		out = append(out, one("sender-method", "", "packets were made with %s, which costs the sender more per packet than XDP live frames", methodText(g.Method))...)
	}
	if unequal := v.unequalLoad(); v.doc.Search == nil && unequal != "" && !closed && !pingPong(v.doc) {
		out = append(out, one("unequal-load", "", "%s", unequal)...)
	}
	return out
}

// unequalLoad says when the arms were offered loads more than 1 % apart.
func (v *view) unequalLoad() string {
	var low, high float64
	for _, a := range v.arms {
		if a.OfferedPPS == nil || !finite(*a.OfferedPPS) {
			continue
		}
		if low == 0 || *a.OfferedPPS < low {
			low = *a.OfferedPPS
		}
		high = max(high, *a.OfferedPPS)
	}
	if low <= 0 || high/low <= 1.01 {
		return ""
	}
	return "the arms were offered different loads, " + shortRate(low) + " to " + shortRate(high)
}

func placementCaveats(v *view) []Caveat {
	if v.doc.Sends() || v.doc.Rig.Placement != compare.PlaceShared {
		return nil
	}
	hurt := "the kernel path"
	if k := v.bestKernel(); k != nil && len(v.arms) > 1 {
		hurt = v.call(k.Name)
	}
	flag := "--placement split"
	if n := v.doc.Host.CPUs; n > 0 && n < 3 {
		flag = "--placement split, 3 CPUs"
	}
	text := "one core for NAPI and reader"
	if v.engine("kernel") != nil && v.engine("xdp") != nil {
		text = "one core for all hurts " + hurt + " most"
	}
	return one("one-core", flag, "%s", text)
}

func rigCaveats(v *view) []Caveat {
	var out []Caveat
	if v.doc.Rig.Kind == "veth" {
		out = append(out, one("veth-ring", "--nic IF", "veth's ring is 256 entries, a NIC's 512-4096")...)
		if v.doc.Traffic.Queues > 1 && v.doc.Rig.Generator.Method == "xdp-live-frames" {
			out = append(out, one("veth-rss", "--nic IF", "no RSS on veth: the sending CPU decides the queue, not the flow")...)
		}
	}
	return out
}

func machineCaveats(v *view) []Caveat {
	var out []Caveat
	if v.doc.Rig.Kind == "veth" && v.engine("xdp") != nil {
		out = append(out, one("veth-copy", "--nic IF", "no zero-copy on veth")...)
	}
	if v.doc.Host.Virtual != "" || (v.doc.PeerHost != nil && v.doc.PeerHost.Virtual != "") {
		out = append(out, one("vm", "", "a VM: trust ratios of one run, not absolute rates")...)
	}
	return out
}

// fairnessCaveats say what one arm does not do that the other does.
func fairnessCaveats(v *view) []Caveat {
	if v.doc.Sends() {
		return sendingCaveats(v)
	}
	if v.engine("kernel") == nil {
		return nil
	}
	var verified, not, unknown []string
	for i, a := range v.arms {
		if engineOf(a) != "xdp" {
			continue
		}
		switch a.Effective.Csum {
		case "off":
			not = append(not, letter(i))
		case "verified":
			verified = append(verified, letter(i))
		default:
			unknown = append(unknown, letter(i))
		}
	}
	var out []Caveat
	if len(verified) > 0 {
		who, did := strings.Join(verified, ", "), "it did"
		skips := " skips"
		if len(verified) > 1 {
			did, skips = "they did", " skip"
		}
		out = append(out, one("skips", "", "%s%s routing, netfilter, cgroups; %s verify IP and UDP checksums", who, skips, did)...)
	}
	if len(unknown) > 0 {
		out = append(out, one("skips", "", "%s: no routing, netfilter, cgroups; whether checksums were verified is not recorded", strings.Join(unknown, ", "))...)
	}
	if len(not) > 0 {
		out = append(out, one("no-checksums", "drop +csum=off", "%s did not even verify checksums, which the kernel did", strings.Join(not, ", "))...)
	}
	return out
}

// settingCaveats are about how the arms came to their settings.
func settingCaveats(v *view) []Caveat {
	var out []Caveat
	for i, a := range v.arms {
		for _, c := range slices.Backward(a.Candidates) { // each round has its best; the last round's is what runs
			if c.Chosen && len(a.Candidates) > 1 {
				out = append(out, one("candidates", "name the setting in the arm", "%s runs with the best of %d settings tried: %s", letter(i), len(a.Candidates), c.Setting)...)
				break
			}
		}
		if len(a.Candidates) == 1 && a.Candidates[0].Chosen && a.Candidates[0].Note != "" {
			out = append(out, one("kept-setting", "name the setting in the arm", "%s runs with %s, %s", letter(i), a.Candidates[0].Setting, a.Candidates[0].Note)...)
		}
		if a.Effective.GRO == "udp" && v.doc.Traffic.Flows == 1 {
			out = append(out, one("gro-one-flow", "--flows 64", "%s merges datagrams of one flow, its best case", letter(i))...)
		}
	}
	if w := v.doc.Plan.Work.String(); w != "" {
		out = append(out, one("work", "--work 0", "each packet carries %s of application work in every arm", w)...)
	}
	return out
}

func ledgerCaveats(v *view) []Caveat {
	var out []Caveat
	for i, a := range v.arms {
		if a.Unexplained > 0 && a.Sent > 0 {
			out = append(out, one("unexplained", "", "%s lost %s packets (%s of what was sent) without a witness", letter(i), uthousands(a.Unexplained), percent(float64(a.Unexplained)/float64(a.Sent)))...)
		}
	}
	return out
}
