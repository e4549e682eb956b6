// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"strings"

	"twopath/compare"
)

// Arm is how the receiving side reads: it decides which witnesses saw packets that were lost, and which only saw
// copies of packets that arrived.
type Arm uint8

// The kinds of receiver.
const (
	ArmUDP      Arm = 1 << iota // UDP sockets
	ArmUDPGRO                   // UDP sockets with UDP_GRO: their drops count merged datagrams
	ArmPacket                   // AF_PACKET ring: a tap, so IP and UDP counters see packets that did arrive
	ArmNoSocket                 // nobody reads: the device's own count is "received"
	ArmXDP                      // AF_XDP sockets
	ArmSink                     // an XDP program that counts and drops: the peer of a transmit test, or the rig's ceiling
)

// Sender is what the sending side sends with.
type Sender uint8

// The kinds of sender.
const (
	SendLive   Sender = 1 << iota // XDP live frames
	SendXSK                       // AF_XDP TX
	SendPacket                    // AF_PACKET
	SendUDP                       // UDP sockets
	SendXDPTX                     // an XDP program that sends frames back from the driver
)

// Input is all that is known about one trial, in packets. Counters are Delta.Counters of the device and namespace,
// with the counters of sockets, programs, generator and reader merged in, under the names of the team's list
// (sock.drops, xsk.rx_ring_full, redirect.no_socket, reader.corrupt_udp ...). A counter nobody read must be absent:
// 0 says that somebody looked.
type Input struct {
	Arm      Arm
	Sender   Sender
	Generic  bool // XDP in generic mode: then the device does not count failed redirects
	ZeroCopy bool // AF_XDP zero-copy: then an empty fill ring counts attempts, not packets

	Sent     uint64 // different numbers of this run that the sender counts as sent
	Unique   uint64 // different numbers of this run received whole: without corrupt, short and late ones
	Injected uint64 // frames sent a second time on purpose, not in Sent

	From map[string]uint64 // sending side
	To   map[string]uint64 // receiving side

	FromName, ToName string // how witnesses name the sides; "" is peer and SUT

	// Fragments is set when packets are datagrams that were sent in several frames. Witnesses before reassembly count frames.
	Fragments *Fragments
}

// Fragments is what the sender knows of datagrams in fragments.
type Fragments struct {
	Frames      uint64 // sent
	Missing     uint64 // datagrams of which one fragment was not sent
	Overlapping uint64 // datagrams sent with an overlap
}

// Result is where the packets of one trial went. sum(Rows.Packets) + Unexplained == Lost, whatever the counters say.
type Result struct {
	Lost        uint64 // Sent - Unique, 0 when more arrived than was sent (then a check fails)
	Rows        []compare.LedgerRow
	Unexplained uint64
	Checks      []compare.CrossCheck // two counts of one thing; shown, never added

	// OwnExcess is how many more packets the run's own witnesses (its sockets, rings, programs) count than were lost:
	// not 0 means that something is counted twice or that Sent or Unique is wrong.
	OwnExcess uint64
	// SharedExcess is the same for witnesses that count a whole namespace, device or host: other traffic does this.
	SharedExcess uint64
	// Blind names the rows that apply to this arm, but whose witness was not read.
	Blind []string
}

// frames is how many frames the sender handed to the device.
func (in *Input) frames() uint64 {
	if in.Fragments != nil {
		return in.Fragments.Frames
	}
	return addCapped(in.Sent, in.Injected)
}

// claim is what one row's witness says.
type claim struct {
	packets uint64
	most    uint64 // when the witness counts merged packets: the most it can stand for; else 0
	known   bool   // the witness was read
	trust   trust
	witness string
	note    string
}

// trust ranks witnesses: the more a witness sees of other traffic, the later it may claim.
type trust uint8

const (
	own    trust = iota // counts this run's packets only
	shared              // counts a whole namespace, device or host; stands still on a quiet machine
	weak                // also counts what any live link carries (multicast listener reports, unknown protocols)
	pieces              // counts fragments, of which one is enough to lose a datagram, and several may lose the same
	trusts
)

// Build assigns every lost packet to exactly one row, or to Unexplained.
//
// Witnesses that count only this run's packets claim first, in path order; then those that count a namespace, device
// or host claim from what is left, also in path order, and last those that move on any live link; so other traffic
// cannot take loss away from a witness that knows better. Where packets are datagrams in fragments, witnesses that count
// fragments claim after all others. A claim is cut to the loss that is left. A row is exact when its witness counts single packets of this
// run only and was not cut, unless the own witnesses exceed the loss; one with a shared witness is exact only if the
// whole account closes to the packet, for then other traffic has added nothing.
func Build(in Input) Result {
	in = in.withNames()
	r := Result{}
	if in.Sent > in.Unique {
		r.Lost = in.Sent - in.Unique
	}
	specs := ledgerRows()
	claims, got := make([]claim, len(specs)), make([]uint64, len(specs))
	cut := make([]bool, len(specs))
	whole := firstWhole(specs)
	for i, s := range specs {
		if s.arms&in.Arm == 0 || s.senders&in.Sender == 0 {
			continue
		}
		claims[i] = s.claim(&in)
		if in.Fragments != nil && i < whole {
			claims[i].trust = pieces
		}
		if !claims[i].known {
			r.Blind = append(r.Blind, s.doc.ID)
		}
	}

	left := r.Lost
	var before, claimed, excess [trusts]uint64 // per rank: the loss it found, what it claimed, and that beyond the loss
	for rank := range trusts {
		before[rank] = left
		for i, c := range claims {
			if !c.known || c.trust != rank {
				continue
			}
			n := min(c.packets, left)
			got[i], cut[i] = n, n < c.packets
			left -= n
			claimed[rank] = addCapped(claimed[rank], c.packets)
			excess[rank] = addCapped(excess[rank], c.packets-n)
		}
	}
	// Dropped duplicates are in the witnesses and are no loss: only what they cannot account for is too much.
	r.OwnExcess = subtract(excess[own], subtract(in.Injected, in.To["reader.duplicate"]))
	r.SharedExcess = excess[shared]
	for i, c := range claims { // what merged packets may hide
		if c.most > c.packets && !cut[i] {
			n := min(c.most-c.packets, left)
			got[i] += n
			left -= n
		}
	}
	r.Unexplained = left

	// A shared witness is as good as an own one when the account closes to the packet.
	closes := left == 0 && r.OwnExcess == 0 && r.SharedExcess == 0
	exact := [trusts]bool{own: r.OwnExcess == 0, shared: closes, weak: closes && excess[weak] == 0, pieces: closes && excess[pieces] == 0}
	for i, s := range specs {
		if got[i] == 0 {
			continue
		}
		grade := compare.Exact
		if cut[i] || claims[i].most > 0 || !exact[claims[i].trust] {
			grade = compare.Bounded
		}
		r.Rows = append(r.Rows, compare.LedgerRow{At: s.doc.ID, Packets: got[i], Witness: claims[i].witness, Grade: grade,
			Note: joinNotes(s.doc.Hint, claims[i].note, cutNote(cut[i], claims[i].packets))})
	}
	r.Checks = crossChecks(&in)
	if claimed[own] > 0 {
		r.Checks = append(r.Checks, compare.CrossCheck{What: "the run's own witnesses <= loss", A: claimed[own], B: r.Lost, OK: r.OwnExcess == 0})
	}
	if claimed[shared] > 0 {
		r.Checks = append(r.Checks, compare.CrossCheck{What: "shared witnesses <= loss left for them (more: other traffic)",
			A: claimed[shared], B: before[shared], OK: r.SharedExcess == 0})
	}
	return r
}

func cutNote(cut bool, claimed uint64) string {
	if !cut {
		return ""
	}
	return fmt.Sprintf("the witness counts %d", claimed)
}

func joinNotes(notes ...string) string {
	var b strings.Builder
	for _, n := range notes {
		if n == "" {
			continue
		}
		if b.Len() > 0 {
			b.WriteString("; ")
		}
		b.WriteString(n)
	}
	return b.String()
}

func (in Input) withNames() Input {
	if in.FromName == "" {
		in.FromName = "peer"
	}
	if in.ToName == "" {
		in.ToName = "SUT"
	}
	return in
}

// veth says whether the receiving device is one: only veth's ethtool statistics name the peer's index.
func (in *Input) veth() bool { _, ok := in.To["ethtool.peer_ifindex"]; return ok }

// subtract is a - b, 0 when that would be negative.
func subtract(a, b uint64) uint64 { return a - min(a, b) }

// addCapped is a + b, the largest uint64 when that would wrap.
func addCapped(a, b uint64) uint64 {
	if a+b < a {
		return ^uint64(0)
	}
	return a + b
}

// sum adds named counters; known says that at least one was read.
func sum(m map[string]uint64, names ...string) (n uint64, known bool) {
	for _, name := range names {
		v, ok := m[name]
		n, known = addCapped(n, v), known || ok
	}
	return n, known
}

// perQueue adds ethtool.<kind>_queue_N_<what> over all queues N.
func perQueue(m map[string]uint64, kind, what string) (n uint64, known bool) {
	prefix, suffix := "ethtool."+kind+"_queue_", "_"+what
	for name, v := range m {
		q, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		if q, ok = strings.CutSuffix(q, suffix); ok && q != "" && strings.Trim(q, "0123456789") == "" {
			n, known = addCapped(n, v), true
		}
	}
	return n, known
}
