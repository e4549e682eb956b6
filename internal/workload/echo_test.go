// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"errors"
	"net/netip"
	"slices"
	"testing"
	"time"

	"twopath/internal/measure"
	"twopath/internal/packet"
)

// echoEngine lends payloads and notes what was answered.
type echoEngine struct {
	batches  [][][]byte
	answered [][]byte
	room     int // answers it can send a call; below 0 is any
	err      error
	released int
	after    func() // called when there are no more batches
}

func (e *echoEngine) Receive(b [][]byte) (int, error) {
	if len(e.batches) == 0 {
		if e.after != nil {
			e.after()
		}
		return 0, nil
	}
	n := copy(b, e.batches[0])
	e.batches = e.batches[1:]
	return n, nil
}

func (e *echoEngine) Reply(which []int) (int, error) {
	if !slices.IsSorted(which) {
		return 0, errors.New("places are not in order")
	}
	n := len(which)
	if e.room >= 0 {
		n = min(n, e.room)
	}
	e.answered = append(e.answered, make([][]byte, n)...)
	return n, e.err
}

func (e *echoEngine) Release() error { e.released++; return nil }

func stamped(run uint32, number uint64) []byte {
	b := make([]byte, packet.StampLen)
	packet.Stamp{Run: run, Number: number}.Put(b)
	return b
}

func newTestEcho(t testing.TB, e *echoEngine) *Echo {
	t.Helper()
	rate, err := measure.CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewEcho(EchoOptions{ReceiveOptions: ReceiveOptions{Run: 9, Streams: 1, Ticks: rate}, Responder: e})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Requests of the run are answered, each once as often as it came; what is not the run's is not, and is counted.
func TestEcho(t *testing.T) {
	e := &echoEngine{room: -1, batches: [][][]byte{
		{stamped(9, 0), stamped(8, 1), stamped(9, 1)},
		{make([]byte, 3)},
		{stamped(9, 2), stamped(9, 2)},
	}}
	l := newTestEcho(t, e)
	e.after = l.Stop
	if err := l.Run(); err != nil {
		t.Fatal(err)
	}
	r := l.Answered()
	tally := r.Streams.Tally()
	if r.Received != 4 || r.Replied != 4 || r.Failed != 0 || len(e.answered) != 4 || tally.Unique != 3 || tally.Duplicate != 1 || r.WrongRun != 1 || r.Short != 1 || e.released != 3 {
		t.Errorf("%+v, tally %+v, %d answered, %d released", r, tally, len(e.answered), e.released)
	}
	if l.Live() != 4 {
		t.Errorf("live %d", l.Live())
	}
}

// What cannot be sent is counted, and the loop goes on; an error ends it, with what was sent counted.
func TestEchoWithoutRoom(t *testing.T) {
	e := &echoEngine{room: 1, batches: [][][]byte{{stamped(9, 0), stamped(9, 1), stamped(9, 2)}, {stamped(9, 3)}}}
	l := newTestEcho(t, e)
	e.after = l.Stop
	if err := l.Run(); err != nil {
		t.Fatal(err)
	}
	if r := l.Answered(); r.Received != 4 || r.Replied != 2 || r.Failed != 2 {
		t.Errorf("%+v", r)
	}
	broken := errors.New("link down")
	e = &echoEngine{room: 1, err: broken, batches: [][][]byte{{stamped(9, 0), stamped(9, 1)}}}
	l = newTestEcho(t, e)
	if err := l.Run(); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	if r := l.Answered(); r.Replied != 1 || r.Failed != 1 {
		t.Errorf("%+v", r)
	}
}

// lending lends the same batch for ever.
type lending struct{ batch [][]byte }

func (l *lending) Receive(b [][]byte) (int, error) { return copy(b, l.batch), nil }
func (l *lending) Reply(which []int) (int, error)  { return len(which), nil }
func (l *lending) Release() error                  { return nil }

func TestEchoDoesNotAllocate(t *testing.T) {
	f := packet.Flow{SrcMAC: []byte{2, 0, 0, 0, 0, 2}, DstMAC: []byte{2, 0, 0, 0, 0, 1}, Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1"), SrcPort: 10000, DstPort: 9000, Flows: 1}
	frame, err := f.Build(make([]byte, 256), 64, 0, packet.Stamp{Run: 9})
	if err != nil {
		t.Fatal(err)
	}
	rate, err := measure.CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	for _, frames := range []bool{false, true} {
		p := stamped(9, 0)
		if frames {
			p = frame
		}
		l, err := NewEcho(EchoOptions{ReceiveOptions: ReceiveOptions{Run: 9, Streams: 1, Ticks: rate, Frames: frames, Verifier: packet.Verifier{DstPort: 9000, Checksum: true}},
			Responder: &lending{batch: [][]byte{p, p, p}}})
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(1000, func() {
			if err := l.once(l); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("frames %v: %v allocations a turn", frames, n)
		}
		if r := l.Answered(); r.Replied != 3*1001 || r.Received != r.Replied {
			t.Errorf("frames %v: %+v", frames, r)
		}
	}
}

func TestEchoOptions(t *testing.T) {
	if _, err := NewEcho(EchoOptions{}); err == nil {
		t.Error("no responder: no error")
	}
	if _, err := NewEcho(EchoOptions{Responder: &lending{}}); err == nil {
		t.Error("no ticks: no error")
	}
}
