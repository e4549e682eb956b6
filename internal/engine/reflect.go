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

// reflectPart is the limit of an echo test: an XDP program in the responder's place that sends the requests back from the driver.
type reflectPart struct {
	reflect *bpf.Reflect
	link    *bpf.Link
	reader  *measure.Reader
	cpu     *cpuAccount
	p       agent.Prepare
	rate    measure.TickRate
	failed  atomic.Pointer[error]
}

func newReflect(p agent.Prepare) (_ *reflectPart, got agent.Prepared, err error) {
	d := &reflectPart{p: p}
	defer func() {
		if err != nil {
			_ = d.Close()
		}
	}()
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("reflect: find device %s: %w", p.Device, err)
	}
	if d.reflect, err = bpf.NewReflect(bpf.ReflectOptions{Match: match(p)}); err != nil {
		return nil, got, err
	}
	d.link, err = bpf.Attach(d.reflect.Program(), ifi.Index, bpf.Native)
	var native *bpf.NativeUnsupportedError
	if errors.As(err, &native) {
		got.Notes = append(got.Notes, "XDP_TX runs in generic mode: the driver has no native XDP")
		d.link, err = bpf.Attach(d.reflect.Program(), ifi.Index, bpf.Generic)
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
func (d *reflectPart) Start() error {
	d.cpu = newCPUAccount(nil, d.p.NAPI, d.p.CPUs)
	return d.cpu.read()
}

func (d *reflectPart) Counters() (map[string]uint64, error) {
	s, err := d.reader.Read()
	if err != nil {
		return nil, err
	}
	reasons, _, err := d.reflect.Counters()
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

func (d *reflectPart) Live() agent.Live {
	reasons, _, err := d.reflect.Counters()
	if err != nil {
		d.failed.Store(&err) // told by Finish
	}
	return agent.Live{Received: reasons["counted"]}
}

// Finish returns the requests that the program sent back. It does not look at sequence numbers.
func (d *reflectPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := d.failed.Load(); err != nil {
		return t, *err
	}
	reasons, perQueue, err := d.reflect.Counters()
	if err != nil {
		return t, err
	}
	if d.cpu != nil {
		if t.CPU, err = d.cpu.end(d.rate); err != nil {
			return t, err
		}
	}
	t.Received, t.Unique, t.WrongRun = reasons["counted"], reasons["counted"], reasons["foreign_run"]
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

func (d *reflectPart) Close() error {
	errs := []error{d.cpu.close()}
	if d.link != nil {
		errs = append(errs, d.link.Close())
	}
	if d.reflect != nil {
		errs = append(errs, d.reflect.Close())
	}
	if d.reader != nil {
		errs = append(errs, d.reader.Close())
	}
	return errors.Join(errs...)
}
