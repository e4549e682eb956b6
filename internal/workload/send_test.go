// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"twopath/internal/measure"
	"twopath/internal/packet"
)

// scripted is a sender with a given number of buffers that takes as many packets at a time as a list says, over and over.
type scripted struct {
	slots   [][]byte
	room    func(call int) int
	takes   func(call int) int
	calls   int
	submits int
	got     func(p []byte, flow int)
	err     error
	flushed bool
}

func (s *scripted) Reserve(b [][]byte) (int, error) {
	n := min(len(b), len(s.slots))
	if s.room != nil {
		n = min(n, s.room(s.calls))
	}
	s.calls++
	copy(b, s.slots[:n])
	return n, nil
}

func (s *scripted) Submit(b [][]byte, flow int) (int, error) {
	n := len(b)
	if s.takes != nil {
		n = min(n, s.takes(s.submits))
	}
	s.submits++
	for _, p := range b[:n] {
		s.got(p, flow)
	}
	return n, s.err
}

func (s *scripted) Flush(time.Duration) error { s.flushed = true; return nil }

func sendFlow(flows int) packet.Flow {
	return packet.Flow{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, Src: netip.MustParseAddr("198.18.0.1"),
		Dst: netip.MustParseAddr("198.18.0.2"), SrcPort: 10000, DstPort: 9000, Flows: flows}
}

func sendTemplate(t *testing.T, flows int, sizes ...int) *packet.Template {
	t.Helper()
	tm, err := packet.NewTemplate(sendFlow(flows), 7, 3, sizes)
	if err != nil {
		t.Fatal(err)
	}
	return tm
}

func newScripted(t *testing.T, tm *packet.Template, slots int, frames bool) *scripted {
	t.Helper()
	s := &scripted{got: func([]byte, int) {}}
	for range slots {
		b := make([]byte, 2048)
		if !frames {
			tm.InitPayload(b)
		} else if err := tm.Init(b); err != nil {
			t.Fatal(err)
		}
		s.slots = append(s.slots, b)
	}
	return s
}

func ticks(t *testing.T) measure.TickRate {
	t.Helper()
	r, err := measure.CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// Whatever room an engine has and however little it takes, each number goes out once, in order, whole, in its flow and size.
func TestSendNumbersOnce(t *testing.T) {
	sizes := []int{64, 200, 64, 1518, 100}
	rate := ticks(t)
	for _, frames := range []bool{false, true} {
		for _, flows := range []int{1, 5} {
			tm := sendTemplate(t, flows, sizes...)
			s := newScripted(t, tm, 32, frames)
			s.room = func(call int) int { return []int{32, 0, 1, 7, 0, 0, 31}[call%7] }
			s.takes = func(call int) int { return []int{64, 3, 0, 1}[call%4] }
			next := uint64(0)
			s.got = func(p []byte, flow int) {
				payload := p
				if frames {
					v, verdict := packet.Verifier{DstPort: 9000, Checksum: true}.Frame(p)
					if verdict != packet.OK {
						t.Fatalf("number %d: verdict %d", next, verdict)
					}
					payload = v
					if port := packet.UDP(p[34:]).SourcePort(); int(port) != 10000+flow {
						t.Fatalf("number %d: source port %d in flow %d", next, port, flow)
					}
				}
				st := packet.ParseStamp(payload)
				if st.Run != 7 || st.Stream != 3 || st.Number != next || flow != FlowOf(next, flows) || !packet.PatternOK(payload) ||
					len(payload) != sizes[next%uint64(len(sizes))]-46 {
					t.Fatalf("number %d, flow %d: %+v, %d B", next, flow, st, len(payload))
				}
				next++
			}
			const n = 5003
			l, err := NewSend(SendOptions{Sender: s, Template: tm, Frames: frames, Flows: flows, Count: n, Ticks: rate})
			if err != nil {
				t.Fatal(err)
			}
			if err := l.Run(); err != nil {
				t.Fatal(err)
			}
			r := l.Result()
			if next != n || r.Handed != n || l.Live() != n || r.Stopped || !s.flushed || r.NoRoom == 0 || r.EmptyTurns < r.NoRoom || r.EndNS <= r.StartNS {
				t.Errorf("frames %v, %d flows: sent %d, result %+v", frames, flows, next, r)
			}
		}
	}
}

// At a rate packets are due on an absolute schedule, which the stamps carry, and never before it.
func TestSendKeepsItsSchedule(t *testing.T) {
	rate := ticks(t)
	tm := sendTemplate(t, 1, 64)
	for _, pps := range []float64{777, 20_000, 33_333.3} {
		s := newScripted(t, tm, 64, false)
		var times []int64
		early := 0
		s.got = func(p []byte, _ int) {
			at := packet.ParseStamp(p).Time
			if at > measure.Monotonic()+2000 { // the clock's own error
				early++
			}
			times = append(times, at)
		}
		count := uint64(pps / 10)
		l, err := NewSend(SendOptions{Sender: s, Template: tm, Rate: pps, Count: count, Ticks: rate})
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Run(); err != nil {
			t.Fatal(err)
		}
		for i, at := range times {
			if want := times[0] + int64(float64(i)*1e9/pps); at < want-1 || at > want+1 {
				t.Fatalf("%v/s: packet %d intended at %d, want %d", pps, i, at, want)
			}
		}
		if early > 0 || uint64(len(times)) != count {
			t.Errorf("%v/s: %d of %d, %d before their time", pps, len(times), count, early)
		}
	}
}

// After a pause the pacer lets a burst go, and then no more than the catch-up.
func TestPacerBoundsItsCatchUp(t *testing.T) {
	p := pacer{rate: 1e6}
	p.begin(0)
	now, n := int64(50_000_000), uint64(0) // 50 ms late: 50,000 are due
	first := p.due(n, now, 1000)
	if first != burst {
		t.Fatalf("%d at once after a pause, want %d", first, burst)
	}
	p.sent(n, first, now)
	n += uint64(first)
	if p.late != burst || p.max != 50_000_000 {
		t.Errorf("late %d, worst %d ns", p.late, p.max)
	}
	for range 1000 { // a ms, in steps of 1 us
		now += 1000
		k := p.due(n, now, 1000)
		if k > 0 {
			p.sent(n, k, now)
			n += uint64(k)
		}
	}
	if sent := n - burst; sent < 1240 || sent > 1251 {
		t.Errorf("%d in the millisecond after the burst, want 1250", sent)
	}
	// Where nothing is due nothing goes, and no credit grows beyond the burst.
	q := pacer{rate: 1000}
	q.begin(0)
	if k := q.due(1, 999_999, 64); k != 0 {
		t.Errorf("%d before its time", k)
	}
	if k := q.due(1, 1_000_000, 64); k != 1 {
		t.Errorf("%d in time, want 1", k)
	}
	if k := q.due(0, 10_000_000_000, 1<<20); k != burst {
		t.Errorf("%d after a long pause", k)
	}
}

func TestPacerTimes(t *testing.T) {
	p := pacer{rate: 3}
	p.begin(5)
	for n, want := range map[uint64]int64{0: 5, 1: 5 + 333_333_333, 3: 5 + 1_000_000_000, 3_000_000_000: 5 + 1_000_000_000_000_000_000} {
		if got := p.at(n); got != want {
			t.Errorf("packet %d at %d, want %d", n, got, want)
		}
	}
	slow := pacer{rate: 0.5}
	slow.begin(0)
	if got := slow.at(3); got != 6_000_000_000 {
		t.Errorf("packet 3 of one in two seconds at %d", got)
	}
	if q := (pacer{rate: 1}); q.at(1<<40-1) == 0 { // beyond what 64 bits of ns hold: no panic
		t.Error("no time")
	}
}

func TestSendStops(t *testing.T) {
	rate := ticks(t)
	tm := sendTemplate(t, 1, 64)
	s := newScripted(t, tm, 64, false)
	l, err := NewSend(SendOptions{Sender: s, Template: tm, Count: 1 << 39, Ticks: rate})
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(20*time.Millisecond, l.Stop)
	if err := l.Run(); err != nil {
		t.Fatal(err)
	}
	if r := l.Result(); !r.Stopped || r.Handed == 0 || !s.flushed {
		t.Errorf("%+v", r)
	}
	broken := newScripted(t, tm, 64, false)
	broken.err, broken.takes = errors.New("cable pulled"), func(int) int { return 5 }
	l, err = NewSend(SendOptions{Sender: broken, Template: tm, Count: 100, Ticks: rate})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Run(); err == nil || !strings.Contains(err.Error(), "cable pulled") || l.Result().Handed != 5 {
		t.Errorf("error %v, result %+v", err, l.Result())
	}
}

func TestSendOptions(t *testing.T) {
	tm := sendTemplate(t, 1, 64)
	s := newScripted(t, tm, 1, false)
	rate := ticks(t)
	for _, o := range []SendOptions{{}, {Sender: s, Ticks: rate}, {Sender: s, Template: tm}, {Sender: s, Template: tm, Ticks: rate, Rate: -1},
		{Sender: s, Template: tm, Ticks: rate, Count: 1<<packet.NumberBits + 1}} {
		if _, err := NewSend(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func TestSendDoesNotAllocate(t *testing.T) {
	tm := sendTemplate(t, 4, 64, 1518)
	for _, frames := range []bool{false, true} {
		s := newScripted(t, tm, 64, frames)
		l, err := NewSend(SendOptions{Sender: s, Template: tm, Frames: frames, Flows: 4, Rate: 1e9, Ticks: ticks(t)})
		if err != nil {
			t.Fatal(err)
		}
		l.clock = newClock(l.o.Ticks)
		l.pace.begin(measure.Monotonic())
		if n := testing.AllocsPerRun(2000, func() {
			if err := l.turn(); err != nil {
				t.Error(err)
			}
		}); n != 0 {
			t.Errorf("%v allocations per turn", n)
		}
	}
}
