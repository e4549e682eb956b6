// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/flows"
	"twopath/internal/measure"
	"twopath/internal/packet"
	"twopath/xsk"
)

// Defaults of a replay over several queues.
const (
	queueBurst = 96 // frames at once before the catch-up limit holds, as the live-frame sender's
	queueBatch = 32 // frames handed over together: what one system call sends in copy mode
	flushLimit = 5 * time.Second
)

// queueReplay sends a list of frames through one AF_XDP socket for each transmit queue, from one thread, on the same schedule
// as the live-frame sender. A frame's queue follows from its session, so both directions of a session stay together.
type queueReplay struct {
	o     bpf.ReplayerOptions
	socks []*xsk.Socket
	queue []uint8 // of each frame
	stop  atomic.Bool
	sent  atomic.Uint64
}

func newQueueReplay(device string, queues int, o bpf.ReplayerOptions) (_ *queueReplay, err error) {
	q := &queueReplay{o: o, queue: make([]uint8, len(o.Frames))}
	defer func() {
		if err != nil {
			err = errors.Join(err, q.close())
		}
	}()
	longest := 0
	for i, f := range o.Frames {
		longest = max(longest, len(f))
		q.queue[i] = uint8(flows.Hash(f) % uint64(queues))
	}
	opts := xsk.Options{Device: device, RxRing: xsk.None, TxRing: sendRing, FillRing: tinyFill, Bind: xsk.Copy, ChunkSize: 2048}
	if longest > opts.ChunkSize {
		opts.ChunkSize = 4096
	}
	for opts.Queue = range queues {
		s, err := xsk.Open(opts)
		if err != nil {
			return nil, fmt.Errorf("replay: %w", err)
		}
		q.socks = append(q.socks, s)
	}
	return q, nil
}

// schedule is the intended time of frame n of all, ns after the start.
func (q *queueReplay) schedule(n uint64) int64 {
	if q.o.Due != nil {
		k := uint64(len(q.o.Due))
		return int64(q.o.Period)*int64(n/k) + int64(q.o.Due[n%k])
	}
	if q.o.Rate > 0 {
		return int64(float64(n) * 1e9 / q.o.Rate)
	}
	return 0
}

// spacing is the shortest mean time between frames, ns; 0 is no limit.
func (q *queueReplay) spacing() float64 {
	switch {
	case q.o.Due != nil:
		return 1e9 / 1e6
	case q.o.Rate > 0:
		return 1e9 / (1.25 * q.o.Rate)
	}
	return 0
}

// run sends. It keeps the thread busy between frames, as the live-frame sender keeps its core.
func (q *queueReplay) run() (g agent.Generated, err error) {
	total := uint64(len(q.o.Frames)) * uint64(q.o.Loops)
	g.PerStream = make([]uint64, len(q.socks))
	spacing, flood := q.spacing(), q.o.Due == nil && q.o.Rate == 0
	start := measure.Monotonic()
	g.StartNS, g.Runs = start, 1
	var arrival float64 // GCRA: theoretical arrival time, ns after the start
	last, waiting := start, 0
	for n := uint64(0); n < total && !q.stop.Load(); {
		now := measure.Monotonic()
		g.MaxGapNS = max(g.MaxGapNS, uint64(now-last))
		last = now
		due := start + q.schedule(n)
		if !flood && (due > now || arrival > float64(now-start)+queueBurst*spacing) {
			if err := q.kick(&waiting); err != nil {
				return g, err
			}
			continue
		}
		took, err := q.put(int(n%uint64(len(q.o.Frames))), uint16(n/uint64(len(q.o.Frames))))
		if err != nil {
			return g, err
		}
		if !took {
			continue
		}
		arrival = max(arrival, float64(now-start)) + spacing
		if !flood {
			late := uint64(now - due)
			g.MaxLateNS = max(g.MaxLateNS, late)
			if late > uint64(time.Millisecond) {
				g.LateSlots++
			}
		}
		g.PerStream[q.queue[n%uint64(len(q.o.Frames))]]++
		g.EndNS = now
		n++
		q.sent.Store(n)
		if waiting++; waiting >= queueBatch {
			if err := q.kick(&waiting); err != nil {
				return g, err
			}
		}
	}
	for _, s := range q.socks {
		err = errors.Join(err, s.Flush(flushLimit))
	}
	g.Sent = q.sent.Load()
	g.Stopped = g.Sent < total
	if g.Sent > 1 {
		g.Seconds = float64(g.EndNS-g.StartNS) / 1e9
	}
	return g, err
}

// put copies a frame into its queue's memory. It says no when there is no room, and has the kernel make some.
func (q *queueReplay) put(i int, loop uint16) (bool, error) {
	s := q.socks[q.queue[i]]
	var d [1]xsk.Desc
	if s.Reserve(d[:]) == 0 {
		return false, s.Kick()
	}
	b := s.Buffer(d[0])
	d[0].Len = uint32(copy(b, q.o.Frames[i]))
	packet.PutLoop(b, loop)
	if s.Submit(d[:]) == 0 {
		s.Cancel(d[:])
		return false, s.Kick()
	}
	return true, nil
}

func (q *queueReplay) kick(waiting *int) error {
	if *waiting == 0 {
		return nil
	}
	*waiting = 0
	for _, s := range q.socks {
		if s.Pending() == 0 {
			continue
		}
		if err := s.Kick(); err != nil {
			return fmt.Errorf("replay: %w", err)
		}
	}
	return nil
}

// counters adds what the kernel refused.
func (q *queueReplay) counters(c map[string]uint64) error {
	for _, s := range q.socks {
		st, err := s.Stats()
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		c["xsk.tx_invalid_descs"] += st.TxInvalidDescs
	}
	return nil
}

func (q *queueReplay) close() error {
	var errs []error
	for _, s := range q.socks {
		errs = append(errs, s.Close())
	}
	q.socks = nil
	return errors.Join(errs...)
}
