// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"sync"

	"twopath/internal/agent"
	"twopath/internal/knob"
	"twopath/internal/packet"
	"twopath/internal/rig"
)

// Bench is a rig with its CPUs and the program that agents are started from. Trials run on it one after another.
type Bench struct {
	Rig      *rig.Rig
	CPUs     rig.CPUPlan
	Queues   int
	PeerNAPI rig.NAPIOptions
	// Method is how the peer generates in a receive test: agent.MethodXSK (see FeedXSK), or XDP live frames.
	Method string
	// Command is an agent's command line, not started. On another host it goes through ssh.
	Command func(role string) *exec.Cmd
	// Far is the peer when it is on another host; then the rig has the SUT's side only.
	Far *Far

	// Watch names the host knobs that every trial's record tells, besides the port's deferral.
	Watch []string
	// StateDir is where the journal of host knobs is kept; "" means knob.StateDir.
	StateDir string

	mu     sync.Mutex
	agents []*agent.Process // of the trial under way
	knobs  *knob.Journal    // set for the trial under way
}

// Far is a peer on another host, whose port was placed there.
type Far struct {
	Device  string
	MAC     net.HardwareAddr
	CPUs    []int            // of the generators
	Command func() *exec.Cmd // starts an agent there
}

// Flow is the test's traffic on the bench: from the peer to the SUT.
func (b *Bench) Flow(v6 bool, flows int) packet.Flow {
	s := b.Rig.SUT
	peer4, peer6 := rig.PeerAddresses()
	f := packet.Flow{DstMAC: s.MAC, Src: peer4, Dst: s.IPv4.Addr(), SrcPort: 10000, DstPort: 9000, Flows: flows}
	if v6 {
		f.Src, f.Dst = peer6, s.IPv6.Addr()
	}
	if b.Far != nil {
		f.SrcMAC = b.Far.MAC
	} else {
		f.SrcMAC = b.Rig.Peer.MAC
	}
	return f
}

// FeedXSK has the peer send through AF_XDP sockets on all its queues, for CPUs that do not reach every queue of the SUT with
// live frames. A veth hands skbs to the receiver's NAPI only where the sending end does not offer TCP segmentation
// (drivers/net/veth.c, veth_skb_is_eligible_for_gro), and a program at the receiving end switches that offer off. So it goes
// here for all arms: else a kernel arm would have its packets by another way than an xdp arm.
func (b *Bench) FeedXSK() error {
	b.Method = agent.MethodXSK
	if b.Far != nil || b.Rig.Kind != rig.Veth {
		return nil
	}
	off := map[string]bool{}
	for _, f := range []string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation", "tx-tcp-mangleid-segmentation"} {
		off[f] = false
	}
	if err := b.Rig.Peer.SetFeatures(off); err != nil {
		return fmt.Errorf("have the peer send to NAPI: %w", err)
	}
	return nil
}

// generators are the CPUs that generate, on whichever host.
func (b *Bench) generators() []int {
	if b.Far != nil {
		return b.Far.CPUs
	}
	return b.CPUs.Gen
}

// launch starts an agent on a side, or on the other host when there is none, and asks who it is.
func (b *Bench) launch(ctx context.Context, s *rig.Side) (*agent.Process, error) {
	var p *agent.Process
	var err error
	if s == nil {
		p, err = agent.Launch("peer agent", b.Far.Command(), (*exec.Cmd).Start)
	} else {
		p, err = agent.Launch(s.Role+" agent", b.Command(s.Role), func(c *exec.Cmd) error { return s.Start(c, b.CPUs.Others) })
	}
	if err != nil {
		return nil, err
	}
	if _, err := p.Hello(ctx); err != nil {
		return nil, errors.Join(err, p.Kill())
	}
	return p, nil
}

// pair starts both agents at once.
func (b *Bench) pair(ctx context.Context) (sut, peer *agent.Process, err error) {
	var e1, e2 error
	var wg sync.WaitGroup
	wg.Go(func() { sut, e1 = b.launch(ctx, b.Rig.SUT) })
	wg.Go(func() { peer, e2 = b.launch(ctx, b.Rig.Peer) })
	wg.Wait()
	b.mu.Lock()
	b.agents = slices.DeleteFunc([]*agent.Process{sut, peer}, func(p *agent.Process) bool { return p == nil })
	b.mu.Unlock()
	if err := errors.Join(e1, e2); err != nil {
		return nil, nil, errors.Join(err, b.Kill())
	}
	return sut, peer, nil
}

// Live is the newest live counters of the trial under way: frames sent and received.
func (b *Bench) Live() agent.Live {
	b.mu.Lock()
	defer b.mu.Unlock()
	var l agent.Live
	for _, p := range b.agents {
		n := p.Live()
		l.Sent += n.Sent
		l.Received += n.Received
	}
	return l
}

// AgentPIDs are the process ids of the trial under way.
func (b *Bench) AgentPIDs() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	var ids []int
	for _, p := range b.agents {
		ids = append(ids, p.PID())
	}
	return ids
}

// Kill ends the agents of the trial under way at once.
func (b *Bench) Kill() error {
	b.mu.Lock()
	agents := b.agents
	b.agents = nil
	b.mu.Unlock()
	var errs []error
	for _, p := range agents {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// part is bye to both agents, in the order in which nothing is redirected into a socket that is gone.
func (b *Bench) part() error {
	b.mu.Lock()
	agents := b.agents
	b.agents = nil
	b.mu.Unlock()
	var mu sync.Mutex
	var errs []error
	var wg sync.WaitGroup
	for _, p := range agents {
		wg.Go(func() {
			err := p.Close()
			mu.Lock()
			defer mu.Unlock()
			errs = append(errs, err)
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("end agents: %w", err)
	}
	return nil
}
