// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"twopath/internal/capture"
	"twopath/internal/measure"
	"twopath/internal/packet"
)

// listReceiver lends a list of frames, batch by batch, and then ends the loop.
type listReceiver struct {
	frames [][]byte
	at     int
	lent   int
	end    func()
}

func (r *listReceiver) Receive(b [][]byte) (int, error) {
	if r.lent != 0 {
		return 0, errors.New("received before it was released")
	}
	n := copy(b, r.frames[r.at:])
	r.at, r.lent = r.at+n, n
	if n == 0 {
		r.end()
	}
	return n, nil
}

func (r *listReceiver) Release() error { r.lent = 0; return nil }

const followRun = 0xabcd1234

// looped is a capture's frames with their marks, loop after loop.
func looped(t *testing.T, name string, loops int) (frames [][]byte, list int) {
	t.Helper()
	for n := range loops {
		c, err := capture.Read(filepath.Join("..", "capture", "testdata", name), capture.Options{})
		if err != nil {
			t.Fatal(err)
		}
		capture.Rewrite{Run: followRun}.Apply(c.Frames)
		for _, f := range c.Frames {
			packet.PutLoop(f, uint16(n))
		}
		frames, list = append(frames, c.Frames...), len(c.Frames)
	}
	return frames, list
}

func followAll(t *testing.T, frames [][]byte, list, batch int) FollowResult {
	t.Helper()
	rate, err := measure.CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	r := &listReceiver{frames: frames}
	l, err := NewFollow(FollowOptions{Receiver: r, Run: followRun, Frames: list, Batch: batch, Ticks: rate})
	if err != nil {
		t.Fatal(err)
	}
	r.end = l.Stop
	if err := l.Run(); err != nil {
		t.Fatal(err)
	}
	if l.Live() != l.Result().Received {
		t.Errorf("live %d, in the end %d", l.Live(), l.Result().Received)
	}
	return l.Result()
}

// What tshark counts in the recordings, times the loops.
func TestFollowRecordings(t *testing.T) {
	for _, c := range []struct {
		name                          string
		frames, tcp, udp, other, http uint64
	}{
		{"http.pcapng", 325, 25, 0, 0, 37}, {"once.pcap", 10, 1, 0, 0, 1}, {"dns.pcap", 480, 0, 4, 0, 0},
		{"cooked.pcap", 10, 1, 0, 0, 1}, {"cooked2.pcapng", 10, 1, 0, 0, 1},
	} {
		for _, loops := range []int{1, 7} {
			frames, list := looped(t, c.name, loops)
			r := followAll(t, frames, list, 13)
			n := uint64(loops)
			s := r.Sessions
			if r.Received != n*c.frames || s.TCP != n*c.tcp || s.UDP != n*c.udp || s.Other != n*c.other || s.Requests != n*c.http || r.Loops != n {
				t.Errorf("%s, %d loops: %d frames, %d loops, %+v", c.name, loops, r.Received, r.Loops, s)
			}
			if s.Closed != s.TCP || s.Established != s.TCP || s.Untracked != 0 || r.Late != 0 {
				t.Errorf("%s, %d loops: %+v, %d late", c.name, loops, s, r.Late)
			}
			if r.Cold != c.frames || r.Warm != (n-1)*c.frames || r.ColdTicks == 0 || (r.WarmTicks == 0) != (loops == 1) {
				t.Errorf("%s, %d loops: cold %d in %d ticks, warm %d in %d", c.name, loops, r.Cold, r.ColdTicks, r.Warm, r.WarmTicks)
			}
		}
	}
}

// GRO holds back segments with data until NAPI has taken its 64 frames, and lets all others pass: sessions and requests stay
// those of their loop.
func TestFollowReordered(t *testing.T) {
	for _, name := range []string{"once.pcap", "http.pcapng"} {
		frames, list := looped(t, name, 40)
		want := followAll(t, frames, list, 64)
		var out, held [][]byte
		for i, f := range frames {
			if len(f) > 80 { // longer than any header here: it has data
				held = append(held, f)
			} else {
				out = append(out, f)
			}
			if i%64 == 63 {
				out, held = append(out, held...), nil
			}
		}
		out = append(out, held...)
		got := followAll(t, out, list, 64)
		if got.Received != want.Received || got.Loops != want.Loops || got.Late != 0 || got.Sessions != want.Sessions {
			t.Errorf("%s: %+v, %d loops, %d late; in order %+v, %d loops", name, got.Sessions, got.Loops, got.Late, want.Sessions, want.Loops)
		}
	}
}

// Strangers are told apart, and frames of a loop long over are counted and not followed.
func TestFollowForeignAndLate(t *testing.T) {
	frames, list := looped(t, "http.pcapng", 4)
	stranger := make([]byte, 60)
	late := append([]byte(nil), frames[0]...)
	frames = append(frames, stranger, late)
	r := followAll(t, frames, list, 64)
	if r.Foreign != 1 || r.Late != 1 || r.Received != uint64(4*list+1) || r.Sessions.TCP != 100 {
		t.Errorf("%d foreign, %d late, %d received, %+v", r.Foreign, r.Late, r.Received, r.Sessions)
	}
}

func TestFollowDoesNotAllocate(t *testing.T) {
	frames, list := looped(t, "http.pcapng", 3)
	rate, err := measure.CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	r := &listReceiver{frames: frames}
	l, err := NewFollow(FollowOptions{Receiver: r, Run: followRun, Frames: list, Ticks: rate})
	if err != nil {
		t.Fatal(err)
	}
	r.end = func() { r.at = 0 }
	if n := testing.AllocsPerRun(200, func() {
		if err := l.once(l); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
}

func TestFollowOptions(t *testing.T) {
	rate, _ := measure.CalibrateTicks(time.Millisecond)
	for _, o := range []FollowOptions{{}, {Receiver: &listReceiver{}}, {Receiver: &listReceiver{}, Ticks: rate}} {
		if _, err := NewFollow(o); err == nil {
			t.Errorf("%+v: accepted", o)
		}
	}
}
