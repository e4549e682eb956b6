// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"

	"github.com/cilium/ebpf"
)

// Generator sends the run's frames from one core: XDP live frames (Linux 5.18), paced by the program itself.
// It runs once.
type Generator struct {
	o     GeneratorOptions
	obj   generateObjects
	state *mapMemory
	// repeat is how many program runs one system call makes. The kernel counts them in 32 bits and adds a batch before
	// it compares, so the highest values would never end.
	repeat uint32

	stop chan struct{} // closed by Stop

	mu      sync.Mutex
	stopped bool
	started bool
	closed  bool
	done    chan struct{} // closed when Run is over; nil before it starts
}

// GeneratorState is what a generator has done so far.
type GeneratorState struct {
	Sent       uint64        // frames given to the device, duplicates included; check it against the device's own counters
	Duplicates uint64        // of these, sent twice on purpose; Sent - Duplicates numbers were used
	Calls      uint64        // program runs; most of them only wait
	Start, End uint64        // CLOCK_MONOTONIC ns of the first frame and of the latest
	LateTotal  time.Duration // sum over all frames of sent minus intended
	LateMax    time.Duration
	LateSlots  uint64        // frames sent more than 1 ms after their intended time
	Shifts     uint64        // times the schedule was moved on because it was more than MaxLag behind
	Shifted    time.Duration // by how much in all: time in which nothing was offered
	Held       uint64        // program runs in which a late frame waited for the catch-up limit
	Abandoned  uint64        // ping-pong: requests that were waited for in vain
	GapMax     time.Duration // longest time between two program runs: the generator itself stood still
	Failed     uint64        // frames that could not be shaped; 0 unless there is a bug
	Done       bool          // Count reached
}

// GeneratorResult is the state at the end of a run.
type GeneratorResult struct {
	GeneratorState
	Stopped bool // ended by Stop, before Count
	Runs    int  // system calls; each after the first is a hole of some 20 ms in the load
}

// Rate returns the mean rate in frames per second between first and last frame, 0 for less than two frames.
func (s GeneratorState) Rate() float64 {
	if s.Sent < 2 || s.End <= s.Start {
		return 0
	}
	return float64(s.Sent-1) / float64(s.End-s.Start) * 1e9
}

// NewGenerator loads a generator. The calling thread must be in the network namespace of the sending interface.
// The receiving end must have NAPI (GRO on, or XDP attached), or a veth swallows the frames uncounted.
func NewGenerator(o GeneratorOptions) (_ *Generator, err error) {
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	if err := o.checkMTU(); err != nil {
		return nil, err
	}
	spec, err := loadGenerate()
	if err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	if err := setVariables(spec, o.variables()); err != nil {
		return nil, fmt.Errorf("generator: %w", err)
	}
	g := &Generator{o: o, repeat: math.MaxUint32 - 255, stop: make(chan struct{})}
	var shared map[string]*ebpf.Map
	if o.PingPong != nil {
		shared = map[string]*ebpf.Map{generateMapAnswers: o.PingPong.obj.Answers}
	}
	if err := loadSharing("generator", spec, &g.obj, shared); err != nil {
		return nil, err
	}
	if g.state, err = mmapMap(g.obj.State); err != nil {
		return nil, errors.Join(fmt.Errorf("generator: %w", err), g.obj.Close())
	}
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
		generateVarPatience: uint32(o.Patience),
		generateVarBurst:    uint64(o.Burst), generateVarLagNs: uint64(o.MaxLag),
		generateVarFaultChecksum: o.Faults.BadUDPChecksum, generateVarFaultDuplicate: o.Faults.Duplicate,
		generateVarFaultSwap: o.Faults.Swap, generateVarFaultRun: o.Faults.WrongRun,
		generateVarFaultMac: o.Faults.WrongMAC, generateVarFaultPayload: o.Faults.BadPayload,
	}
	if o.PingPong != nil {
		v[generateVarPingpong], v[generateVarGiveUpNs] = uint32(1), uint64(o.GiveUp)
	}
	if o.Rate > 0 {
		whole, frac := math.Modf(1e9 / o.Rate)
		v[generateVarIntervalNs] = uint64(whole)
		v[generateVarIntervalFrac] = uint64(frac * (1 << 32))
		v[generateVarCatchup] = uint64(1e9 / o.Rate / o.CatchUp * (1 << 12))
	}
	return v
}

// State returns what was done so far; safe from any goroutine, and cheap. Its numbers may be some frames apart.
func (g *Generator) State() GeneratorState {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return GeneratorState{}
	}
	return g.read()
}

// read needs mu, or a generator that cannot be closed meanwhile.
func (g *Generator) read() GeneratorState {
	s := snapshot[generateGeneratorState](g.state, 0)
	return GeneratorState{
		Sent: s.Pace.Sent, Duplicates: s.Duplicates, Calls: s.Pace.Calls, Start: s.Pace.StartNs, End: s.Pace.EndNs,
		LateTotal: time.Duration(s.Pace.LateTotalNs), LateMax: time.Duration(s.Pace.LateMaxNs), LateSlots: s.Pace.LateSlots,
		Shifts: s.Pace.Shifts, Shifted: time.Duration(s.Pace.ShiftedNs), Held: s.Pace.Held, GapMax: time.Duration(s.Pace.GapMaxNs),
		Failed: s.Pace.Failed, Done: s.Pace.Done != 0, Abandoned: s.Abandoned,
	}
}

// Stop makes Run return within some 20 ms (it was 6-16 ms), with exact counts. It may be called at any time, from any
// goroutine, more than once, and does not wait.
func (g *Generator) Stop() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.stopped || g.closed {
		return
	}
	g.stopped = true
	g.state.word(paceStop).Store(1) // pairs with READ_ONCE(s->stop) in generate
	close(g.stop)
}

// Close stops a run, waits for its end, and unloads the program. It may be called twice.
func (g *Generator) Close() error {
	g.Stop()
	g.mu.Lock()
	done := g.done
	g.mu.Unlock()
	if done != nil {
		<-done
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}
	g.closed = true
	return errors.Join(g.state.close(), g.obj.Close())
}

// Run sends until Count or Stop. It occupies the calling thread, which must be in the network namespace of the sending
// interface, and should be pinned to a core of its own: on veth the core picks the receiving queue.
func (g *Generator) Run() (GeneratorResult, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return GeneratorResult{}, fmt.Errorf("run generator: %w", os.ErrClosed)
	}
	if g.started {
		g.mu.Unlock()
		return GeneratorResult{}, errors.New("run generator: it has run already")
	}
	g.started = true
	g.done = make(chan struct{})
	g.mu.Unlock()
	defer close(g.done)

	runs, err := g.drive()
	s := g.read()
	return GeneratorResult{GeneratorState: s, Stopped: !s.Done, Runs: runs}, err
}

// drive makes system calls until the program has nothing left to send.
func (g *Generator) drive() (int, error) {
	runs, err := liveRun{prog: g.obj.Generate.FD(), frame: g.o.template(), batch: g.o.Batch, finished: g.finished,
		repeat: g.repeatNow, untilDone: g.untilDone, stop: g.stop}.drive()
	if err != nil {
		return runs, fmt.Errorf("run generator: %w", err)
	}
	return runs, nil
}

func (g *Generator) finished() bool {
	return g.state.word(paceDone).Load() != 0 || g.state.word(paceStop).Load() != 0
}

// repeatNow is how many program runs the next system call is to make. A flood sends with every run and so ends by
// itself; anything else is ended by liveRun's watch.
func (g *Generator) repeatNow() uint32 {
	if g.o.Rate == 0 && g.o.Count > 0 && g.o.PingPong == nil {
		return uint32(min(uint64(g.repeat), g.o.Count-g.state.word(paceSent).Load()))
	}
	return g.repeat
}

// untilDone estimates from the rate how long the rest will take, to look again then.
func (g *Generator) untilDone() time.Duration {
	if g.o.Count == 0 {
		return time.Hour
	}
	rate := g.o.Rate * g.o.CatchUp
	if rate == 0 {
		rate = 1e7
		if g.o.PingPong != nil {
			rate = 2e5 // a round in 5 us
		}
	}
	left := float64(g.o.Count-min(g.o.Count, g.state.word(paceSent).Load())) / rate
	return time.Duration(left * 1e9)
}
