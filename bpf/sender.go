// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"math"
	"os"
	"sync"
	"time"
)

// sender is the life of a program that paces itself, whose state starts with a pace for each stream. Each stream runs once.
type sender struct {
	state *mapMemory
	words int // of one stream's state
	// repeat is how many program runs one system call makes. The kernel counts them in 32 bits and adds a batch before
	// it compares, so the highest values would never end.
	repeat uint32
	stop   chan struct{} // closed by Stop

	mu      sync.Mutex
	stopped bool
	closing bool           // no stream may start any more
	closed  bool           // the state is gone
	started []bool         // by stream
	running sync.WaitGroup // streams
}

// init takes over the state, which has words 64-bit words for each stream.
func (s *sender) init(state *mapMemory, streams, words int) {
	s.state, s.words = state, words
	s.repeat = math.MaxUint32 - 255
	s.stop = make(chan struct{})
	s.started = make([]bool, streams)
}

// word is a word of a stream's state.
func (s *sender) word(stream, i int) uint64 { return s.state.word(stream*s.words + i).Load() }

// ifOpen returns what read does, or zero after close.
func ifOpen[T any](s *sender, read func() T) (t T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return t
	}
	return read()
}

// Stop makes Run return within some 20 ms (it was 6-16 ms), with exact counts. It may be called at any time, from any
// goroutine, more than once, and does not wait.
func (s *sender) Stop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopped || s.closed {
		return
	}
	s.stopped = true
	for i := range s.started {
		s.state.word(i*s.words + paceStop).Store(1) // pairs with READ_ONCE(p->stop) in c/pace.h
	}
	close(s.stop)
}

// close stops all streams, waits for their end, and unloads. It may be called twice.
func (s *sender) close(unload func() error) error {
	s.Stop()
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.running.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	return unload()
}

func (s *sender) start(stream int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return os.ErrClosed
	case stream < 0 || stream >= len(s.started):
		return fmt.Errorf("no stream %d", stream)
	case s.started[stream]:
		return errors.New("it has run already")
	}
	s.started[stream] = true
	s.running.Add(1)
	return nil
}

// sending is what a stream has to send.
type sending struct {
	prog      int
	frame     []byte // what the pages start with
	batch     int    // frames per flush
	flood     uint64 // frames, if each program run sends one: then the system calls end by themselves, else liveRun's watch ends them
	untilDone func() time.Duration
}

// run sends a stream to its end, occupies the calling thread, and returns how many system calls it took. over is called at
// the end of what has begun, before the state can be gone.
func (s *sender) run(stream int, l sending, over func()) (runs int, err error) {
	if err := s.start(stream); err != nil {
		return 0, err
	}
	defer s.running.Done()
	runs, err = liveRun{prog: l.prog, frame: l.frame, batch: l.batch, stop: s.stop, untilDone: l.untilDone,
		finished: func() bool { return s.word(stream, paceDone)|s.word(stream, paceStop) != 0 },
		repeat: func() uint32 {
			if l.flood > 0 {
				return uint32(min(uint64(s.repeat), l.flood-s.word(stream, paceSent)))
			}
			return s.repeat
		}}.drive()
	over()
	return runs, err
}

// left estimates how long the rest of count frames takes at a rate, to look again then.
func (s *sender) left(stream int, count uint64, rate float64) time.Duration {
	if count == 0 {
		return time.Hour
	}
	if rate == 0 {
		rate = 1e7
	}
	return time.Duration(float64(count-min(count, s.word(stream, paceSent))) / rate * 1e9)
}
