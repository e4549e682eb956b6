// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"twopath/internal/measure"
)

// fakeAnswerer hands out numbered requests, a few a batch, and keeps the answers.
type fakeAnswerer struct {
	left, next int
	batch      int // requests a turn
	rooms      int // answers it has room for, a turn
	refuse     int // every so many-th answer is not sent; 0 is none
	lent       []string
	buffers    [][]byte
	sent       []string
	released   int
	done       func()
}

func (f *fakeAnswerer) Receive(b [][]byte) (int, error) {
	f.lent = f.lent[:0]
	for len(f.lent) < min(f.batch, len(b)) && f.left > 0 {
		r := fmt.Sprintf("request %d", f.next)
		f.next++
		f.left--
		b[len(f.lent)] = []byte(r)
		f.lent = append(f.lent, r)
	}
	if len(f.lent) == 0 {
		f.done()
	}
	return len(f.lent), nil
}

func (f *fakeAnswerer) Room(k int) []byte {
	if k >= f.rooms {
		return nil
	}
	for len(f.buffers) <= k {
		f.buffers = append(f.buffers, make([]byte, 64))
	}
	return f.buffers[k]
}

func (f *fakeAnswerer) Answer(which, lengths []int) (int, error) {
	n := 0
	for k, i := range which {
		if f.refuse > 0 && (len(f.sent)+1)%f.refuse == 0 {
			f.refuse = 0
			continue
		}
		f.sent = append(f.sent, f.lent[i]+" -> "+string(f.buffers[k][:lengths[k]]))
		n++
	}
	return n, nil
}

func (f *fakeAnswerer) Release() error { f.released++; return nil }

// evenHandler answers requests with an even number with code 3, others with none.
type evenHandler struct{}

func (evenHandler) Answer(dst, m []byte) (int, int) {
	if (m[len(m)-1]-'0')%2 == 1 {
		return 0, -1
	}
	return copy(dst, "answer to "+string(m)), 3
}

func runAnswer(t *testing.T, f *fakeAnswerer) AnswerResult {
	t.Helper()
	rate, err := measure.CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	l, err := NewAnswer(AnswerOptions{ReceiveOptions: ReceiveOptions{Ticks: rate, Batch: 8}, Answerer: f, Handler: evenHandler{}})
	if err != nil {
		t.Fatal(err)
	}
	f.done = l.Stop
	if err := l.Run(); err != nil {
		t.Fatal(err)
	}
	return l.Answered()
}

func TestAnswer(t *testing.T) {
	f := &fakeAnswerer{left: 10, batch: 4, rooms: 8}
	got := runAnswer(t, f)
	if got.Received != 10 || got.Answered != 5 || got.Silent != 5 || got.Failed != 0 || got.Code[3] != 5 || f.released != 3 || got.Batches != 3 {
		t.Errorf("%+v, released %d", got, f.released)
	}
	want := []string{"request 0 -> answer to request 0", "request 2 -> answer to request 2", "request 4 -> answer to request 4",
		"request 6 -> answer to request 6", "request 8 -> answer to request 8"}
	if !slices.Equal(f.sent, want) {
		t.Errorf("sent %q", f.sent)
	}
}

// What finds no room, and what the engine cannot send, is counted, and the account closes.
func TestAnswerFailures(t *testing.T) {
	f := &fakeAnswerer{left: 8, batch: 8, rooms: 2, refuse: 2}
	got := runAnswer(t, f)
	// 1 is due none; 0 and 2 are answered, and one of these is refused; from 3 on there is no room to find out.
	if got.Answered != 1 || got.Silent != 1 || got.Failed != 6 || got.Received != got.Answered+got.Failed+got.Silent || len(f.sent) != 1 {
		t.Errorf("%+v, sent %q", got, f.sent)
	}
}

func TestAnswerOptions(t *testing.T) {
	if _, err := NewAnswer(AnswerOptions{Handler: evenHandler{}}); err == nil {
		t.Error("no answerer is taken")
	}
	if _, err := NewAnswer(AnswerOptions{Answerer: &fakeAnswerer{}}); err == nil {
		t.Error("no handler is taken")
	}
}
