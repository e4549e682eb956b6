// SPDX-License-Identifier: Apache-2.0

package reproduce

import "twopath/compare"

// UDPReceive is the source's name on the command line.
const UDPReceive = "udp-receive"

// Steps of udp-receive.
const (
	StepFlood     = "flood"
	StepOneCore   = "one-core"
	StepReusePort = "reuseport"
)

// Figures of "How fast can the Linux stack receive?" (10 Gb/s, 1024-byte datagrams).
const (
	UDPReceivePayload   = 1024      // bytes
	UDPReceiveEvery     = 1_000_000 // datagrams to a line
	UDPReceiveElapsedUs = 624_000   // of such a line, about
	UDPReceiveNs        = 600       // per datagram, "600 ns+"
)

// UDPReceiveLooks are what the source looks at while it runs, and what it saw.
type UDPReceiveLooks struct{ At, Saw string }

// UDPReceiveSaw lists them in the source's order.
func UDPReceiveSaw() []UDPReceiveLooks {
	return []UDPReceiveLooks{
		{"NIC receive drops (RX-DRP)", "rising: the CPU cannot keep up with the NIC"},
		{"softirq on the stack's core", "100 % of core 0"},
		{"user thread on its core", "core 2, a little idle"},
		{"context switches", "present: epoll_wait finds nothing and sleeps"},
		{"socket buffer overflow", "a few; a bigger SO_RCVBUF cures a few"},
	}
}

// The arms of udp-receive. The source leaves the receive buffer at the system's default of 212,992 bytes; the kernel doubles
// what is asked for, so that is 104k. The bigger one is 8 MiB.
const (
	armEpoll     = "kernel:epoll+rcvbuf=104k"
	armEpollBig  = "kernel:epoll+rcvbuf=8M"
	armEpollMany = "kernel:epoll+rcvbuf=104k+reuseport=2"
	armBatched   = "kernel:recvmmsg"
	armXDP       = "xdp:auto"
)

func udpReceive() Source {
	return Source{Name: UDPReceive,
		Title: `"How fast can the Linux stack receive?" (linux走内核协议栈发包极限测试, bi2.com.cn/biancheng/53.html)`,
		About: "one epoll receiver under a flood of 1024-byte datagrams: a line for each million, and what holds it up",
		steps: udpReceiveSteps}
}

func udpReceiveSteps(sc Scale) []Step {
	step := func(id, title string, p compare.Plan) Step {
		p.Payload, p.Sizes = UDPReceivePayload, nil
		p.Count = sc.count(10*UDPReceiveEvery, 2*UDPReceiveEvery+UDPReceiveEvery/2)
		return Step{ID: id, Title: title, Plan: p, Every: UDPReceiveEvery}
	}
	// The source's reader has a core of its own, apart from the stack's. On two CPUs that is to be had only with the stack on
	// the sender's core, which then waits for it.
	own := sc.plan(armEpoll, armEpollBig, armBatched, armXDP)
	if own.Placement == "" && sc.CPUs < 3 && own.NIC == "" {
		own.Placement = compare.PlaceSender
	}
	own.Rates = []compare.Rate{{Unit: compare.MaxRate}}
	steps := []Step{step(StepFlood, "flood, the reader on a core of its own; then a bigger buffer, a batched reader, and bypass", own)}

	if sc.CPUs < 3 && sc.Base.Placement == "" && sc.Base.NIC == "" {
		one := sc.plan(armEpoll, armEpollBig, armXDP)
		one.Rates = []compare.Rate{{Unit: compare.Line, Value: 1, LinkBPS: 10e9}}
		one.Placement = compare.PlaceShared
		steps = append(steps, step(StepOneCore, "10 Gb/s at one core for stack and reader: what does not fit is dropped at the device", one))
	}

	many := sc.plan(armEpoll, armEpollMany, armXDP)
	many.Placement, many.Rates = own.Placement, own.Rates
	many.Flows = 64 // with the source's one client all datagrams hash to one socket
	return append(steps, step(StepReusePort, "SO_REUSEPORT and two threads, 64 flows", many))
}
