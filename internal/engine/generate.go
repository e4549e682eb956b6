// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// generatePart is the peer of a receive test: one generator per CPU, each a stream of its own.
type generatePart struct {
	gens   []*bpf.Generator
	cpus   []int
	limit  time.Duration // ends a load without a count; 0 is none
	reader *measure.Reader
	pass   *bpf.Pass // makes a NIC's driver ready to send XDP frames
	link   *bpf.Link
}

func newGenerate(p agent.Prepare) (*generatePart, agent.Prepared, error) {
	return newGenerators(p, true, func(*bpf.GeneratorOptions) {})
}

// newGenerators makes one generator per CPU. alone says that the sending port has no XDP program of its own yet; tune changes
// what the load does not say.
func newGenerators(p agent.Prepare, alone bool, tune func(*bpf.GeneratorOptions)) (_ *generatePart, got agent.Prepared, err error) {
	p.CPUs = withLoad(p)
	g := &generatePart{cpus: p.CPUs}
	defer func() {
		if err != nil {
			_ = g.Close()
		}
	}()
	if p.Generate == nil || len(p.CPUs) == 0 {
		return nil, got, errors.New("generate: no load or no CPUs given")
	}
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("generate: find device %s: %w", p.Device, err)
	}
	if alone {
		if err := g.readyToSend(ifi); err != nil {
			return nil, got, err
		}
	}
	l := p.Generate
	if l.Count == 0 && l.Seconds <= 0 {
		return nil, got, errors.New("generate: the load has neither count nor time")
	}
	g.limit = time.Duration(l.Seconds * float64(time.Second))
	batch, patience := handover(l)
	n := uint64(len(p.CPUs))
	for i := range n {
		count := l.Count / n
		if i < l.Count%n {
			count++
		}
		o := bpf.GeneratorOptions{IfIndex: ifi.Index, Stream: uint8(i), RunID: p.Run,
			SrcMAC: p.Flow.SrcMAC, DstMAC: p.Flow.DstMAC, Src: p.Flow.Src, Dst: p.Flow.Dst, SrcPort: p.Flow.SrcPort, DstPort: p.Flow.DstPort,
			Flows: p.Flow.Flows, Sizes: l.Sizes, Rate: l.Rate / float64(n), Count: count, Batch: batch, Patience: patience, CatchUp: l.CatchUp, Burst: l.Burst,
			Faults: bpf.Faults{BadUDPChecksum: l.Faults.BadChecksum, Duplicate: l.Faults.Duplicate, Swap: l.Faults.Swap, WrongRun: l.Faults.WrongRun}}
		tune(&o)
		gen, err := bpf.NewGenerator(o)
		if err != nil {
			return nil, got, err
		}
		g.gens = append(g.gens, gen)
	}
	if g.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective = map[string]any{"method": "xdp-live-frames"}
	return g, got, nil
}

// withLoad are the CPUs that have a share of the load: a count of less than one each would be none, and none is no limit.
func withLoad(p agent.Prepare) []int {
	if l := p.Generate; l != nil && l.Count > 0 && l.Count < uint64(len(p.CPUs)) {
		return p.CPUs[:l.Count]
	}
	return p.CPUs
}

// readyToSend gives the sending port an XDP program of its own. Drivers of NICs (igb, ixgbe, virtio_net) make the queues
// for XDP frames only then, and refuse all frames with ENXIO before (their ndo_xdp_xmit). A veth needs none: its frames
// go to the other end's ring.
func (g *generatePart) readyToSend(ifi *net.Interface) error {
	driver, err := driverOf(ifi.Name)
	if err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	if driver == "veth" {
		return nil
	}
	if g.pass, err = bpf.NewPass(false); err != nil {
		return fmt.Errorf("generate: %w", err)
	}
	if g.link, err = bpf.Attach(g.pass.Program(), ifi.Index, bpf.Native); err != nil {
		return fmt.Errorf("generate: make %s (driver %s) ready to send XDP frames: %w", ifi.Name, driver, err)
	}
	return nil
}

// driverOf asks ethtool's ioctl, which works in every namespace; sysfs shows only the namespace it was mounted in.
func driverOf(device string) (string, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", fmt.Errorf("driver of %s: %w", device, err)
	}
	defer func() { _ = unix.Close(fd) }()
	info, err := unix.IoctlGetEthtoolDrvinfo(fd, device)
	if err != nil {
		return "", fmt.Errorf("driver of %s: %w", device, err)
	}
	return unix.ByteSliceToString(info.Driver[:]), nil
}

// Frames are handed over together that are due within 32 runs of the generator's program, of half a microsecond at most
// each: about what a NIC does that moderates its interrupts at 20 us. Fewer, and a receiving core on a virtual machine
// spends half of its time on wake-ups; more, and too little is left of the 256 slots of a veth's ring for a wake-up that is
// late, and the generator's own pages, as many as a batch has runs, leave the cache.
const (
	coalesceBatch    = 32
	coalescePatience = 20
)

// handover is how many frames a batch has at most, and how often a run looks at the clock.
func handover(l *agent.Generator) (batch, patience int) {
	if l.Coalesce && l.Rate > 0 && l.Batch == 0 {
		return coalesceBatch, coalescePatience
	}
	return l.Batch, 0
}

func (g *generatePart) Start() error { return nil }

func (g *generatePart) Counters() (map[string]uint64, error) {
	s, err := g.reader.Read()
	return s.Counters, err
}

func (g *generatePart) Live() agent.Live {
	var l agent.Live
	for _, gen := range g.gens {
		l.Sent += gen.State().Sent
	}
	return l
}

func (g *generatePart) Stop() {
	for _, gen := range g.gens {
		gen.Stop()
	}
}

// Run generates on all CPUs at once and adds up what they did.
func (g *generatePart) Run() (agent.Generated, error) {
	results := make([]bpf.GeneratorResult, len(g.gens))
	errs := make([]error, len(g.gens))
	if g.limit > 0 {
		// Set-up takes 20-36 ms of the time; the rate is taken from the first frame to the last.
		defer time.AfterFunc(g.limit, g.Stop).Stop()
	}
	var wg sync.WaitGroup
	for i, gen := range g.gens {
		wg.Go(func() {
			errs[i] = onCPU(g.cpus[i], func() error {
				var err error
				results[i], err = gen.Run()
				return err
			})
			if errs[i] != nil {
				g.Stop() // a load with a stream missing is not the load that was asked for
			}
		})
	}
	wg.Wait()
	var t agent.Generated
	for i, r := range results {
		if r.Failed > 0 {
			errs = append(errs, fmt.Errorf("generator on CPU %d: %d frames could not be shaped", g.cpus[i], r.Failed))
		}
		t.Sent += r.Sent
		t.Duplicates += r.Duplicates
		if t.StartNS == 0 || int64(r.Start) < t.StartNS {
			t.StartNS = int64(r.Start)
		}
		t.EndNS = max(t.EndNS, int64(r.End))
		t.ShiftedNS += uint64(r.Shifted)
		t.LateSlots += r.LateSlots
		t.LateNS += uint64(r.LateTotal)
		t.Abandoned += r.Abandoned
		t.MaxLateNS = max(t.MaxLateNS, uint64(r.LateMax))
		t.MaxGapNS = max(t.MaxGapNS, uint64(r.GapMax))
		t.PerStream = append(t.PerStream, r.Sent-r.Duplicates)
		t.Stopped = t.Stopped || r.Stopped
		t.Runs = max(t.Runs, r.Runs)
	}
	if t.Sent > 1 {
		t.Seconds = float64(t.EndNS-t.StartNS) / 1e9
	}
	return t, errors.Join(errs...)
}

func (g *generatePart) Close() error {
	var errs []error
	for _, gen := range g.gens {
		errs = append(errs, gen.Close())
	}
	if g.link != nil {
		errs = append(errs, g.link.Close())
	}
	if g.pass != nil {
		errs = append(errs, g.pass.Close())
	}
	if g.reader != nil {
		errs = append(errs, g.reader.Close())
	}
	return errors.Join(errs...)
}

// onCPU runs fn on a thread of its own, pinned to a CPU. The thread ends with it.
func onCPU(cpu int, fn func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // not unlocked: the runtime ends the thread, and nothing else ever runs on the CPU
		var set unix.CPUSet
		set.Set(cpu)
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			done <- fmt.Errorf("pin thread to CPU %d: %w", cpu, err)
			return
		}
		done <- fn()
	}()
	return <-done
}
