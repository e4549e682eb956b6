// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
)

// Generator sends the run's frames from one core: XDP live frames (Linux 5.18), paced by the program itself.
// It runs once.
type Generator struct {
	sender
	o   GeneratorOptions
	obj generateObjects
}

// GeneratorState is what a generator has done so far.
type GeneratorState struct {
	Pacing            // Sent has duplicates in it; Done is Count reached
	Duplicates uint64 // of the frames sent, twice on purpose; Sent - Duplicates numbers were used
	Abandoned  uint64 // ping-pong: requests that were waited for in vain
}

// GeneratorResult is the state at the end of a run.
type GeneratorResult struct {
	GeneratorState
	Stopped bool // ended by Stop, before Count
	Runs    int  // system calls; each after the first is a hole of some 20 ms in the load
}

// NewGenerator loads a generator. The calling thread must be in the network namespace of the sending interface.
// The receiving end must have NAPI (GRO on, or XDP attached), or a veth swallows the frames uncounted.
func NewGenerator(o GeneratorOptions) (_ *Generator, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	if err := o.checkDevice(); err != nil {
		return nil, err
	}
	spec, err := loadGenerate()
	if err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	if err := setVariables(spec, o.variables()); err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	g := &Generator{o: o}
	var shared map[string]*ebpf.Map
	if o.PingPong != nil {
		shared = map[string]*ebpf.Map{generateMapAnswers: o.PingPong.obj.Answers}
	}
	if err := loadSharing("generator", spec, &g.obj, shared); err != nil {
		return nil, err
	}
	state, err := mmapMap(g.obj.State)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("generator: %w", err), g.obj.Close())
	}
	g.init(state, 1, generateStateWords)
	return g, nil
}

// variables are the constants of c/generate.bpf.c.
func (o GeneratorOptions) variables() map[string]any {
	family := uint32(6)
	if o.Src.Is4() {
		family = 4
	}
	var sizes [MaxSizes]generateSize
	for i, s := range o.Sizes {
		sizes[i] = o.size(s)
	}
	v := map[string]any{
		generateVarSizes: sizes, generateVarNsizes: uint32(len(o.Sizes)), generateVarHeader: o.headerWords(),
		generateVarFamily: family, generateVarIfindex: uint32(o.IfIndex), generateVarRun: o.RunID,
		generateVarFlows: uint32(o.Flows), generateVarSourcePort: uint32(o.SrcPort),
		generateVarStream: uint64(o.Stream), generateVarLimit: o.Count,
		generateVarFaultChecksum: o.Faults.BadUDPChecksum, generateVarFaultDuplicate: o.Faults.Duplicate,
		generateVarFaultSwap: o.Faults.Swap, generateVarFaultRun: o.Faults.WrongRun,
		generateVarFaultMac: o.Faults.WrongMAC, generateVarFaultPayload: o.Faults.BadPayload,
	}
	if o.PingPong != nil {
		v[generateVarPingpong], v[generateVarGiveUpNs] = uint32(1), uint64(o.GiveUp)
	}
	return o.pace().variables(v)
}

// State returns what was done so far; safe from any goroutine, and cheap. Its numbers may be some frames apart.
func (g *Generator) State() GeneratorState { return ifOpen(&g.sender, g.read) }

func (g *Generator) read() GeneratorState {
	s := snapshot[generateGeneratorState](g.state, 0)
	return GeneratorState{Pacing: pacingOf(s.Pace), Duplicates: s.Duplicates, Abandoned: s.Abandoned}
}

// Close stops a run, waits for its end, and unloads the program. It may be called twice.
func (g *Generator) Close() error {
	return g.close(func() error { return errors.Join(g.state.close(), g.obj.Close()) })
}

// Run sends until Count or Stop. It occupies the calling thread, which must be in the network namespace of the sending
// interface, and should be pinned to a core of its own: on veth the core picks the receiving queue.
func (g *Generator) Run() (r GeneratorResult, err error) {
	l := sending{prog: g.obj.Generate.FD(), frame: g.o.template(), batch: g.o.Batch, untilDone: g.untilDone}
	if g.o.Rate == 0 && g.o.PingPong == nil {
		l.flood = g.o.Count
	}
	r.Runs, err = g.run(0, l, func() {
		r.GeneratorState = g.read()
		r.Stopped = !r.Done
	})
	if err != nil {
		err = fmt.Errorf("run generator: %w", err)
	}
	return r, err
}

func (g *Generator) untilDone() time.Duration {
	rate := g.o.Rate * g.o.CatchUp
	if rate == 0 && g.o.PingPong != nil {
		rate = 2e5 // a round in 5 us
	}
	return g.left(0, g.o.Count, rate)
}
