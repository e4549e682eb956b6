// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"testing"

	"twopath/internal/measure"
	"twopath/internal/packet"
)

// feed lends stamped payloads, batch after batch, and counts its calls as a receiver does.
type feed struct {
	number       uint64
	payloads     [][]byte
	waits, calls uint64
}

func newFeed(batch int) *feed {
	f := &feed{}
	for range batch {
		f.payloads = append(f.payloads, make([]byte, 32))
	}
	return f
}

func (f *feed) Receive(b [][]byte) (int, error) {
	f.waits++
	for i, p := range f.payloads {
		packet.Stamp{Run: 7, Number: f.number}.Put(p)
		f.number++
		f.calls++
		b[i] = p
	}
	return len(f.payloads), nil
}

func (f *feed) Release() error          { return nil }
func (f *feed) Calls() (uint64, uint64) { return f.waits, f.calls }

func loopOver(t *testing.T, f *feed, every uint64) *Receive {
	t.Helper()
	l, err := NewReceive(ReceiveOptions{Receiver: f, Run: 7, Streams: 1, Every: every, Ticks: measure.TickRate{PerSecond: 1e9}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestMilestones(t *testing.T) {
	f := newFeed(60)
	l := loopOver(t, f, 1000)
	for range 100 { // 6000 packets, passed at 1020, 2040, 3000, 4020, 5040, 6000
		if err := l.once(l); err != nil {
			t.Fatal(err)
		}
	}
	got := l.Result().Milestones
	var packets, bytes, waits, calls uint64
	for _, m := range got {
		packets, bytes, waits, calls = packets+m.Packets, bytes+m.Bytes, waits+m.Waits, calls+m.Calls
	}
	if len(got) != 6 || got[0].Packets != 1020 || got[2].Packets != 960 || packets != 6000 || bytes != 6000*32 || waits != 100 || calls != 6000 {
		t.Errorf("%+v", got)
	}
	if got := loopOver(t, f, 0).Result().Milestones; got != nil {
		t.Errorf("not asked for, and yet %+v", got)
	}
}

func TestMilestonesDoNotAllocate(t *testing.T) {
	l := loopOver(t, newFeed(64), 64)
	if n := testing.AllocsPerRun(2*maxMilestones, func() {
		if err := l.once(l); err != nil {
			t.Fatal(err)
		}
	}); n != 0 {
		t.Errorf("%v allocations a turn", n)
	}
	if got := len(l.Result().Milestones); got != maxMilestones {
		t.Errorf("%d milestones kept", got)
	}
}
