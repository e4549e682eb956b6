// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"encoding/binary"
	"errors"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// reply is the frame that answers f: the way back.
func (f testFrame) reply() testFrame {
	f.dstMAC, f.srcMAC, f.src, f.dst, f.sport, f.dport = f.srcMAC, f.dstMAC, f.dst, f.src, f.dport, f.sport
	return f
}

func newEchoTestMeter(t *testing.T, f testFrame, streams int) *EchoMeter {
	t.Helper()
	nstest.Root(t)
	m, err := NewEchoMeter(EchoMeterOptions{Match: f.match(), Streams: streams})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func meterStats(t *testing.T, m *EchoMeter) EchoStats {
	t.Helper()
	st, err := m.Stats()
	if err != nil {
		t.Fatal(err)
	}
	if sum := st.Unique + st.Duplicate + st.OutsideWindow + st.Contended + st.OtherStream + st.CorruptPayload + st.WrongLength; sum != st.Received {
		t.Errorf("received %d, but the parts add up to %d: %+v", st.Received, sum, st)
	}
	if st.LatencyCount+st.LatencyNegative != st.Unique {
		t.Errorf("%d latencies and %d negative ones of %d unique replies", st.LatencyCount, st.LatencyNegative, st.Unique)
	}
	return st
}

func clockNow(t *testing.T) uint64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		t.Fatal(err)
	}
	return uint64(ts.Nano())
}

// Frames that are no reply of the run go on to the kernel, each with its reason; a sound reply is taken out.
func TestEchoMeterVerdicts(t *testing.T) {
	for _, f := range []testFrame{frame4(), frame6()} {
		m := newEchoTestMeter(t, f, 1)
		udp := 34
		if f.src.Is6() {
			udp = 54
		}
		good := f.reply()
		good.at = clockNow(t)
		for _, c := range []struct {
			name   string
			frame  []byte
			reason string
		}{
			{"a reply", good.build(), "counted"},
			{"the request itself", f.build(), "foreign_ip"},
			{"cut", good.build()[:udp+10], "too_short"},
			{"other protocol", at(map[bool]int{true: 23, false: 20}[f.src.Is4()], 6)(good.build()), "foreign_l4"},
			{"other source port", at(udp, 1)(good.build()), "foreign_port"},
			{"port below the flows", at(udp+2, 0x27, 0x0f)(good.build()), "foreign_port"},
			{"port above the flows", at(udp+2, 0x27, 0x20)(good.build()), "foreign_port"},
			{"other run", at(udp+8, 1)(good.build()), "foreign_run"},
			{"tagged", at(12, 0x81, 0)(good.build()), "vlan"},
			{"ARP", at(12, 8, 6)(good.build()), "arp"},
		} {
			before, _, err := m.Counters()
			if err != nil {
				t.Fatal(err)
			}
			verdict := runOnce(t, m, c.frame)
			after, _, err := m.Counters()
			if err != nil {
				t.Fatal(err)
			}
			want := uint32(xdpPass)
			if c.reason == "counted" {
				want = xdpDrop
			}
			for name, n := range after {
				if moved := n - before[name]; moved != 0 && name != c.reason || moved == 0 && name == c.reason {
					t.Errorf("%s: %s moved by %d, want %s", c.name, name, moved, c.reason)
				}
			}
			if verdict != want {
				t.Errorf("%s: verdict %d, want %d", c.name, verdict, want)
			}
		}
		if st := meterStats(t, m); st.Received != 1 || st.Unique != 1 || st.LatencyCount != 1 {
			t.Errorf("stats %+v", st)
		}
	}
}

func TestEchoMeterSequence(t *testing.T) {
	m := newEchoTestMeter(t, frame4(), 2)
	send := func(stream uint8, numbers ...uint64) {
		for _, n := range numbers {
			f := frame4().reply()
			f.stream, f.number, f.at = stream, n, clockNow(t)
			runOnce(t, m, f.build())
		}
	}
	send(0, 0, 1, 3, 2, 2, 1<<20+9, 5) // 3 before 2; 2 twice; 5 is far too late
	send(1, 0, 1)
	send(2, 0)
	st := meterStats(t, m)
	want := EchoStats{Received: 10, Unique: 8, Duplicate: 1, Reordered: 2, OtherStream: 1}
	// 5 fell out of the window only if its word was used again, which 1<<20+9 did.
	want.Unique, want.Reordered, want.OutsideWindow = 7, 1, 1
	got := EchoStats{Received: st.Received, Unique: st.Unique, Duplicate: st.Duplicate, Reordered: st.Reordered, OtherStream: st.OtherStream, OutsideWindow: st.OutsideWindow}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if st.IPDVCount != 2 { // 0-1 of stream 0, 0-1 of stream 1; 3-2 and what follows are no pairs
		t.Errorf("%d pairs for the jitter, want 2", st.IPDVCount)
	}
}

func TestEchoMeterDamage(t *testing.T) {
	f := frame4().reply()
	f.payload = 200
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		field  func(EchoStats) uint64
	}{
		{"pattern, first", at(42+18, 99), func(s EchoStats) uint64 { return s.CorruptPayload }},
		{"pattern, middle", at(42+100, 99), func(s EchoStats) uint64 { return s.CorruptPayload }},
		{"pattern, last", at(42+199, 99), func(s EchoStats) uint64 { return s.CorruptPayload }},
		{"cut", cut(200), func(s EchoStats) uint64 { return s.WrongLength }},
		{"UDP length", at(38, 0, 40), func(s EchoStats) uint64 { return s.WrongLength }},
	} {
		m := newEchoTestMeter(t, frame4(), 1)
		runOnce(t, m, c.change(f.build()))
		if st := meterStats(t, m); c.field(st) != 1 || st.Received != 1 || st.LatencyCount != 0 {
			t.Errorf("%s: %+v", c.name, st)
		}
	}
}

// Known latencies land where HdrHistogram puts them, within a bucket; count, sum, minimum and maximum are exact.
func TestEchoMeterHistogram(t *testing.T) {
	m := newEchoTestMeter(t, frame4(), 1)
	low, high := hdrhistogram.New(1, 100_000_000_000, 3), hdrhistogram.New(1, 100_000_000_000, 3) // bounds of each latency
	rnd := rand.New(rand.NewPCG(3, 4))
	var most, bound uint64
	const n = 4000
	for i := range n {
		// The program reads the clock itself: stamp a time ago and bound what it can have measured.
		ago := uint64(math.Exp(rnd.Float64() * math.Log(60e9)))
		f := frame4().reply()
		f.number = uint64(i)
		now := clockNow(t)
		f.at = now - ago
		runOnce(t, m, f.build())
		after := clockNow(t)
		if err := errors.Join(low.RecordValue(int64(ago)), high.RecordValue(int64(after-f.at))); err != nil {
			t.Fatal(err)
		}
		most, bound = max(most, ago), max(bound, after-f.at)
	}
	st := meterStats(t, m)
	buckets, err := m.Latencies()
	if err != nil {
		t.Fatal(err)
	}
	var sum uint64
	last := int64(-1)
	for _, b := range buckets {
		if int64(b.From) <= last || b.To < b.From || b.From >= 256 && float64(b.To-b.From) > 0.008*float64(b.From) {
			t.Fatalf("bucket %+v after %d", b, last)
		}
		last = int64(b.To)
		sum += b.Count
	}
	if sum != n || st.LatencyCount != n || st.Unique != n || st.LatencyOver != 0 {
		t.Errorf("%d in buckets, stats %+v", sum, st)
	}
	if st.LatencyMax < most || st.LatencyMax > bound {
		t.Errorf("maximum %d, want %d..%d", st.LatencyMax, most, bound)
	}
	// Each latency is between its bounds, and so is each quantile.
	for _, q := range []float64{0.5, 0.9, 0.99} {
		rank, seen := uint64(math.Ceil(q*n)), uint64(0)
		for _, b := range buckets {
			if seen += b.Count; seen >= rank {
				from, to := float64(low.ValueAtQuantile(100*q)), float64(high.ValueAtQuantile(100*q))
				if got := float64(b.To); got < 0.98*from || got > 1.02*to {
					t.Errorf("quantile %v: %v, HdrHistogram has %v..%v", q, got, from, to)
				}
				break
			}
		}
	}
}

// bucketOf is bucket of c/latency.h, in other words.
func TestLatencyRanges(t *testing.T) {
	var next uint64
	for i := range uint32(latencyBuckets) {
		from, to := latencyRange(i)
		if from != next || to < from {
			t.Fatalf("bucket %d is %d..%d, after %d", i, from, to, next)
		}
		if w := float64(to-from+1) / float64(from); from >= 256 && w > 1.0/128 {
			t.Fatalf("bucket %d is %.2f %% wide", i, 100*w)
		}
		next = to + 1
	}
	if next != 1<<(latencyTop+1) {
		t.Errorf("the histogram ends at %d", next)
	}
}

// The generator, the reflector in the driver at the other end, and the meter: every request is answered once, in ping-pong one
// at a time and in open loop at its time, and nothing is lost on the way.
func TestEchoOverVeth(t *testing.T) {
	for _, c := range []struct {
		name     string
		frame    testFrame
		pingPong bool
		rate     float64
		sizes    []int
	}{
		{"v4 ping-pong", frame4(), true, 0, nil},
		{"v4 ping-pong at a rate", frame4(), true, 5000, nil},
		{"v4 open", frame4(), false, 5000, Imix()},
		{"v6 ping-pong", frame6(), true, 0, []int{84, 1518}},
		{"v6 open", frame6(), false, 5000, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n = 2000
			p := nstest.NewPair(t, nstest.Options{})
			m := newEchoTestMeter(t, c.frame, 1)
			p.Peer.Do(t, func() {
				l, err := Attach(m.Program(), p.Peer.Index, Native)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { l.Close() })
			})
			r, err := NewReflect(ReflectOptions{Match: c.frame.match()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { r.Close() })
			attachSUT(t, p, r)
			o := pairOptions(p, c.frame)
			o.Count, o.Rate, o.Batch, o.Flows, o.Sizes = n, c.rate, 1, 3, c.sizes
			if c.pingPong {
				o.PingPong = m
			}
			began := clockNow(t)
			res := generate(t, p, o)
			took := float64(clockNow(t)-began) / 1e9
			eventually(t, "all replies", func() bool { return meterStats(t, m).Unique == n })
			st := meterStats(t, m)
			if res.Sent != n || st.Received != n || st.Reordered != 0 || st.LatencyNegative != 0 || st.LatencyMin == 0 || res.Abandoned != 0 {
				t.Errorf("result %+v, meter %+v", res, st)
			}
			if st.First < began || st.Last < st.First || st.Last > clockNow(t) {
				t.Errorf("replies from %d to %d", st.First, st.Last)
			}
			if c.rate > 0 && took < (n-1)/c.rate {
				t.Errorf("%d requests at %v/s took %v s", n, c.rate, took)
			}
			if c.pingPong && st.LatencySum > uint64(took*1e9) {
				t.Errorf("one at a time, and yet %d ns of waiting in %v s", st.LatencySum, took)
			}
			counted, _, err := r.Counters()
			if err != nil || counted["counted"] != n {
				t.Errorf("reflected %v (%v)", counted, err)
			}
		})
	}
}

// Without a responder ping-pong gives each request up in its time, and goes on.
func TestPingPongGivesUp(t *testing.T) {
	const n = 5
	p := nstest.NewPair(t, nstest.Options{})
	m := newEchoTestMeter(t, frame4(), 1)
	d, err := NewDrop(DropOptions{Match: frame4().match()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	attachSUT(t, p, d)
	o := pairOptions(p, frame4())
	o.Count, o.Batch, o.PingPong, o.GiveUp = n, 1, m, 20*time.Millisecond
	res := generate(t, p, o)
	if res.Sent != n || res.Abandoned != n-1 || time.Duration(res.End-res.Start) < (n-1)*o.GiveUp {
		t.Errorf("result %+v", res)
	}
}

func TestEchoOptions(t *testing.T) {
	f := frame4()
	for name, change := range map[string]func(*FlowMatch){
		"any run":         func(m *FlowMatch) { m.AnyRun = true },
		"no source":       func(m *FlowMatch) { m.Src = netip.Addr{} },
		"no source ports": func(m *FlowMatch) { m.SrcPorts = 0 },
	} {
		m := f.match()
		change(&m)
		if _, err := NewEchoMeter(EchoMeterOptions{Match: m}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, err := NewEchoMeter(EchoMeterOptions{Match: f.match(), Streams: 257}); err == nil {
		t.Error("257 streams: no error")
	}
}

// The reflected frame is the request turned round, and still right.
func TestReflectFrame(t *testing.T) {
	nstest.Root(t)
	for _, f := range []testFrame{frame4(), frame6()} {
		f.payload, f.number, f.at = 77, 5, 12345
		r, err := NewReflect(ReflectOptions{Match: f.match()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { r.Close() })
		in := f.build()
		verdict, out, err := r.Program().Test(in)
		if err != nil {
			t.Fatal(err)
		}
		want := f.reply().build()
		// The checksums do not change; those of the reply as built are computed anew.
		if verdict != xdpTX || string(out) != string(want) {
			t.Errorf("verdict %d\n% x, want\n% x", verdict, out, want)
		}
		binary.BigEndian.PutUint16(in[map[bool]int{true: 36, false: 56}[f.src.Is4()]:], 1)
		if verdict := runOnce(t, r, in); verdict != xdpPass {
			t.Errorf("foreign port: verdict %d", verdict)
		}
	}
}
