// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"errors"
	"math"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// Every byte of every frame is as specified, and the kernel finds every checksum right.
func TestGeneratorContent(t *testing.T) {
	sizes4 := []int{64, 65, 66, 67, 68, 71, 72, 84, 128, 255, 256, 594, 1024, 1280, 1517, 1518}
	sizes6 := []int{84, 85, 86, 87, 88, 91, 92, 100, 128, 255, 256, 594, 1024, 1280, 1517, 1518}
	for _, c := range []struct {
		name   string
		frame  testFrame
		sizes  []int
		flows  int
		stream uint8
	}{
		{"v4 64", frame4(), []int{64}, 1, 0},
		{"v4 1518, 3 flows", frame4(), []int{1518}, 3, 7},
		{"v4 all sizes", frame4(), sizes4, 64, 0},
		{"v4 imix", frame4(), Imix(), 5, 255},
		{"v6 84", frame6(), []int{84}, 1, 0},
		{"v6 all sizes", frame6(), sizes6, 64, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			const count = 4000
			p := nstest.NewPair(t, nstest.Options{})
			v6 := c.frame.src.Is6()
			cap := newCapture(t, p.SUT, p.SUT.Index, count)
			reader := newUDPReader(t, p.SUT, v6, count, false)
			o := pairOptions(p, c.frame)
			o.Sizes, o.Flows, o.Stream, o.Count, o.Rate = c.sizes, c.flows, c.stream, count, 50_000
			res := generate(t, p, o)
			if res.Sent != count || !res.Done || res.Stopped {
				t.Errorf("result %+v", res)
			}

			frames := cap.wait()
			if len(frames) != count {
				t.Fatalf("%d frames captured, want %d", len(frames), count)
			}
			var last uint64
			for n, got := range frames {
				f, err := c.frame.readStamp(got)
				if err != nil {
					t.Fatalf("frame %d: %v", n, err)
				}
				at := f.at
				if at < last || at < res.Start || at > res.End {
					t.Fatalf("frame %d is stamped %d, after %d, in a run from %d to %d", n, at, last, res.Start, res.End)
				}
				last = at
				if want := res.Start + uint64(n)*20_000; res.Shifts == 0 && at != want { // 50,000 a second
					t.Fatalf("frame %d is stamped %d, its intended time is %d", n, at, want)
				}
				f = c.frame
				f.sport, f.stream, f.number, f.at = uint16(10000+n%c.flows), c.stream, uint64(n), at
				f.payload = c.sizes[n%len(c.sizes)] - 4 - 42
				if v6 {
					f.payload -= 20
				}
				if want := f.build(); !bytes.Equal(got, want) {
					t.Fatalf("frame %d:\n% x, want\n% x", n, got[:min(80, len(got))], want[:min(80, len(want))])
				}
			}

			if n := len(reader.wait()); n != count {
				t.Errorf("the kernel delivered %d of %d datagrams", n, count)
			}
			u := udpCounters(t, p.SUT, v6)
			if u["InCsumErrors"] != "0" || u["InErrors"] != "0" {
				t.Errorf("UDP counters %v", u)
			}
		})
	}
}

// A flood of exactly N frames is N frames on the device, delivered or counted as overflow.
func TestGeneratorFloodCount(t *testing.T) {
	for _, count := range []uint64{1, 2, 63, 64, 65, 1000, 300_001} {
		p := nstest.NewPair(t, nstest.Options{})
		d, err := NewDrop(DropOptions{Match: frame4().match()})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		attachSUT(t, p, d)
		o := pairOptions(p, frame4())
		o.Count = count
		res := generate(t, p, o)
		frames, errs := xmit(t, p)
		if res.Sent != count || res.Calls != count || frames+errs != count || res.Runs != 1 {
			t.Errorf("count %d: result %+v, device sent %d and overflowed %d", count, res, frames, errs)
		}
		eventually(t, "all frames dropped", func() bool {
			reasons, queues, err := d.Counters()
			return err == nil && reasons["dropped"] == frames && queues[0] == frames
		})
	}
}

// The schedule is absolute: no frame is early, and the end is late only by what the generator says of itself.
func TestGeneratorPacing(t *testing.T) {
	for _, c := range []struct {
		rate  float64
		count uint64
		batch int
	}{{10, 5, 64}, {1000, 1000, 1}, {999, 500, 64}, {100_000, 100_000, 64}, {123_457, 50_000, 1}} {
		p := nstest.NewPair(t, nstest.Options{})
		s, err := NewSink(SinkOptions{Match: frame4().match(), VerifyUDP: true})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		attachSUT(t, p, s)
		o := pairOptions(p, frame4())
		o.Rate, o.Count, o.Batch = c.rate, c.count, c.batch
		res := generate(t, p, o)
		if res.Sent != c.count {
			t.Errorf("rate %g: sent %d of %d", c.rate, res.Sent, c.count)
		}
		nominal := float64(c.count-1) / c.rate * 1e9
		took := float64(res.End - res.Start)
		if latest := nominal + float64(res.LateMax+res.Shifted); took < nominal-2 || took > latest+2 {
			t.Errorf("rate %g: took %.0f ns, want %.0f to %.0f", c.rate, took, nominal, latest)
		}
		// Where nothing held the generator up, this is the rate asked for.
		if late := float64(res.LateMax + res.Shifted); late < nominal/100 && math.Abs(res.Rate()/c.rate-1) > 0.01 {
			t.Errorf("rate %g: achieved %g", c.rate, res.Rate())
		}
		if res.LateTotal > time.Duration(res.Sent)*res.LateMax || res.LateSlots > res.Sent {
			t.Errorf("rate %g: lateness does not add up: %+v", c.rate, res)
		}
		t.Logf("rate %g: achieved %.2f, late max %s mean %s, %d slots over 1 ms, gap %s", c.rate, res.Rate(), res.LateMax,
			res.LateTotal/time.Duration(res.Sent), res.LateSlots, res.GapMax)
		frames, errs := xmit(t, p)
		if frames+errs != c.count {
			t.Errorf("rate %g: device sent %d and overflowed %d", c.rate, frames, errs)
		}
		eventually(t, "sink has them", func() bool { st, _ := s.Stats(); return st.Unique == frames })
	}
}

// A schedule that cannot be kept is moved on, and that is counted.
func TestGeneratorShifts(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := pairOptions(p, frame4())
	o.Rate, o.Count, o.MaxLag = 1e9, 200_000, time.Millisecond // no machine sends a frame per ns
	res := generate(t, p, o)
	if res.Sent != o.Count || res.Shifts == 0 || res.Shifted == 0 || res.LateMax != time.Millisecond {
		t.Errorf("result %+v", res)
	}
}

// Stop ends a run that would never end, soon and with exact counts.
func TestGeneratorStop(t *testing.T) {
	for name, rate := range map[string]float64{"flood": 0, "paced": 100_000, "slow": 2} {
		t.Run(name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			o := pairOptions(p, frame4())
			o.Rate = rate
			var stopped time.Time
			var after uint64
			res := generate(t, p, o, func(g *Generator) {
				time.Sleep(150 * time.Millisecond)
				if s := g.State(); s.Sent == 0 || s.Done {
					t.Errorf("state after 150 ms: %+v", s)
				}
				stopped = time.Now()
				g.Stop()
				g.Stop()
				time.Sleep(time.Millisecond)
				after = g.State().Sent
			})
			took := time.Since(stopped)
			t.Logf("returned %s after Stop", took)
			if took > 2*time.Second {
				t.Errorf("returned %s after Stop", took)
			}
			frames, errs := xmit(t, p)
			if res.Sent > after+1 { // one may have been under way
				t.Errorf("sent %d, of these %d long after Stop", res.Sent, res.Sent-after)
			}
			if !res.Stopped || res.Done || res.Sent != frames+errs {
				t.Errorf("result %+v, device sent %d and overflowed %d", res, frames, errs)
			}
		})
	}
}

func TestGeneratorLife(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	p.Peer.Do(t, func() {
		g, err := NewGenerator(pairOptions(p, frame4()))
		if err != nil {
			t.Fatal(err)
		}
		g.Stop()
		res, err := g.Run()
		if err != nil || res.Sent != 0 || !res.Stopped || res.Runs != 0 {
			t.Errorf("stopped before it ran: %+v, %v", res, err)
		}
		if _, err := g.Run(); err == nil {
			t.Error("ran twice")
		}
		for range 2 {
			if err := g.Close(); err != nil {
				t.Error(err)
			}
		}
		if _, err := g.Run(); !errors.Is(err, os.ErrClosed) {
			t.Errorf("run after close: %v", err)
		}
		if s := g.State(); s != (GeneratorState{}) {
			t.Errorf("state after close: %+v", s)
		}
		g.Stop()

		for name, change := range map[string]func(*GeneratorOptions){
			"frame over MTU": func(o *GeneratorOptions) { o.Sizes = []int{1523} },
			"no such device": func(o *GeneratorOptions) { o.IfIndex = 9999 },
		} {
			o := pairOptions(p, frame4())
			change(&o)
			if g, err := NewGenerator(o); err == nil {
				g.Close()
				t.Errorf("%s: accepted", name)
			}
		}
	})
}

// Close ends a run from another goroutine and waits for it.
func TestGeneratorCloseWhileRunning(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := pairOptions(p, frame4())
	o.Rate = 1000
	res := generate(t, p, o, func(g *Generator) {
		time.Sleep(50 * time.Millisecond)
		if err := g.Close(); err != nil {
			t.Error(err)
		}
	})
	if frames, errs := xmit(t, p); !res.Stopped || res.Sent != frames+errs {
		t.Errorf("result %+v, device sent %d and overflowed %d", res, frames, errs)
	}
}

// Counts stay exact over many system calls: what one can repeat is bounded (32 bits), and signals end it early.
func TestGeneratorManyCalls(t *testing.T) {
	for name, rate := range map[string]float64{"flood": 0, "paced": 200_000} {
		t.Run(name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			s, err := NewSink(SinkOptions{Match: frame4().match(), VerifyUDP: true})
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			attachSUT(t, p, s)
			o := pairOptions(p, frame4())
			o.Count, o.Rate = 5000, rate
			var res GeneratorResult
			p.Peer.Do(t, func() {
				g, err := NewGenerator(o)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				g.repeat = 997
				if res, err = g.Run(); err != nil {
					t.Fatal(err)
				}
			})
			frames, errs := xmit(t, p)
			if res.Sent != o.Count || frames+errs != o.Count || res.Runs < 6 {
				t.Errorf("result %+v, device sent %d and overflowed %d", res, frames, errs)
			}
			eventually(t, "sink has each once", func() bool { st, _ := s.Stats(); return st.Unique == frames && st.Received == frames })
		})
	}
}

// Neither the garbage collector nor signals to the process end a system call early or hold the collector up.
func TestGeneratorUndisturbed(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := pairOptions(p, frame4())
	o.Count, o.Rate = 20_000, 50_000
	collected := 0
	res := generate(t, p, o, func(g *Generator) {
		for !g.State().Done {
			runtime.GC()
			collected++
			for _, sig := range []unix.Signal{unix.SIGURG, unix.SIGWINCH, unix.SIGCHLD} {
				if err := unix.Kill(os.Getpid(), sig); err != nil {
					t.Error(err)
				}
			}
		}
	})
	frames, errs := xmit(t, p)
	if res.Sent != o.Count || frames+errs != o.Count || res.Runs != 1 {
		t.Errorf("result %+v, device sent %d and overflowed %d", res, frames, errs)
	}
	if collected < 3 {
		t.Errorf("only %d garbage collections in %s", collected, time.Duration(res.End-res.Start))
	}
}

// Two cores are two streams, each complete.
func TestGeneratorStreams(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	const count = 10_000
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	s := newTestSink(t, frame4(), SinkOptions{Streams: 2, VerifyUDP: true})
	attachSUT(t, p, s)
	var wg sync.WaitGroup
	for cpu := range 2 {
		wg.Go(func() {
			p.Peer.Do(t, func() {
				pin(t, cpu)
				o := pairOptions(p, frame4())
				o.Stream, o.Count, o.Rate = uint8(cpu), count, 25_000
				g, err := NewGenerator(o)
				if err != nil {
					t.Error(err)
					return
				}
				defer g.Close()
				if res, err := g.Run(); err != nil || res.Sent != count {
					t.Errorf("stream %d: %+v, %v", cpu, res, err)
				}
			})
		})
	}
	wg.Wait()
	frames, errs := xmit(t, p)
	if frames+errs != 2*count {
		t.Errorf("device sent %d and overflowed %d", frames, errs)
	}
	eventually(t, "all frames counted", func() bool { st, err := s.Stats(); return err == nil && st.Received == frames })
	if st := sinkStats(t, s); st.Unique != frames || st.Reordered != 0 {
		t.Errorf("sink %+v", st)
	}
}
