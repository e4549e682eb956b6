// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
)

// TestInfo describes a kind of traffic, and which arms can carry it.
type TestInfo struct {
	Name  string
	About string
	// Kernel and XDP are the variants of each engine that the test has.
	Kernel, XDP []string
	// Default are the arms of a comparison for which none were named: the best of each engine.
	Default []string
	// Flood says that the rate is max where none was given, not that of the line.
	Flood bool
	// PeerNAPI is where the peer's own receive processing runs where the plan does not say: "threaded" on the peer's core,
	// "inline" in the sender's softirq, "" where the peer receives nothing.
	PeerNAPI string
	// Sends says that the SUT is the sender, and the peer counts what arrives.
	Sends bool
	// Fans says that the peer may feed several queues through AF_XDP sockets, where its CPUs do not reach them with live frames.
	Fans bool
	// Without are options that arms have in other tests only.
	Without []string
	// Rate is the rate where none was given; "" leaves it to Flood or the line.
	Rate string
	// Modes are the ways requests may follow each other, the default first; none where nothing is answered.
	Modes []string
	// Connects says that connections are opened, of which CC is how many at a time where the plan does not say.
	Connects bool
	CC       int
	// Requests is how many go over a connection where the plan does not say; more than one keeps it open.
	Requests int
	// Placement is that of the SUT's NAPI on the veth rig where the plan does not say; "" leaves it to the number of CPUs.
	Placement string
	// Drivers are the programs that may ask, the default first; none where it is the peer's generator only.
	Drivers []string
	// OwnSizes says that frames have the sizes that their contents give them.
	OwnSizes bool
	// Flows is how many flows there are where the plan does not say, and MostFlows how many there may be; 0 leaves it to the plan.
	Flows, MostFlows int
	// Headline is the metric that decides where neither arm lost; "" is CPU work per packet.
	Headline string
	// Limit names what stands for the ceiling of the rig in this test; "" is none.
	Limit string
	// Captures says that the traffic is a capture's: the plan names the file, and sizes and flows are its own.
	Captures bool
}

// xdpVariants are the ways to open AF_XDP sockets, and the library that Go users have today.
func xdpVariants() []string { return []string{"auto", "zerocopy", "copy", "generic", "asavie"} }

// Tests are the tests a plan may name.
func Tests() []TestInfo {
	return []TestInfo{
		{Name: "udp-rx", About: "the peer sends UDP datagrams, the SUT receives them",
			Kernel: []string{"epoll", "recvmmsg", "packet", "nosocket"}, XDP: xdpVariants(),
			Default: []string{"kernel:recvmmsg", "xdp:auto"}, Fans: true, Limit: LimitDrop},
		{Name: "udp-tx", About: "the SUT sends UDP datagrams, an XDP program of the peer counts them",
			Kernel: []string{"write", "sendto", "sendmmsg", "packet"}, XDP: xdpVariants(),
			Default: []string{"kernel:sendmmsg", "xdp:auto"}, Flood: true, PeerNAPI: "threaded", Sends: true, Without: []string{"wait", "csum"},
			Limit: LimitLive},
		{Name: "udp-echo", About: "the peer sends UDP requests, the SUT answers each; latency from the intended send time",
			Kernel: []string{"epoll", "recvmmsg"}, XDP: xdpVariants(),
			Default: []string{"kernel:recvmmsg", "xdp:auto"}, Rate: "10k", PeerNAPI: "inline", Limit: LimitReflect,
			Modes: []string{ModeOpen, ModePingPong}, Headline: MetricP50},
		{Name: "dns", About: "the peer asks for names, the SUT answers for a zone; every answer is compared with the right one",
			Kernel: []string{"epoll", "recvmmsg"}, XDP: []string{"auto", "zerocopy", "copy", "generic"},
			Default: []string{"kernel:recvmmsg", "xdp:auto"}, Rate: "200k", PeerNAPI: "inline",
			Drivers: []string{DriverXDP, DriverDnsperf}, OwnSizes: true, Flows: 16, MostFlows: 64},
		{Name: TestFragments, About: "the peer sends UDP datagrams in IP fragments, the SUT puts them together and receives them",
			Kernel: []string{"epoll", "recvmmsg"}, XDP: []string{"auto", "zerocopy", "copy", "generic"},
			Default: []string{"kernel:recvmmsg", "xdp:auto"}, Rate: "10k"},
		{Name: "http-cps", About: "the peer opens TCP connections, asks by HTTP once on each, and the SUT answers and closes",
			Kernel: []string{"epoll"}, XDP: []string{"auto", "zerocopy", "copy", "generic"}, Default: []string{"kernel:epoll", "xdp:auto"},
			Flood: true, Connects: true, CC: 64, Requests: 1, OwnSizes: true, Placement: PlaceSender},
		{Name: "http-rps", About: "the peer keeps TCP connections open and asks by HTTP again and again",
			Kernel: []string{"epoll"}, XDP: []string{"auto", "zerocopy", "copy", "generic"}, Default: []string{"kernel:epoll", "xdp:auto"},
			Flood: true, Connects: true, CC: 64, Requests: 1000, OwnSizes: true, Placement: PlaceSender},
		{Name: "replay", About: "the peer replays a capture (pcap, pcapng), the SUT follows its sessions",
			Kernel: []string{"packet"}, XDP: []string{"auto", "zerocopy", "copy", "generic"},
			Default: []string{"kernel:packet", "xdp:auto"}, Without: []string{"csum"}, Captures: true, OwnSizes: true},
	}
}

// LimitDrop is an XDP program in the receiver's place that counts and drops.
const LimitDrop = "xdp_drop"

// LimitLive is the live-frame generator in the sender's place.
const LimitLive = "xdp_live_frames"

// LimitReflect is an XDP program in the responder's place that sends requests back from the driver.
const LimitReflect = "xdp_tx"

// The programs that may ask.
const (
	DriverXDP     = "xdp"     // XDP live frames, and a program that compares each answer
	DriverDnsperf = "dnsperf" // the program of that name, through the kernel of the peer
)

// The ways requests may follow each other.
const (
	ModeOpen     = "open"     // on a schedule, whether or not answers are in: latency counts from the intended time
	ModePingPong = "pingpong" // one at a time, the next when the answer is in: latency counts from the sending
)

// LookupTest finds a test by name.
func LookupTest(name string) (TestInfo, bool) {
	for _, t := range Tests() {
		if t.Name == name {
			return t, true
		}
	}
	return TestInfo{}, false
}

// Variants are those of an engine.
func (t TestInfo) Variants(engine string) []string {
	switch engine {
	case Kernel:
		return t.Kernel
	case XDP:
		return t.XDP
	}
	return nil
}

// check refuses an arm that the test does not have.
func (t TestInfo) check(a ArmSpec) error {
	if slices.Contains(t.Variants(a.Engine), a.Variant) {
		for _, o := range t.Without {
			if _, given := a.Options[o]; given {
				return &UsageError{What: "arm option", Token: o, Problem: fmt.Sprintf("%s has no use for it", t.Name), Hint: "drop it"}
			}
		}
		return nil
	}
	return unknown("arm", a.Engine+":"+a.Variant, fmt.Sprintf("not an arm of %s", t.Name),
		slices.Concat(withPrefix(Kernel+":", t.Kernel), withPrefix(XDP+":", t.XDP)))
}

// variants are those that any test has of an engine, in the order of the tests.
func variants(engine string) []string {
	var out []string
	for _, t := range Tests() {
		for _, v := range t.Variants(engine) {
			if !slices.Contains(out, v) {
				out = append(out, v)
			}
		}
	}
	return out
}

func testNames() []string {
	var names []string
	for _, t := range Tests() {
		names = append(names, t.Name)
	}
	return names
}
