// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"net"
	"sync/atomic"

	"github.com/cilium/ebpf"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// standIn is an XDP program in the place of an arm's program, and what it counts.
type standIn interface {
	Program() *ebpf.Program
	Counters() (reasons map[string]uint64, perQueue []uint64, err error)
	Close() error
}

// limitPart is the limit of a rig: a program in the arm's place that counts the run's frames and drops them, or sends them
// back from the driver.
type limitPart struct {
	program standIn
	counted string // the reason under which the run's frames are counted
	link    *bpf.Link
	reader  *measure.Reader
	cpu     *cpuAccount
	p       agent.Prepare
	failed  atomic.Pointer[error]
}

// newDrop drops: the most that any receiver could take.
func newDrop(p agent.Prepare) (*limitPart, agent.Prepared, error) {
	d, err := bpf.NewDrop(bpf.DropOptions{Match: match(p)})
	if err != nil {
		return nil, agent.Prepared{}, err
	}
	return newLimit(p, d, "dropped", "XDP_DROP runs")
}

// newReflect sends back: the soonest that any responder could answer.
func newReflect(p agent.Prepare) (*limitPart, agent.Prepared, error) {
	r, err := bpf.NewReflect(bpf.ReflectOptions{Match: match(p)})
	if err != nil {
		return nil, agent.Prepared{}, err
	}
	return newLimit(p, r, "counted", "XDP_TX runs")
}

func newLimit(p agent.Prepare, program standIn, counted, runs string) (_ *limitPart, got agent.Prepared, err error) {
	d := &limitPart{p: p, program: program, counted: counted}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	var note string
	if d.link, note, err = attachHere(program.Program(), p.Device, runs); err != nil {
		return nil, got, err
	}
	if note != "" {
		got.Notes = append(got.Notes, note)
	}
	if d.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective = map[string]any{"attach": d.link.Mode().String()}
	return d, got, nil
}

// attachHere attaches a program that is not an arm's natively, or generically where the driver has no native XDP: then the
// note says so, beginning with what runs.
func attachHere(program *ebpf.Program, device, runs string) (link *bpf.Link, note string, err error) {
	ifi, err := net.InterfaceByName(device)
	if err != nil {
		return nil, "", fmt.Errorf("find device %s: %w", device, err)
	}
	link, err = bpf.Attach(program, ifi.Index, bpf.Native)
	var native *bpf.NativeUnsupportedError
	if errors.As(err, &native) {
		note = runs + " in generic mode: the driver has no native XDP"
		link, err = bpf.Attach(program, ifi.Index, bpf.Generic)
	}
	return link, note, err
}

// Start starts the account of the CPU; the program counts by itself.
func (d *limitPart) Start() error {
	d.cpu = newCPUAccount(nil, d.p.NAPI, d.p.CPUs)
	return d.cpu.read()
}

func (d *limitPart) Counters() (map[string]uint64, error) {
	reasons, _, err := d.program.Counters()
	if err != nil {
		return nil, err
	}
	return withOwn(d.reader, reasonCounters(reasons))
}

func (d *limitPart) Live() agent.Live {
	reasons, _, err := d.program.Counters()
	if err != nil {
		d.failed.Store(&err) // told by Finish
	}
	return agent.Live{Received: reasons[d.counted]}
}

// Finish returns the frames that the program counted. It does not look at sequence numbers.
func (d *limitPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := d.failed.Load(); err != nil {
		return t, *err
	}
	reasons, perQueue, err := d.program.Counters()
	if err != nil {
		return t, err
	}
	if d.cpu != nil {
		if t.CPU, err = d.cpu.end(measure.TickRate{}); err != nil { // no thread of ours runs, so there are no ticks of one
			return t, err
		}
	}
	t.Received, t.Unique, t.WrongRun = reasons[d.counted], reasons[d.counted], reasons["foreign_run"]
	queues := max(d.p.Queues, 1)
	for q, n := range perQueue {
		if n > 0 {
			queues = max(queues, q+1)
		}
	}
	t.PerWorker = perQueue[:min(queues, len(perQueue))]
	t.Counters = map[string]uint64{}
	return t, nil
}

func (d *limitPart) Close() error {
	errs := []error{d.cpu.close()}
	if d.link != nil {
		errs = append(errs, d.link.Close())
	}
	errs = append(errs, d.program.Close())
	if d.reader != nil {
		errs = append(errs, d.reader.Close())
	}
	return errors.Join(errs...)
}
