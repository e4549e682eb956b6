// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"testing"
	"time"

	"twopath/internal/nstest"
)

func TestEveryDatagramOnce(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range kinds() {
		for _, v6 := range []bool{false, true} {
			for _, batch := range []int{1, 7, 64, 200} {
				t.Run(fmt.Sprintf("%s/v6=%v/batch=%d", k.name, v6, batch), func(t *testing.T) {
					const n, size = 3000, 100
					r := k.mustOpen(t, p, sutAddr(p, v6))
					type result struct {
						seen  map[int]int
						total int
					}
					done := make(chan result, 1)
					go func() {
						seen, total := collect(t, r, k.frames, n, size, batch)
						done <- result{seen, total}
					}()
					send(t, p, v6, 0, n, size, 1)
					got := <-done
					exactly(t, got.seen, n)
					if q, err := r.Queued(); q != 0 || err != nil {
						t.Errorf("queued %d, %v after all was received", q, err)
					}
					c := r.Counters()
					if c["sock.drops"] != 0 || c["packet.drops"] != 0 {
						t.Errorf("drops counted, none happened: %v", c)
					}
					if c["sock.received"]+c["packet.received"] != n {
						t.Errorf("counters say %v, want %d received", c, n)
					}
				})
			}
		}
	}
}

// A receiver that waits for a full batch never returns when the sender stops at 3 of 64.
func TestPartialBatch(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, sutAddr(p, false))
			send(t, p, false, 0, 3, 18, 1)
			seen, _ := collect(t, r, k.frames, 3, 18, 64)
			exactly(t, seen, 3)
		})
	}
}

// From an idle start nothing ever comes: each call must come back by itself.
func TestIdleIsBounded(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range append(kinds(), noSocketKind()) {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, sutAddr(p, false))
			b := make([][]byte, 64)
			start := time.Now()
			const calls = 5
			for range calls {
				if n, err := r.Receive(b); n != 0 || err != nil {
					t.Fatalf("%d, %v", n, err)
				}
			}
			if d := time.Since(start); d > 3*time.Second {
				t.Errorf("%d idle calls took %v with a timeout of %v", calls, d, r.Effective().Timeout)
			}
			// A call that returned at once for no reason would be a busy loop.
			if c := r.Counters(); k.name != "nosocket" && c["syscalls.timeouts"]+c["syscalls.interrupted"] != calls {
				t.Errorf("%d calls ended, but neither by timeout nor by signal: %v", calls, c)
			}
		})
	}
}

func noSocketKind() kind {
	return kind{name: "nosocket", open: func(p *nstest.Pair, _ netip.AddrPort) (receiver, error) {
		return OpenNoSocket(NoSocketOptions{Interface: p.SUT.Name})
	}}
}

func TestWakeEndsTheWait(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	long := Socket{Timeout: time.Hour}
	kinds := []kind{
		{name: "epoll", open: func(_ *nstest.Pair, a netip.AddrPort) (receiver, error) {
			return OpenEpoll(EpollOptions{Socket: Socket{Local: a, Timeout: time.Hour}})
		}},
		recvmmsgKind("recvmmsg", RecvmmsgOptions{Socket: long}),
		recvmmsgKind("busypoll", RecvmmsgOptions{Socket: long, Wait: WaitBusyPoll}),
		recvmmsgKind("spin", RecvmmsgOptions{Socket: long, Wait: WaitSpin}),
		{name: "packet", open: func(p *nstest.Pair, a netip.AddrPort) (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: a, Timeout: time.Hour})
		}},
		{name: "nosocket", open: func(p *nstest.Pair, _ netip.AddrPort) (receiver, error) {
			return OpenNoSocket(NoSocketOptions{Interface: p.SUT.Name, Timeout: time.Hour})
		}},
	}
	for _, k := range kinds {
		for _, first := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/before=%v", k.name, first), func(t *testing.T) {
				r := k.mustOpen(t, p, sutAddr(p, false))
				for range 3 { // a wake is used up by one wait, and can be repeated
					if first {
						if err := r.Wake(); err != nil {
							t.Fatal(err)
						}
					}
					done := make(chan error, 1)
					go func() {
						runtime.LockOSThread()
						defer runtime.UnlockOSThread()
						n, err := r.Receive(make([][]byte, 4))
						if n != 0 {
							err = errors.Join(err, fmt.Errorf("%d datagrams from nowhere", n))
						}
						done <- err
					}()
					if !first {
						time.Sleep(20 * time.Millisecond)
						if err := r.Wake(); err != nil {
							t.Fatal(err)
						}
					}
					select {
					case err := <-done:
						if err != nil {
							t.Fatal(err)
						}
					case <-time.After(10 * time.Second):
						t.Fatal("still waiting 10 s after Wake")
					}
				}
			})
		}
	}
}

// The receive path must leave the garbage collector alone.
func TestReceiveDoesNotAllocate(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range append(kinds(), noSocketKind()) {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, sutAddr(p, false))
			const n = 1000 // per run: one to warm up, one that counts
			if k.name != "nosocket" {
				send(t, p, false, 0, 2*n, 18, 1)
			}
			b := make([][]byte, 16)
			receive := func() int {
				k, err := r.Receive(b)
				if err != nil {
					t.Fatal(err)
				}
				if err := r.Release(); err != nil {
					t.Fatal(err)
				}
				return k
			}
			short := false
			if k.name != "nosocket" {
				allocs := testing.AllocsPerRun(1, func() {
					got := 0
					for idle := 0; got < n-16 && idle < 20; {
						k := receive()
						got += k
						if k == 0 {
							idle++
						}
					}
					short = short || got < n-16
				})
				if allocs != 0 {
					t.Errorf("%v allocations for %d datagrams", allocs, n)
				}
			}
			if short {
				t.Error("not all datagrams came: the path was not tried")
			}
			if _, err := r.Queued(); err != nil {
				t.Fatal(err)
			}
			if allocs := testing.AllocsPerRun(3, func() { receive() }); allocs != 0 {
				t.Errorf("%v allocations for an idle call", allocs)
			}
		})
	}
}

func TestCloseTwice(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range append(kinds(), noSocketKind()) {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, sutAddr(p, false))
			for range 2 {
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := r.Receive(make([][]byte, 1)); !errors.Is(err, ErrClosed) {
				t.Errorf("receive after close: %v", err)
			}
			if _, err := r.Queued(); !errors.Is(err, ErrClosed) {
				t.Errorf("queued after close: %v", err)
			}
			r.Counters()
		})
	}
}
