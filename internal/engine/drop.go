// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"sync/atomic"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// dropPart is the limit of a rig: an XDP program in the receiver's place that counts the run's frames and drops them.
type dropPart struct {
	drop   *bpf.Drop
	link   *bpf.Link
	reader *measure.Reader
	cpu    *cpuAccount
	p      agent.Prepare
	rate   measure.TickRate
	failed atomic.Pointer[error]
}

func newDrop(p agent.Prepare) (_ *dropPart, got agent.Prepared, err error) {
	d := &dropPart{p: p}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("drop: find device %s: %w", p.Device, err)
	}
	if d.drop, err = bpf.NewDrop(bpf.DropOptions{Match: match(p)}); err != nil {
		return nil, got, err
	}
	d.link, err = bpf.Attach(d.drop.Program(), ifi.Index, bpf.Native)
	var native *bpf.NativeUnsupportedError
	if errors.As(err, &native) {
		// The most any receiver could take on such a device is what generic XDP could drop.
		got.Notes = append(got.Notes, "XDP_DROP runs in generic mode: the driver has no native XDP")
		d.link, err = bpf.Attach(d.drop.Program(), ifi.Index, bpf.Generic)
	}
	if err != nil {
		return nil, got, err
	}
	if d.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective = map[string]any{"attach": d.link.Mode().String()}
	return d, got, nil
}

// Start starts the account of the CPU; the program counts by itself.
func (d *dropPart) Start() error {
	d.cpu = newCPUAccount(nil, d.p.NAPI, d.p.CPUs)
	return d.cpu.read()
}

func (d *dropPart) Counters() (map[string]uint64, error) {
	s, err := d.reader.Read()
	if err != nil {
		return nil, err
	}
	reasons, _, err := d.drop.Counters()
	if err != nil {
		return nil, err
	}
	c := make(map[string]uint64, len(reasons))
	for k, v := range reasons {
		c["redirect."+k] = v
	}
	maps.Copy(s.Counters, c)
	return s.Counters, nil
}

func (d *dropPart) Live() agent.Live {
	reasons, _, err := d.drop.Counters()
	if err != nil {
		d.failed.Store(&err) // told by Finish
	}
	return agent.Live{Received: reasons["dropped"]}
}

// Finish returns the frames that the program counted. It does not look at sequence numbers.
func (d *dropPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := d.failed.Load(); err != nil {
		return t, *err
	}
	reasons, perQueue, err := d.drop.Counters()
	if err != nil {
		return t, err
	}
	if d.cpu != nil {
		if t.CPU, err = d.cpu.end(d.rate); err != nil {
			return t, err
		}
	}
	t.Received, t.Unique, t.WrongRun = reasons["dropped"], reasons["dropped"], reasons["foreign_run"]
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

func (d *dropPart) Close() error {
	errs := []error{d.cpu.close()}
	if d.link != nil {
		errs = append(errs, d.link.Close())
	}
	if d.drop != nil {
		errs = append(errs, d.drop.Close())
	}
	if d.reader != nil {
		errs = append(errs, d.reader.Close())
	}
	return errors.Join(errs...)
}
