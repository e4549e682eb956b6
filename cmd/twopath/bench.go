// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/host"
	"twopath/internal/rig"
	"twopath/internal/trial"
)

// setup is a rig that is ready to measure, and what the record says of it.
type setup struct {
	bench    *trial.Bench
	far      *far // nil when both sides are on this host
	host     compare.Host
	rig      compare.Rig
	linkBPS  float64
	allowed  []int // CPUs of this process as it came
	warnings []compare.Warning
}

// setUp makes the rig that the plan asks for, with its most queues, and keeps this process off its cores. Others are the
// numbers of queues that further rigs of the same run have: all are fed in one way.
func (a *app) setUp(ctx context.Context, p compare.Plan, others ...int) (_ *setup, err error) {
	if err := a.recoverLeftovers(); err != nil {
		return nil, err
	}
	allowed, err := host.AllowedCPUs()
	if err != nil {
		return nil, err
	}
	peerHost := ""
	s := &setup{host: hostFacts(), allowed: allowed}
	if p.NIC != "" {
		s.describe(p.NIC)
		if peerHost, _, err = splitPeer(p.Peer); err != nil {
			return nil, err
		}
	}
	cpus := rig.PlanOptions{CPUs: allowed, Queues: p.Queues.Most(), Placement: rig.Placement(p.Placement), SUT: append(p.CPUs["sut"], p.CPUs["napi"]...),
		Peer: append(p.CPUs["peer"], p.CPUs["other"]...), OneSided: peerHost != ""}
	plan, err := rig.PlanCPUs(cpus)
	if err != nil {
		return nil, err
	}
	reached := plan.LiveQ
	for _, n := range others {
		cpus.Queues = n
		other, err := rig.PlanCPUs(cpus)
		if err != nil {
			return nil, err
		}
		reached = reached && other.LiveQ
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("find this program's file: %w", err)
	}
	r, peer, err := a.makeRig(ctx, p, s)
	if err != nil {
		return nil, err
	}
	s.far = peer
	if err := errors.Join(checkQueues(p, r), checkMTU(p, r), s.checkRate(p)); err != nil {
		return nil, errors.Join(err, s.far.close(), r.Close())
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.far.close(), r.Close(), pinProcess(allowed))
		}
	}()
	if err := pinProcess(plan.Others); err != nil {
		return nil, err
	}
	s.bench = &trial.Bench{Rig: r, CPUs: plan, Queues: p.Queues.Most(), PeerNAPI: peerNAPI(p, plan), Command: func(string) *exec.Cmd {
		c := exec.Command(exe, "agent")
		c.Env = agentEnv()
		return c
	}}
	if err := s.knobs(p); err != nil {
		return nil, err
	}
	s.rig.SUT = r.SUT.Name
	if s.far != nil {
		s.bench.Far = s.far.Far
		s.rig.Peer, plan.Gen = p.Peer, s.far.CPUs
	} else {
		s.rig.Peer = r.Peer.Name
	}
	s.rig.Placement = string(plan.Placement)
	s.rig.CPUs = compare.CPUs{"sut": plan.Readers, "peer": plan.Gen}
	if len(plan.NAPI) > 0 {
		s.rig.CPUs["napi"] = plan.NAPI
	}
	if len(plan.Others) > 0 {
		s.rig.CPUs["other"] = plan.Others
	}
	test, _ := compare.LookupTest(p.Test)
	switch {
	case test.Connects: // an engine's client, the arm's own
	case !test.Sends:
		s.rig.Generator.Method = "xdp-live-frames"
		if p.Driver == compare.DriverDnsperf {
			s.rig.Generator.Method = compare.DriverDnsperf
		}
	}
	if !test.Sends && len(plan.Gen) > 0 {
		s.rig.Generator.CPU = &plan.Gen[0]
	}
	if !reached && s.rig.Kind == "veth" { // over a wire, the receiving port spreads flows over its queues
		if err := s.reachQueues(test, plan, p.Queues.Most()); err != nil {
			return nil, err
		}
	}
	for _, w := range plan.Warnings {
		s.warnings = append(s.warnings, compare.Warning{ID: "cpus", Text: w})
	}
	return s, nil
}

// knobs tries the host knobs of the plan's arms, and notes what the ports are set to.
func (s *setup) knobs(p compare.Plan) error {
	arms, err := p.ArmSpecs()
	if err != nil {
		return err
	}
	remarks, err := s.bench.TryKnobs(arms, p.Test != "udp-rx")
	if err != nil {
		return fail(exitMachine, "%w", err)
	}
	for _, r := range remarks {
		s.warnings = append(s.warnings, compare.Warning{ID: "knob", Text: r})
	}
	for _, side := range s.bench.Rig.Sides() {
		prefix := "nic."
		if side.Role != "sut" {
			prefix = "peer.nic."
		}
		if err := side.Do(func() error { return host.PortFacts(s.host.Facts, prefix, side.Name) }); err != nil {
			return fmt.Errorf("describe %s: %w", side.Name, err)
		}
	}
	return nil
}

// reachQueues has the peer feed all queues of a veth by other means than live frames, where the test can (prepared questions
// and stamped requests are live frames only), or says that some queues get nothing.
func (s *setup) reachQueues(test compare.TestInfo, plan rig.CPUPlan, queues int) error {
	switch {
	case test.Fans:
		s.rig.Generator.Method = agent.MethodXSK
		return s.bench.FeedXSK()
	case test.Captures: // its own sender does, whatever the CPUs
	case !test.Sends && !test.Connects && !plan.LiveQ:
		s.warnings = append(s.warnings, compare.Warning{ID: "queues", Text: fmt.Sprintf(
			"CPUs %v do not reach all %d queues with XDP live frames (queue = CPU modulo queues): the others get nothing", plan.Gen, queues)})
	}
	return nil
}

// describe notes driver and bit rate of a port while it is still at home. A port that is not there is makeRig's to refuse.
func (s *setup) describe(nic string) {
	d, err := host.Describe(nic)
	if err != nil {
		return
	}
	s.rig.Driver = d.Driver
	if d.Driver != "veth" { // whose 10 Gb/s are a constant of the driver
		s.linkBPS = float64(d.Speed) * 1e6
	}
}

// checkRate refuses a rate that is a share of a link's whose speed is not known.
func (s *setup) checkRate(p compare.Plan) error {
	for _, r := range p.Rates {
		if p.NIC != "" && r.Unit == compare.Line && r.LinkBPS == 0 && s.linkBPS == 0 {
			return &compare.UsageError{What: "rate", Token: r.String(), Problem: "the bit rate of " + p.NIC + " is not known", Hint: "name it, as in line:1g"}
		}
	}
	return nil
}

// makeRig makes the cable: the veth rig, two ports of this host, or one port of this and one of another.
func (a *app) makeRig(ctx context.Context, p compare.Plan, s *setup) (*rig.Rig, *far, error) {
	if p.NIC == "" {
		s.rig.Kind, s.rig.Driver = "veth", "veth"
		r, err := rig.New(rig.Options{Queues: p.Queues.Most()})
		return r, nil, err
	}
	host, device, err := splitPeer(p.Peer)
	if err != nil {
		return nil, nil, err
	}
	if host == "" {
		s.rig.Kind = "ports"
		r, err := rig.NewPair(rig.PairOptions{IF: p.NIC, PeerIF: device, Protect: sshClient()})
		return r, nil, err
	}
	s.rig.Kind = "hosts"
	r, err := rig.NewRemote(rig.RemoteOptions{IF: p.NIC, Protect: sshClient()})
	if err != nil {
		return nil, nil, err
	}
	f, err := reach(ctx, host, device, r.SUT.MAC)
	if err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	if err := r.SUT.SetNeighbour(f.MAC.String()); err != nil {
		return nil, nil, errors.Join(err, f.close(), r.Close())
	}
	return r, f, nil
}

// peerNAPI places the peer's own receive processing, as the plan says or the test needs: a receive test sends nothing back.
func peerNAPI(p compare.Plan, plan rig.CPUPlan) rig.NAPIOptions {
	where := p.PeerNAPI
	if t, _ := compare.LookupTest(p.Test); where == "" {
		where = t.PeerNAPI
	}
	cpus := p.CPUs["peer-napi"]
	if where != "threaded" && len(cpus) == 0 {
		return rig.NAPIOptions{}
	}
	if len(cpus) == 0 {
		cpus = plan.Gen
	}
	return rig.NAPIOptions{Threaded: true, CPUs: cpus, Policy: rig.Other}
}

// close ends what is under way, removes the rig, and gives this process its CPUs back.
func (s *setup) close() error {
	return errors.Join(s.bench.Kill(), s.bench.RestoreKnobs(), s.far.close(), s.bench.Rig.Close(), pinProcess(s.allowed))
}

// leave is close for a hurry: nothing is reported.
func (s *setup) leave() { _ = s.close() }

// pinProcess moves every thread of this process to the given CPUs; later ones inherit it.
func pinProcess(cpus []int) error {
	if len(cpus) == 0 {
		return nil
	}
	var set unix.CPUSet
	for _, c := range cpus {
		set.Set(c)
	}
	tasks, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return fmt.Errorf("list own threads: %w", err)
	}
	for _, t := range tasks {
		tid, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(tid, &set); err != nil && !errors.Is(err, unix.ESRCH) {
			return fmt.Errorf("pin own thread %d to CPUs %v: %w", tid, cpus, err)
		}
	}
	return nil
}

// sshClient is the address of who is logged in, so that the way to it is not taken away.
func sshClient() []netip.Addr {
	fields := strings.Fields(os.Getenv("SSH_CONNECTION"))
	if len(fields) == 0 {
		return nil
	}
	a, err := netip.ParseAddr(fields[0])
	if err != nil {
		return nil
	}
	return []netip.Addr{a}
}

// checkMTU refuses frames that a port would not carry, before anything is measured.
func checkMTU(p compare.Plan, r *rig.Rig) error {
	cells, err := p.Cells()
	if err != nil {
		return err
	}
	largest := 0
	for _, c := range cells {
		largest = max(largest, slices.Max(c.Size.Cycle()))
	}
	need := largest - 18 // Ethernet header and FCS
	if p.Test == compare.TestFragments {
		largest, need = p.MTU+18, p.MTU
	}
	for _, side := range r.Sides() {
		var dev *net.Interface
		err := side.Do(func() (err error) { dev, err = net.InterfaceByIndex(side.Index); return err })
		if err != nil {
			return fmt.Errorf("read MTU of %s: %w", side.Name, err)
		}
		if dev.MTU < need {
			return fail(exitUsage, "size %d needs an MTU of %d, and %s has %d; use --size %d or less, or ip link set %s mtu %d",
				largest, need, side.Name, dev.MTU, dev.MTU+18, side.Name, need)
		}
	}
	return nil
}

// checkQueues refuses more queues than the SUT's port has.
func checkQueues(p compare.Plan, r *rig.Rig) error {
	n, err := r.SUT.RxQueues()
	if err != nil {
		return err
	}
	if q := p.Queues.Most(); q > n {
		return fail(exitUsage, "--queues %d: %s has %d; use --queues %d, or give it more (ethtool -L %s combined %d)",
			q, r.SUT.Name, n, n, r.SUT.Name, q)
	}
	return nil
}
