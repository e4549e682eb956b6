// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"sync/atomic"
	"time"

	"twopath/bpf"
	"twopath/internal/agent"
)

// pingPart is the peer of udp-echo. It generates the requests, one frame to a flush, and has a program on its own device that
// meters the replies: no thread of the peer wakes up for them, so the yardstick adds next to nothing.
type pingPart struct {
	*generatePart
	meter  *bpf.EchoMeter
	link   *bpf.Link
	failed atomic.Pointer[error] // of Live
}

func newPing(p agent.Prepare) (_ *pingPart, got agent.Prepared, err error) {
	g := &pingPart{}
	defer func() {
		if err != nil {
			_ = g.Close()
		}
	}()
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("ping: find device %s: %w", p.Device, err)
	}
	if g.meter, err = bpf.NewEchoMeter(bpf.EchoMeterOptions{Match: match(p), Streams: max(len(p.CPUs), 1)}); err != nil {
		return nil, got, err
	}
	if g.link, err = bpf.Attach(g.meter.Program(), ifi.Index, bpf.Native); err != nil {
		return nil, got, fmt.Errorf("ping: meter the replies on %s: %w", ifi.Name, err)
	}
	g.generatePart, got, err = newGenerators(p, false, func(o *bpf.GeneratorOptions) {
		if p.Pinger != nil && p.Pinger.PingPong {
			o.PingPong, o.GiveUp = g.meter, time.Duration(p.Pinger.GiveUp*float64(time.Second))
		}
	})
	return g, got, err
}

// Counters adds what the program made of each frame, under the names of a receiver's.
func (g *pingPart) Counters() (map[string]uint64, error) {
	c, err := g.generatePart.Counters()
	if err != nil {
		return nil, err
	}
	reasons, _, err := g.meter.Counters()
	if err != nil {
		return nil, err
	}
	more := make(map[string]uint64, len(reasons))
	for k, v := range reasons {
		more["redirect."+k] = v
	}
	maps.Copy(c, more)
	return c, nil
}

func (g *pingPart) Live() agent.Live {
	l := g.generatePart.Live()
	s, err := g.meter.Stats()
	if err != nil {
		g.failed.Store(&err) // told by Finish
	}
	l.Received = s.Received
	return l
}

// Finish returns the replies.
func (g *pingPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := g.failed.Load(); err != nil {
		return t, *err
	}
	s, err := g.meter.Stats()
	if err != nil {
		return t, err
	}
	reasons, _, err := g.meter.Counters()
	if err != nil {
		return t, err
	}
	buckets, err := g.meter.Latencies()
	if err != nil {
		return t, err
	}
	t = agent.Received{Received: s.Unique + s.Duplicate + s.OutsideWindow + s.Contended + s.OtherStream, Unique: s.Unique, Duplicate: s.Duplicate,
		Reordered: s.Reordered, Late: s.OutsideWindow + s.Contended + s.OtherStream, WrongRun: reasons["foreign_run"], Short: s.WrongLength,
		BadContent: s.CorruptPayload, Bytes: s.Bytes, FirstNS: int64(s.First), LastNS: int64(s.Last), Counters: map[string]uint64{}}
	l := &agent.Latency{Count: s.LatencyCount, SumNS: s.LatencySum, MinNS: s.LatencyMin, MaxNS: s.LatencyMax, Negative: s.LatencyNegative,
		Over: s.LatencyOver, IPDVCount: s.IPDVCount, IPDVSumNS: s.IPDVSum}
	for _, b := range buckets {
		l.Buckets = append(l.Buckets, [3]uint64{b.From, b.To, b.Count})
	}
	t.Latency = l
	return t, nil
}

func (g *pingPart) Close() error {
	var errs []error
	if g.generatePart != nil {
		errs = append(errs, g.generatePart.Close())
	}
	if g.link != nil {
		errs = append(errs, g.link.Close())
	}
	if g.meter != nil {
		errs = append(errs, g.meter.Close())
	}
	return errors.Join(errs...)
}
