// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/dns"
	"twopath/internal/measure"
)

// askPart is the peer of dns: it asks with XDP live frames and checks the replies in a program on its own device.
type askPart struct {
	asker  *bpf.Asker
	link   *bpf.Link
	cpus   []int
	limit  time.Duration // ends a load without a count; 0 is none
	reader *measure.Reader
	failed atomic.Pointer[error] // of Live
}

func newAsk(p agent.Prepare) (_ *askPart, got agent.Prepared, err error) {
	p.CPUs = withLoad(p)
	a := &askPart{cpus: p.CPUs}
	defer func() {
		if err != nil {
			_ = a.Close()
		}
	}()
	l := p.Generate
	if l == nil || len(p.CPUs) == 0 || p.DNS == nil {
		return nil, got, errors.New("ask: no load, CPUs or zone given")
	}
	if l.Count == 0 && l.Seconds <= 0 {
		return nil, got, errors.New("ask: the load has neither count nor time")
	}
	a.limit = time.Duration(l.Seconds * float64(time.Second))
	ifi, err := net.InterfaceByName(p.Device)
	if err != nil {
		return nil, got, fmt.Errorf("ask: find device %s: %w", p.Device, err)
	}
	questions, err := questions(p.DNS)
	if err != nil {
		return nil, got, err
	}
	batch, patience := handover(l)
	a.asker, err = bpf.NewAsker(bpf.AskerOptions{IfIndex: ifi.Index, CPUs: p.CPUs, SrcMAC: p.Flow.SrcMAC, DstMAC: p.Flow.DstMAC, Src: p.Flow.Src, Dst: p.Flow.Dst,
		DstPort: p.Flow.DstPort, SrcPort: p.Flow.SrcPort, Flows: p.Flow.Flows, Questions: questions, Rate: l.Rate, Count: l.Count,
		Batch: batch, Patience: patience, CatchUp: l.CatchUp, Burst: l.Burst})
	if err != nil {
		return nil, got, err
	}
	if a.link, err = bpf.Attach(a.asker.Program(), ifi.Index, bpf.Native); err != nil {
		return nil, got, fmt.Errorf("ask: check the replies on %s: %w", ifi.Name, err)
	}
	if a.reader, err = measure.NewReader(measure.ReaderOptions{Device: p.Device}); err != nil {
		return nil, got, err
	}
	got.Effective = map[string]any{"method": "xdp-live-frames"}
	return a, got, nil
}

// questions are the queries with the reply that each must get. The reply is made by the same code that answers, and is
// compared with the records of the zone by other code, here, before it counts as right.
func questions(d *agent.DNS) ([]bpf.Question, error) {
	zone, list, err := zoneAndQueries(d)
	if err != nil {
		return nil, err
	}
	out := make([]bpf.Question, 0, len(list))
	for _, q := range list {
		m, err := q.Message(d.EDNS)
		if err != nil {
			return nil, err
		}
		reply := make([]byte, dns.UDPSize)
		n, _ := zone.Answer(reply, m)
		if err := zone.Check(q, reply[:n]); err != nil {
			return nil, fmt.Errorf("the responder's code is wrong: %w", err)
		}
		out = append(out, bpf.Question{Request: m, Reply: reply[:n:n], Repeated: dns.QuestionLen(m)})
	}
	return out, nil
}

func zoneAndQueries(d *agent.DNS) (*dns.Zone, []dns.Query, error) {
	zone, err := dns.ParseZone(strings.NewReader(d.Zone), d.File)
	if err != nil {
		return nil, nil, err
	}
	if d.Queries == "" {
		list, err := zone.Queries()
		return zone, list, err
	}
	list, err := dns.ParseQueries(strings.NewReader(d.Queries), "queries")
	return zone, list, err
}

func (a *askPart) Start() error { return nil }

// Counters adds what the program made of each frame, under the names of a receiver's.
func (a *askPart) Counters() (map[string]uint64, error) {
	s, err := a.reader.Read()
	if err != nil {
		return nil, err
	}
	reasons, _, err := a.asker.Counters()
	if err != nil {
		return nil, err
	}
	more := make(map[string]uint64, len(reasons))
	for k, v := range reasons {
		more["redirect."+k] = v
	}
	maps.Copy(s.Counters, more)
	return s.Counters, nil
}

func (a *askPart) Live() agent.Live {
	var l agent.Live
	for i := range a.cpus {
		l.Sent += a.asker.State(i).Sent
	}
	s, err := a.asker.Replies()
	if err != nil {
		a.failed.Store(&err) // told by Finish
	}
	l.Received = s.Received
	return l
}

func (a *askPart) Stop() { a.asker.Stop() }

// Run asks on all CPUs at once and adds up what they did.
func (a *askPart) Run() (agent.Generated, error) {
	results := make([]bpf.AskResult, len(a.cpus))
	errs := make([]error, len(a.cpus))
	if a.limit > 0 {
		defer time.AfterFunc(a.limit, a.Stop).Stop()
	}
	var wg sync.WaitGroup
	for i, cpu := range a.cpus {
		wg.Go(func() {
			errs[i] = onCPU(cpu, func() error {
				var err error
				results[i], err = a.asker.Run(i)
				return err
			})
			if errs[i] != nil {
				a.Stop() // a load with a stream missing is not the load that was asked for
			}
		})
	}
	wg.Wait()
	var t agent.Generated
	for _, r := range results {
		t.Sent += r.Sent
		if t.StartNS == 0 || int64(r.Start) < t.StartNS {
			t.StartNS = int64(r.Start)
		}
		t.EndNS = max(t.EndNS, int64(r.End))
		t.ShiftedNS += uint64(r.Shifted)
		t.LateSlots += r.LateSlots
		t.LateNS += uint64(r.LateTotal)
		t.MaxLateNS = max(t.MaxLateNS, uint64(r.LateMax))
		t.MaxGapNS = max(t.MaxGapNS, uint64(r.GapMax))
		t.PerStream = append(t.PerStream, r.Sent)
		t.Stopped = t.Stopped || r.Stopped
		t.Runs = max(t.Runs, r.Runs)
	}
	if t.Sent > 1 {
		t.Seconds = float64(t.EndNS-t.StartNS) / 1e9
	}
	return t, errors.Join(errs...)
}

// Finish returns the replies. Unique are the right ones.
func (a *askPart) Finish() (agent.Received, error) {
	var t agent.Received
	if err := a.failed.Load(); err != nil {
		return t, *err
	}
	s, err := a.asker.Replies()
	if err != nil {
		return t, err
	}
	buckets, err := a.asker.Latencies()
	if err != nil {
		return t, err
	}
	t = agent.Received{Received: s.Received, Unique: s.Right, Short: s.Malformed, CorruptIP: s.CorruptIP, CorruptUDP: s.CorruptUDP, Bytes: s.Bytes,
		FirstNS: int64(s.First), LastNS: int64(s.Last), Counters: map[string]uint64{"reader.wrong": s.Wrong(), "reader.wrong_question": s.WrongQuestion,
			"reader.wrong_code": s.WrongCode, "reader.wrong_answer": s.WrongAnswer, "reader.unasked": s.Unasked, "reader.partial_checksum": s.Partial,
			"reader.truncated": s.Truncated}}
	for i := range a.cpus {
		t.Counters["gen.forgotten"] += a.asker.State(i).Forgotten
	}
	for code, n := range s.Codes {
		if n > 0 {
			t.Counters["reply."+dns.CodeName(code)] = n
		}
	}
	l := &agent.Latency{Count: s.LatencyCount, SumNS: s.LatencySum, MinNS: s.LatencyMin, MaxNS: s.LatencyMax, Over: s.LatencyOver}
	for _, b := range buckets {
		l.Buckets = append(l.Buckets, [3]uint64{b.From, b.To, b.Count})
	}
	t.Latency = l
	return t, nil
}

func (a *askPart) Close() error {
	var errs []error
	if a.link != nil {
		errs = append(errs, a.link.Close())
	}
	if a.asker != nil {
		errs = append(errs, a.asker.Close())
	}
	if a.reader != nil {
		errs = append(errs, a.reader.Close())
	}
	return errors.Join(errs...)
}
