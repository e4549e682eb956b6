// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Limits of an asker.
const (
	MaxQuestions = 16384
	MaxAskFlows  = 64   // each source port has 65,536 ids, and 16 bytes of memory for each
	maxReply     = 1232 // 8 * REPLY_WORDS of c/ask.bpf.c
	maxRequest   = 352  // REQUEST_MAX
	maxAskCPUs   = 512  // CPUS
	messageLen   = 12   // DNS_HEADER
)

// Question is a request, and the only right answer to it: messages as they are in UDP, with a 16-bit id at their start,
// which is left 0 here, and a header of 12 bytes.
type Question struct {
	Request []byte // at most 290 bytes
	Reply   []byte // at most 1,232 bytes
	// Repeated is how many bytes behind the reply's header repeat the request (the question section); it only helps to say
	// what is wrong with another reply.
	Repeated int
}

// AskerOptions shapes an asker.
type AskerOptions struct {
	IfIndex int   // in the network namespace of the threads that call Run
	CPUs    []int // that ask; each is a stream

	SrcMAC, DstMAC net.HardwareAddr
	Src, Dst       netip.Addr // both IPv4 or both IPv6
	DstPort        uint16
	SrcPort        uint16 // of flow 0
	Flows          int    // source ports, 1..MaxAskFlows; 0 means 1. 65,536 x Flows requests can be out at a time

	Questions []Question // asked in turn
	Rate      float64    // requests per second, of all streams together; 0 = as fast as it goes
	Count     uint64     // requests in all; 0 = until stopped

	Batch    int           // as GeneratorOptions
	Patience int           // likewise
	CatchUp  float64       // likewise
	Burst    int           // likewise
	MaxLag   time.Duration // likewise
}

func (o AskerOptions) withDefaults() (AskerOptions, error) {
	setDefault(&o.Flows, 1)
	n := len(o.CPUs)
	bad := func(format string, args ...any) (AskerOptions, error) {
		return o, fmt.Errorf("asker: "+format, args...)
	}
	switch {
	case n == 0 || n > 255:
		return bad("%d CPUs, want 1..255", n)
	case o.Count > 0 && o.Count < uint64(n):
		return bad("%d requests for %d CPUs: each needs one", o.Count, n)
	case o.Flows > MaxAskFlows:
		return bad("%d flows, at most %d: each has 65,536 requests of its own", o.Flows, MaxAskFlows)
	case len(o.Questions) == 0 || len(o.Questions) > MaxQuestions:
		return bad("%d questions, want 1..%d", len(o.Questions), MaxQuestions)
	case o.DstPort == 0 || o.SrcPort == 0:
		return bad("ports are missing")
	}
	for _, c := range o.CPUs {
		if c < 0 || c >= maxAskCPUs {
			return bad("CPU %d, want 0..%d", c, maxAskCPUs-1)
		}
	}
	// Addresses, pacing and their limits are a generator's.
	g, err := o.generator().withDefaults()
	if err != nil {
		return bad("%w", err)
	}
	o.Src, o.Dst, o.Batch, o.CatchUp, o.Burst, o.MaxLag = g.Src, g.Dst, g.Batch, g.CatchUp, g.Burst, g.MaxLag
	head := len(g.headers())
	for i, q := range o.Questions {
		if len(q.Request) < messageLen || len(q.Request) > maxRequest-ethLen-ip6Len-udpLen {
			return bad("question %d has %d bytes, want %d..%d", i+1, len(q.Request), messageLen, maxRequest-ethLen-ip6Len-udpLen)
		}
		if len(q.Reply) < messageLen || len(q.Reply) > maxReply || q.Repeated < 0 || messageLen+q.Repeated > len(q.Reply) {
			return bad("the reply to question %d has %d bytes, want %d..%d", i+1, len(q.Reply), messageLen, maxReply)
		}
		g.Sizes = []int{max(head+len(q.Request)+fcs, MinFrameSize6)}
		if err := g.checkDevice(); err != nil {
			return bad("question %d: %w", i+1, err)
		}
	}
	return o, nil
}

// generator is what an asker has in common with a generator, for one stream.
func (o AskerOptions) generator() GeneratorOptions {
	return GeneratorOptions{IfIndex: o.IfIndex, SrcMAC: o.SrcMAC, DstMAC: o.DstMAC, Src: o.Src, Dst: o.Dst, DstPort: o.DstPort, SrcPort: o.SrcPort,
		Flows: o.Flows, Rate: o.Rate / float64(max(len(o.CPUs), 1)), Count: o.Count, Batch: o.Batch, Patience: o.Patience, CatchUp: o.CatchUp,
		Burst: o.Burst, MaxLag: o.MaxLag}
}

// variables are the constants of c/ask.bpf.c.
func (o AskerOptions) variables() (map[string]any, error) {
	match, err := FlowMatch{Src: o.Src, Dst: o.Dst, DstPort: o.DstPort, SrcPort: o.SrcPort, SrcPorts: o.Flows, AnyRun: true}.flowMatch()
	if err != nil {
		return nil, fmt.Errorf("asker: %w", err)
	}
	n := uint64(len(o.CPUs))
	var streams [maxAskCPUs]uint8
	for i, c := range o.CPUs {
		streams[c] = uint8(i)
	}
	v := map[string]any{
		askVarMatch: askFlowMatch(match), askVarStreamOf: streams, askVarNstreams: uint32(n), askVarNrequests: uint32(len(o.Questions)),
		askVarFlows: uint32(o.Flows), askVarIfindex: uint32(o.IfIndex), askVarLimit: o.Count / n, askVarLimitMore: o.Count % n,
	}
	return o.generator().pace().variables(v), nil
}

// request lays a question out as a frame, source port, id and checksum left 0.
func (o AskerOptions) request(q Question) (r askRequest) {
	frame := append(o.generator().headers(), q.Request...)
	udp := len(frame) - len(q.Request) - udpLen
	binary.BigEndian.PutUint16(frame[udp+4:], uint16(udpLen+len(q.Request)))
	if o.Src.Is4() {
		ip := frame[ethLen : ethLen+ip4Len]
		binary.BigEndian.PutUint16(ip[2:], uint16(len(frame)-ethLen))
		binary.BigEndian.PutUint16(ip[10:], ^fold(sumWords(ip)))
	} else {
		binary.BigEndian.PutUint16(frame[ethLen+4:], uint16(len(frame)-udp))
	}
	sum := sumWords(o.Src.AsSlice()) + sumWords(o.Dst.AsSlice()) + 17 + uint64(len(frame)-udp) + sumWords(frame[udp:])
	r.Sum = uint32(swap16(int(fold(sum))))
	for len(frame) < ethLen+ip4Len+udpLen+stampLen {
		frame = append(frame, 0) // the shortest frame on Ethernet
	}
	r.Len = uint32(copy(r.Frame[:], frame))
	return r
}

// expect lays out the reply.
func (q Question) expect() (e askExpected) {
	e.Len, e.Question = uint32(len(q.Reply)), uint32(q.Repeated)
	var b [8 * len(e.Words)]byte
	copy(b[:], q.Reply)
	b[0], b[1] = 0, 0
	for i := range e.Words {
		e.Words[i] = binary.NativeEndian.Uint64(b[8*i:])
	}
	return e
}
