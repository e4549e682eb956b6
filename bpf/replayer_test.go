// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"

	"twopath/internal/nstest"
)

// replayFrames makes n different frames of the given lengths in turn, of an experimental EtherType so that no stack answers.
func replayFrames(n int, lengths ...int) [][]byte {
	rnd := rand.New(rand.NewPCG(1, uint64(n)))
	out := make([][]byte, n)
	for i := range out {
		f := make([]byte, lengths[i%len(lengths)])
		for j := range f {
			f[j] = byte(rnd.Uint32())
		}
		copy(f, []byte{2, 0x74, 0x70, 0, 0, 1, 2, 0x74, 0x70, 0, 0, 2, 0x88, 0xb5}) // IEEE 802 local experimental
		if len(f) >= 18 {
			binary.BigEndian.PutUint32(f[14:], uint32(i))
		}
		out[i] = f
	}
	return out
}

// replay runs a replayer in the peer's namespace on the last CPU.
func replay(t *testing.T, p *nstest.Pair, o ReplayerOptions, during ...func(*Replayer)) (res ReplayerResult, times []FrameTime) {
	t.Helper()
	o.IfIndex = p.Peer.Index
	p.Peer.Do(t, func() {
		pin(t, runtime.NumCPU()-1)
		r, err := NewReplayer(o)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		var wg sync.WaitGroup
		defer wg.Wait()
		for _, fn := range during {
			wg.Go(func() { fn(r) })
		}
		if res, err = r.Run(); err != nil {
			t.Fatal(err)
		}
		times = r.Times()
	})
	return res, times
}

// sniff captures what arrives at the SUT that is a replayed frame.
func sniff(t *testing.T, p *nstest.Pair, n int) *capture {
	t.Helper()
	return newCaptureOf(t, p.SUT, p.SUT.Index, n, func(b []byte) bool { return len(b) >= 14 && b[12] == 0x88 && b[13] == 0xb5 })
}

// Every byte of every frame arrives, in order, as often as the list is looped; the receiver scribbles over the pages.
func TestReplayerContent(t *testing.T) {
	for _, c := range []struct {
		name    string
		lengths []int
		n, loop int
		batch   int
		mtu     int
	}{
		{"one", []int{60}, 1, 1, 0, 0},
		{"shortest and longest", []int{14, 1514, 15, 1513, 17, 1518}, 61, 7, 0, 0},
		{"prime, batch 1", []int{60, 1514, 590, 64}, 97, 11, 1, 0},
		{"prime, batch 7", []int{1514, 60, 61}, 101, 13, 7, 0},
		{"jumbo", []int{3408, 60, 3407, 1500}, 31, 5, 0, 3400},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{MTU: c.mtu})
			frames := replayFrames(c.n, c.lengths...)
			want := c.n * c.loop
			cap := sniff(t, p, want)
			res, _ := replay(t, p, ReplayerOptions{Frames: frames, Loops: c.loop, Batch: c.batch, Rate: 50_000})
			if res.Sent != uint64(want) || !res.Done || res.Stopped {
				t.Errorf("result %+v", res)
			}
			var sum uint64
			got := cap.wait()
			if len(got) != want {
				t.Fatalf("%d frames arrived, want %d", len(got), want)
			}
			for i, f := range got {
				if !bytes.Equal(f, frames[i%c.n]) {
					t.Fatalf("frame %d:\n% x, want\n% x", i, f[:min(40, len(f))], frames[i%c.n][:min(40, len(frames[i%c.n]))])
				}
				sum += uint64(len(f))
			}
			if res.Bytes != sum {
				t.Errorf("%d bytes sent, %d arrived", res.Bytes, sum)
			}
		})
	}
}

// Every frame says which loop it is of.
func TestReplayerLoopNumber(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	frames := replayFrames(7, 60, 14, 1000)
	const loops = 600 // more than a byte holds
	cap := sniff(t, p, 7*loops)
	res, _ := replay(t, p, ReplayerOptions{Frames: frames, Loops: loops, Rate: 20_000, LoopAt: 10})
	got := cap.wait()
	if res.Sent != 7*loops || len(got) != 7*loops {
		t.Fatalf("%d arrived, want %d: %+v", len(got), 7*loops, res)
	}
	for i, f := range got {
		want := bytes.Clone(frames[i%7])
		want[10], want[11] = byte(i/7>>8), byte(i/7)
		if !bytes.Equal(f, want) {
			t.Fatalf("frame %d: % x, want % x", i, f[:14], want[:14])
		}
	}
}

// Pages come back as the receiver left them; here a program on the receiving end counts up a byte in place, as forwarding does
// with the TTL. A page that was not written anew would show it.
func TestReplayerRewritesPages(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	frames := replayFrames(3, 60, 200, 100)
	const at, loops = 40, 400
	scribble, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, License: "GPL", Instructions: asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, 0, asm.Word), // data
		asm.LoadMem(asm.R3, asm.R1, 4, asm.Word), // data_end
		asm.Mov.Reg(asm.R4, asm.R2),
		asm.Add.Imm(asm.R4, at+1),
		asm.JGT.Reg(asm.R4, asm.R3, "pass"),
		asm.LoadMem(asm.R5, asm.R2, at, asm.Byte),
		asm.Add.Imm(asm.R5, 1),
		asm.StoreMem(asm.R2, at, asm.R5, asm.Byte),
		asm.Mov.Imm(asm.R0, xdpPass).WithSymbol("pass"),
		asm.Return(),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer scribble.Close()
	p.SUT.Do(t, func() {
		l, err := Attach(scribble, p.SUT.Index, Native)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	})
	cap := sniff(t, p, 3*loops)
	res, _ := replay(t, p, ReplayerOptions{Frames: frames, Loops: loops, Rate: 20_000})
	got := cap.wait()
	if res.Sent != 3*loops || len(got) != 3*loops {
		t.Fatalf("%d arrived, want %d: %+v", len(got), 3*loops, res)
	}
	for i, f := range got {
		want := bytes.Clone(frames[i%3])
		want[at]++
		if !bytes.Equal(f, want) {
			t.Fatalf("frame %d differs; byte %d is %#x, want %#x", i, at, f[at], want[at])
		}
	}
}

// 300 loops of a prime number of frames are exactly that many frames, delivered or counted as overflow, with no slow-down.
func TestReplayerLoops(t *testing.T) {
	for _, n := range []int{1, 2, 61, 997} {
		p := nstest.NewPair(t, nstest.Options{})
		frames := replayFrames(n, 60, 1514, 300)
		const loops = 300
		res, _ := replay(t, p, ReplayerOptions{Frames: frames, Loops: loops})
		sent, errs := xmit(t, p)
		if want := uint64(n * loops); res.Sent != want || res.Calls != want || sent+errs != want || res.Runs != 1 {
			t.Errorf("%d frames: result %+v, device sent %d and overflowed %d", n, res, sent, errs)
		}
	}
}

// Count ends a run within a loop, and many system calls are as exact as one.
func TestReplayerCount(t *testing.T) {
	for name, o := range map[string]ReplayerOptions{
		"flood": {}, "paced": {Rate: 100_000}, "scheduled": {Due: make([]time.Duration, 13), Period: 100 * time.Microsecond},
	} {
		t.Run(name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			o.IfIndex, o.Frames, o.Count = p.Peer.Index, replayFrames(13, 60), 5001
			cap := sniff(t, p, 5001)
			var res ReplayerResult
			p.Peer.Do(t, func() {
				r, err := NewReplayer(o)
				if err != nil {
					t.Fatal(err)
				}
				defer r.Close()
				r.repeat = 997
				if res, err = r.Run(); err != nil {
					t.Fatal(err)
				}
			})
			sent, errs := xmit(t, p)
			if res.Sent != 5001 || sent+errs != 5001 || res.Runs < 6 || res.Bytes != 5001*60 {
				t.Errorf("result %+v, device sent %d and overflowed %d", res, sent, errs)
			}
			got := cap.wait()
			if uint64(len(got)) != sent {
				t.Errorf("%d arrived of %d", len(got), sent)
			}
		})
	}
}

// Each frame goes at its own time on one absolute schedule, and what the replayer says of its lateness is so.
func TestReplayerSchedule(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	const n, loops = 53, 5
	due := make([]time.Duration, n)
	rnd := rand.New(rand.NewPCG(3, 4))
	for i := 1; i < n; i++ {
		due[i] = due[i-1]
		if i%7 != 0 { // some frames share a time
			due[i] += time.Duration(rnd.IntN(int(4 * time.Millisecond)))
		}
	}
	period := due[n-1] + 3*time.Millisecond
	res, times := replay(t, p, ReplayerOptions{Frames: replayFrames(n, 60, 900), Due: due, Period: period, Loops: loops, RecordTimes: true, Batch: 1})
	if res.Sent != n*loops || len(times) != n*loops {
		t.Fatalf("result %+v, %d times", res, len(times))
	}
	var shifted, late, total time.Duration
	var last uint64
	var slots uint64
	for i, ft := range times {
		nominal := res.Start + uint64(period*time.Duration(i/n)+due[i%n])
		if by := time.Duration(ft.Due - nominal); by < shifted || by > res.Shifted {
			t.Fatalf("frame %d: intended %s after its place in the schedule, shifted %s before, %s in all", i, by, shifted, res.Shifted)
		} else {
			shifted = by
		}
		if ft.Sent < ft.Due || ft.Sent < last {
			t.Fatalf("frame %d: sent at %d, due at %d, the one before at %d", i, ft.Sent, ft.Due, last)
		}
		last = ft.Sent
		l := time.Duration(ft.Sent - ft.Due)
		late, total = max(late, l), total+l
		if l > time.Millisecond {
			slots++
		}
	}
	if late != res.LateMax || total != res.LateTotal || slots != res.LateSlots || last != res.End {
		t.Errorf("worst %s, sum %s, %d slots, end %d; the result says %+v", late, total, slots, last, res)
	}
	t.Logf("worst lateness %s, mean %s, shifted %s", late, total/(n*loops), res.Shifted)
}

// What is denser than PeakRate is spread, counted as late, and complete.
func TestReplayerPeak(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	const n = 3000
	res, _ := replay(t, p, ReplayerOptions{Frames: replayFrames(n, 60), Due: make([]time.Duration, n), PeakRate: 100_000, Burst: 10, MaxLag: time.Second})
	if took, least := time.Duration(res.End-res.Start), (n-11)*10*time.Microsecond; res.Sent != n || took < least || res.Held == 0 || res.LateSlots == 0 {
		t.Errorf("took %s, want at least %s: %+v", took, least, res)
	}
}

// Stop and Close end a run that would never end, soon and with exact counts.
func TestReplayerStop(t *testing.T) {
	for name, o := range map[string]ReplayerOptions{
		"flood": {Loops: -1}, "paced": {Loops: -1, Rate: 50_000},
		"asleep": {Due: []time.Duration{0, time.Hour, time.Hour}},
	} {
		for _, by := range []string{"stop", "close"} {
			t.Run(name+" "+by, func(t *testing.T) {
				p := nstest.NewPair(t, nstest.Options{})
				o.Frames = replayFrames(3, 60)
				var stopped time.Time
				res, _ := replay(t, p, o, func(r *Replayer) {
					eventually(t, "it sends", func() bool { return r.State().Sent > 0 })
					if s := r.State(); s.Done {
						t.Errorf("done: %+v", s)
					}
					stopped = time.Now()
					if by == "stop" {
						r.Stop()
						r.Stop()
						return
					}
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				})
				if took := time.Since(stopped); took > 2*time.Second {
					t.Errorf("returned %s after it was told to", took)
				}
				if sent, errs := xmit(t, p); !res.Stopped || res.Done || res.Sent != sent+errs {
					t.Errorf("result %+v, device sent %d and overflowed %d", res, sent, errs)
				}
			})
		}
	}
}

func TestReplayerLife(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	p.Peer.Do(t, func() {
		o := ReplayerOptions{IfIndex: p.Peer.Index, Frames: replayFrames(3, 60)}
		r, err := NewReplayer(o)
		if err != nil {
			t.Fatal(err)
		}
		r.Stop()
		if res, err := r.Run(); err != nil || res.Sent != 0 || !res.Stopped || res.Runs != 0 {
			t.Errorf("stopped before it ran: %+v, %v", res, err)
		}
		if _, err := r.Run(); err == nil {
			t.Error("ran twice")
		}
		if r.Times() != nil {
			t.Error("times that nobody asked for")
		}
		for range 2 {
			if err := r.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := r.Run(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("run after close: %v", err)
		}
		if s := r.State(); s != (ReplayerState{}) {
			t.Errorf("state after close: %+v", s)
		}
		o.Frames = replayFrames(3, 1519)
		if r, err := NewReplayer(o); !errors.Is(err, errTooLong) {
			r.Close()
			t.Errorf("a frame over the MTU: %v", err)
		}
		o.IfIndex = 9999
		if r, err := NewReplayer(o); err == nil {
			r.Close()
			t.Error("no such device: accepted")
		}
	})
}

func TestReplayerOptions(t *testing.T) {
	good := func() ReplayerOptions { return ReplayerOptions{IfIndex: 1, Frames: replayFrames(3, 60)} }
	for want, change := range map[string]func(*ReplayerOptions){
		"no frames":                  func(o *ReplayerOptions) { o.Frames = nil },
		"frame 2 has 13 bytes":       func(o *ReplayerOptions) { o.Frames[1] = make([]byte, 13) },
		"frame 3 has 3409 bytes":     func(o *ReplayerOptions) { o.Frames[2] = make([]byte, 3409) },
		"but 2 times in Due":         func(o *ReplayerOptions) { o.Due = make([]time.Duration, 2) },
		"Due falls":                  func(o *ReplayerOptions) { o.Due = []time.Duration{0, 2, 1} },
		"exclude each other":         func(o *ReplayerOptions) { o.Due, o.Rate = make([]time.Duration, 3), 1 },
		"the last frame is due":      func(o *ReplayerOptions) { o.Due, o.Period = []time.Duration{0, 1, 9}, 8 },
		"Period needs Due":           func(o *ReplayerOptions) { o.Period = 8 },
		"Rate is -1":                 func(o *ReplayerOptions) { o.Rate = -1 },
		"Loops is -2":                func(o *ReplayerOptions) { o.Loops = -2 },
		"Batch is 65":                func(o *ReplayerOptions) { o.Batch = 65 },
		"PeakRate is 0.5":            func(o *ReplayerOptions) { o.PeakRate = 0.5 },
		"RecordTimes keeps":          func(o *ReplayerOptions) { o.Loops, o.RecordTimes = -1, true },
		"LoopAt is 13":               func(o *ReplayerOptions) { o.LoopAt = 13 },
		"IfIndex is 0":               func(o *ReplayerOptions) { o.IfIndex = 0 },
		"CatchUp is 0.5":             func(o *ReplayerOptions) { o.CatchUp = 0.5 },
		"Burst is -1":                func(o *ReplayerOptions) { o.Burst = -1 },
		"Patience is 65, want 0..64": func(o *ReplayerOptions) { o.Patience = 65 },
	} {
		o := good()
		change(&o)
		if _, err := o.withDefaults(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	o := good()
	o.Due = []time.Duration{5, 7, 25}
	if o, err := o.withDefaults(); err != nil || o.Period != 35 || o.Count != 3 {
		t.Errorf("period %d, count %d, %v: want the last frame's time and one mean gap, 35", o.Period, o.Count, err)
	}
}

// A list of more than one element of the map, none across two.
func TestReplayLayout(t *testing.T) {
	frames := make([][]byte, 11_000)
	for i := range frames {
		frames[i] = make([]byte, 3408-i%3)
	}
	l := layOut(frames)
	if l.chunks != 3 || l.offMax > chunkBytes || l.stride < l.offMax+MaxReplayFrame {
		t.Errorf("%d chunks of %d bytes, offsets up to %d", l.chunks, l.stride, l.offMax)
	}
	end := 0
	for i, p := range l.at {
		at := p.chunk*l.stride + p.off
		if at < end || p.off+p.length > l.stride || p.length != len(frames[i]) {
			t.Fatalf("frame %d at %+v, the one before ends at %d", i, p, end)
		}
		end = at + p.length
	}
}

// The frames at the seams of the map's elements are sent like any other.
func TestReplayerChunks(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	n := 2*chunkBytes/1504 + 50
	frames := replayFrames(n, 1500)
	want := n + 10
	cap := sniff(t, p, want)
	res, _ := replay(t, p, ReplayerOptions{Frames: frames, Count: uint64(want), Rate: 50_000})
	got := cap.wait()
	if res.Sent != uint64(want) || len(got) != want {
		t.Fatalf("%d arrived, want %d: %+v", len(got), want, res)
	}
	for i, f := range got {
		if !bytes.Equal(f, frames[i%n]) {
			t.Fatalf("frame %d differs", i)
		}
	}
}
