// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"math"
	"time"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

// floodGuess is what a flood is taken to reach when the loops are chosen that fill a trial's time, frames/s.
const floodGuess = 500_000

// fcsBytes end every frame on the wire; captures do not have them.
const fcsBytes = 4

// describeCapture notes what a replay sends, and makes the mean frame the cell's size, by which rates in bits are reckoned.
func (s *cell) describeCapture() error {
	if !s.test().Captures {
		return nil
	}
	c := s.o.Capture
	if c == nil || c.Frames == 0 {
		return errors.New("replay: no capture was read")
	}
	one := *c
	mean := float64(c.Bytes)/float64(c.Frames) + fcsBytes
	s.c.Size = compare.Size{Bytes: int(math.Round(mean))}
	t := &s.doc.Traffic
	t.Size, t.FrameBytes, t.PayloadBytes, t.Flows, t.IPVersion = s.c.Size, mean, 0, 0, 0
	t.Capture = &one
	if s.c.Queues > 1 {
		s.doc.Rig.Generator.Method = "af_xdp"
	}
	return nil
}

// loops is how often a trial sends the capture: as the plan says, or once with its own timing, or as often as fills the
// plan's time.
func (s *cell) loops() int {
	p := s.o.Plan
	switch {
	case p.Loops > 0:
		return p.Loops
	case p.Speed > 0:
		return 1
	}
	pps := s.pps
	if pps == 0 {
		pps = floodGuess
	}
	return max(int(math.Ceil(time.Duration(p.Duration).Seconds()*pps/float64(s.o.Capture.Frames))), 1)
}

// replayLoad is the capture, for share of a trial in whole loops.
func (s *cell) replayLoad(share float64) trial.Load {
	p, c := s.o.Plan, s.o.Capture
	if t := s.doc.Traffic.Capture; t.Loops == 0 {
		t.Loops = s.loops()
	}
	loops := max(int(math.Round(float64(s.loops())*share)), 1)
	r := &agent.Replay{Path: c.Path, SHA256: c.SHA256, MTU: s.o.CaptureMTU, Speed: p.Speed, Rate: s.pps, Loops: loops, Frames: int(c.Frames), Hosts: p.RewriteIP}
	switch p.RewriteMAC {
	case compare.MACSUT:
		r.DstMAC = s.o.Bench.Rig.SUT.MAC
	case compare.MACKeep:
		r.KeepMAC = true
	}
	l := trial.Load{PPS: s.pps, Count: c.Frames * uint64(loops), Replay: r}
	if p.Speed > 0 {
		mean := 0.0
		if c.Frames > 1 {
			mean = c.Seconds / float64(c.Frames-1)
		}
		l.Seconds = (c.Seconds + mean) * float64(loops) / p.Speed
	}
	return l
}
