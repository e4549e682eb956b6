// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"

	"twopath/internal/agent"
	"twopath/internal/packet"
	"twopath/internal/rig"
)

// Bench is a rig with its CPUs and the program that agents are started from. Trials run on it one after another.
type Bench struct {
	Rig      *rig.Rig
	CPUs     rig.CPUPlan
	Queues   int
	PeerNAPI rig.NAPIOptions
	// Command is an agent's command line, not started. On another host it goes through ssh.
	Command func(role string) *exec.Cmd
	// Remote starts the peer's agent when it is not on this host: it is not placed in a namespace.
	Remote bool

	mu     sync.Mutex
	agents []*agent.Process // of the trial under way
}

// Flow is the test's traffic on the bench: from the peer to the SUT.
func (b *Bench) Flow(v6 bool, flows int) packet.Flow {
	s, p := b.Rig.SUT, b.Rig.Peer
	f := packet.Flow{SrcMAC: p.MAC, DstMAC: s.MAC, Src: p.IPv4.Addr(), Dst: s.IPv4.Addr(), SrcPort: 10000, DstPort: 9000, Flows: flows}
	if v6 {
		f.Src, f.Dst = p.IPv6.Addr(), s.IPv6.Addr()
	}
	return f
}

// launch starts an agent on a side and asks who it is.
func (b *Bench) launch(ctx context.Context, s *rig.Side) (*agent.Process, error) {
	p, err := agent.Launch(s.Role+" agent", b.Command(s.Role), func(c *exec.Cmd) error { return s.Start(c, b.CPUs.Others) })
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
