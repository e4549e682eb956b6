// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"sync/atomic"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// countPart is the peer of a send test: an XDP program that checks, counts and drops the run's frames, the same for all arms.
type countPart struct {
	sink   *bpf.Sink
	link   *bpf.Link
	reader *measure.Reader
	flows  int
	failed atomic.Pointer[error]
}

func newCount(p agent.Prepare) (_ *countPart, got agent.Prepared, err error) {
	c := &countPart{flows: max(p.Flow.Flows, 1)}
	defer func() {
		if err != nil {
			_ = c.Close()
		}
	}()
	// UDP checksums are looked at only where the sender writes them itself: the kernel leaves its own to the device, and a
	// veth has nothing to write them with.
	c.sink, err = bpf.NewSink(bpf.SinkOptions{Match: match(p), Flows: c.flows, Streams: max(p.Streams, 1), VerifyUDP: p.Options["csum"] == "complete"})
	if err != nil {
		return nil, got, err
	}
	var note string
	if c.link, note, err = attachHere(c.sink.Program(), p.Device, "the peer counts"); err != nil {
		return nil, got, err
	}
	if note != "" {
		got.Notes = append(got.Notes, note)
	}
	if c.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective = map[string]any{"attach": c.link.Mode().String()}
	return c, got, nil
}

// Start does nothing: the program counts from the moment it is attached.
func (c *countPart) Start() error { return nil }

func (c *countPart) Counters() (map[string]uint64, error) {
	reasons, perQueue, err := c.sink.Counters()
	if err != nil {
		return nil, err
	}
	own := reasonCounters(reasons)
	for q, n := range perQueue {
		if n > 0 {
			own[fmt.Sprintf("redirect.queue_%d", q)] = n
		}
	}
	return withOwn(c.reader, own)
}

func (c *countPart) Live() agent.Live {
	st, err := c.sink.Stats()
	if err != nil {
		c.failed.Store(&err) // told by Finish
	}
	return agent.Live{Received: st.Received}
}

// Finish returns what the program counted so far.
func (c *countPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := c.failed.Load(); err != nil {
		return t, *err
	}
	st, err := c.sink.Stats()
	if err != nil {
		return t, err
	}
	reasons, _, err := c.sink.Counters()
	if err != nil {
		return t, err
	}
	if t.PerWorker, err = c.sink.Flows(); err != nil {
		return t, err
	}
	t.Received, t.Unique, t.Duplicate, t.Reordered = st.Unique+st.Duplicate+st.OutsideWindow, st.Unique, st.Duplicate, st.Reordered
	t.Late = st.OutsideWindow + st.Contended + st.OtherStream
	t.CorruptIP, t.CorruptUDP, t.BadContent, t.Short = st.CorruptIP, st.CorruptUDP, st.CorruptPayload, st.WrongLength
	t.Bytes, t.WrongRun = st.Bytes, reasons["foreign_run"]
	t.Counters = map[string]uint64{"sink.gaps": st.Gaps, "sink.skipped": st.Skipped, "sink.contended": st.Contended, "sink.other_stream": st.OtherStream,
		"sink.latency_count": st.LatencyCount, "sink.latency_sum_ns": st.LatencySum, "sink.latency_min_ns": st.LatencyMin, "sink.latency_max_ns": st.LatencyMax}
	return t, nil
}

func (c *countPart) Close() error {
	var errs []error
	if c.link != nil {
		errs = append(errs, c.link.Close())
	}
	if c.sink != nil {
		errs = append(errs, c.sink.Close())
	}
	if c.reader != nil {
		errs = append(errs, c.reader.Close())
	}
	return errors.Join(errs...)
}
