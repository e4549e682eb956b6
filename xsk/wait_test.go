// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"os"
	"os/signal"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

var allWaits = []WaitMode{Spin, Poll, BusyPoll}

func TestWaitDelivers(t *testing.T) {
	for _, wait := range allWaits {
		t.Run(wait.String(), func(t *testing.T) {
			p, s := receiver(t, nstest.Options{}, Options{Wait: wait})
			if ev, err := s.Wait(10 * time.Millisecond); ev != TimedOut || err != nil {
				t.Fatalf("nothing sent: %v, %v", ev, err)
			}
			ps := newPacketSocket(t, p.Peer)
			const total = 500
			go func() {
				for i := range total {
					_, _ = unix.Write(ps.fd, frame(uint32(i), 60))
					if i%50 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			}()
			got := map[uint32]int{}
			descs := make([]Desc, 16)
			for len(got) < total {
				ev, err := s.Wait(2 * time.Second)
				if ev != Ready || err != nil {
					t.Fatalf("%d of %d received: %v, %v", len(got), total, ev, err)
				}
				n := s.Receive(descs)
				if n == 0 {
					t.Fatal("ready, but nothing to receive")
				}
				for _, d := range descs[:n] {
					k, err := checkFrame(s.Frame(d))
					if err != nil {
						t.Fatal(err)
					}
					got[k]++
				}
				s.Release(descs[:n])
			}
			exactly(t, got, 0, total)
			if m := s.Mode().Obtained; wait == BusyPoll && (m.BusyPoll != 20*time.Microsecond || m.BusyPollBudget != 64) {
				t.Errorf("busy poll settings %+v", m)
			}
			if c := s.RxCounters(); wait == BusyPoll && c.Kicks == 0 || c.KickErrors != 0 {
				t.Errorf("counters %+v", c)
			}
		})
	}
}

func TestWakeEndsWait(t *testing.T) {
	for _, wait := range allWaits {
		t.Run(wait.String(), func(t *testing.T) {
			_, s := receiver(t, nstest.Options{}, Options{Wait: wait})
			for range 3 {
				go func() {
					time.Sleep(5 * time.Millisecond)
					if err := s.Wake(); err != nil {
						t.Error(err)
					}
				}()
				if ev, err := s.Wait(20 * time.Second); ev != Woken || err != nil {
					t.Fatalf("%v, %v", ev, err)
				}
			}
			// A Wake nobody waited for is kept, once however often it was called.
			for range 2 {
				if err := s.Wake(); err != nil {
					t.Fatal(err)
				}
			}
			if ev, _ := s.Wait(time.Second); ev != Woken {
				t.Fatalf("kept wake: %v", ev)
			}
			if ev, _ := s.Wait(time.Millisecond); ev != TimedOut {
				t.Fatalf("second wait: %v", ev)
			}
			if c := s.RxCounters(); c.Wakeups != 4 || c.Timeouts != 1 {
				t.Errorf("counters %+v", c)
			}
		})
	}
}

// Signals interrupt poll, sendto and recvfrom at any time; nothing may be lost, doubled or reported for that.
func TestSignalStorm(t *testing.T) {
	p, s := receiver(t, nstest.Options{}, Options{Wait: Poll})
	tx := openAt(t, p.Peer, Options{RxRing: None, TxRing: 64})
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, unix.SIGUSR1)
	defer signal.Stop(ignored)
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		tasks, _ := os.ReadDir("/proc/self/task")
		for {
			for _, task := range tasks {
				var tid int
				for _, c := range task.Name() {
					tid = tid*10 + int(c-'0')
				}
				_ = unix.Tgkill(os.Getpid(), tid, unix.SIGUSR1)
			}
			select {
			case <-stop:
				return
			case <-time.After(50 * time.Microsecond):
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	const total = 2000
	got := map[uint32]int{}
	descs := make([]Desc, 64)
	for sent := 0; len(got) < total; {
		if sent < total && sent-len(got) < 512 {
			transmit(t, tx, sent, 40, 60)
			sent += 40
		}
		if ev, err := s.Wait(2 * time.Second); ev != Ready || err != nil {
			t.Fatalf("%d of %d received: %v, %v", len(got), sent, ev, err)
		}
		n := s.Receive(descs)
		for _, d := range descs[:n] {
			k, err := checkFrame(s.Frame(d))
			if err != nil {
				t.Fatal(err)
			}
			got[k]++
		}
		s.Release(descs[:n])
	}
	for range 20 { // waits that do sleep, to be interrupted
		if ev, err := s.Wait(5 * time.Millisecond); ev != TimedOut || err != nil {
			t.Fatalf("%v, %v", ev, err)
		}
	}
	exactly(t, got, 0, total)
	t.Logf("interrupted: %d waits, %d kicks", s.RxCounters().EINTR, tx.TxCounters().EINTR)
	if s.RxCounters().EINTR == 0 {
		t.Error("no wait was interrupted: this test tested nothing")
	}
}

func TestAfterClose(t *testing.T) {
	_, s := receiver(t, nstest.Options{}, Options{})
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	descs := make([]Desc, 4)
	if s.Receive(descs) != 0 || s.Release(descs) != 0 || s.Reserve(descs) != 0 || s.Submit(descs) != 0 || s.Complete() != 0 || s.Queued() != 0 {
		t.Error("a closed socket moved frames")
	}
	_, werr := s.Wait(time.Second)
	_, serr := s.Stats()
	for what, err := range map[string]error{"wait": werr, "stats": serr, "kick": s.Kick(), "wake": s.Wake(), "alive": s.Alive()} {
		if !errors.Is(err, ErrClosed) {
			t.Errorf("%s after close: %v", what, err)
		}
	}
	if s.FD() != -1 {
		t.Error("descriptor after close")
	}
}
