// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// Two sockets facing each other, each sending on one goroutine and receiving on another, while a third reads statistics: what the package comment allows.
// Meant for -race.
func TestBothDirectionsAtOnce(t *testing.T) {
	for _, wait := range allWaits {
		t.Run(wait.String(), func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			var socks []*Socket
			for _, e := range []*nstest.End{p.SUT, p.Peer} {
				r := attach(t, e, link.XDPDriverMode, false)
				s := openAt(t, e, Options{Wait: wait, RxRing: 512, TxRing: 128})
				r.add(t, s)
				socks = append(socks, s)
			}
			const total, window = 2000, 256
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			var group sync.WaitGroup
			credits := [2]chan struct{}{make(chan struct{}, window), make(chan struct{}, window)}
			for i, s := range socks {
				far := credits[1-i] // each frame received allows the far end another one, so that no ring overflows
				group.Go(func() {
					got := map[uint32]int{}
					descs := make([]Desc, 64)
					for n := 0; n < total && ctx.Err() == nil; {
						k := s.Receive(descs)
						for _, d := range descs[:k] {
							no, err := checkFrame(s.Frame(d))
							if err != nil {
								t.Error(err)
							}
							got[no]++
							<-far
						}
						s.Release(descs[:k])
						if n += k; k == 0 {
							if _, err := s.Wait(10 * time.Millisecond); err != nil {
								t.Error(err)
								return
							}
						}
					}
					exactly(t, got, 0, total)
				})
				near := credits[i]
				group.Go(func() {
					descs := make([]Desc, 1)
					for n := 0; n < total && ctx.Err() == nil; {
						if s.Reserve(descs) == 1 {
							select {
							case near <- struct{}{}:
							case <-ctx.Done():
							}
							writeFrame(s.Buffer(descs[0])[:60], uint32(n))
							descs[0].Len = 60
							n += s.Submit(descs)
						}
						if err := s.Kick(); err != nil {
							t.Error(err)
							return
						}
					}
				})
			}
			stop := make(chan struct{})
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
					}
					for _, s := range socks {
						if st, err := s.Stats(); err != nil || st.Lost() != 0 {
							t.Errorf("statistics %+v, %v", st, err)
							return
						}
						_, _, _ = s.Mode(), s.FD(), s.Alive()
					}
				}
			}()
			group.Wait()
			close(stop)
			<-watched
		})
	}
}

// When the socket in a map slot is closed, frames go where the redirect helper's flags say: here to the stack.
func TestClosedSocketFallsBackToStack(t *testing.T) {
	p, s := receiver(t, nstest.Options{}, Options{})
	ps, stack := newPacketSocket(t, p.Peer), newPacketSocket(t, p.SUT)
	ps.send(0, 5, 60)
	exactly(t, collect(t, s, 5), 0, 5)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	ps.send(5, 5, 60)
	exactly(t, stack.read(5, time.Second), 5, 5)
}

// A VLAN tag stays in the frame, where AF_PACKET takes it out.
func TestVLANTagStaysInFrame(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := attach(t, p.SUT, link.XDPDriverMode, false)
	s := openAt(t, p.SUT, Options{})
	r.add(t, s)
	tagged := frame(3, 100)
	copy(tagged[12:], []byte{unix.ETH_P_8021Q >> 8, unix.ETH_P_8021Q & 0xff, 0, 42, etherType >> 8, etherType & 0xff})
	ps := newPacketSocket(t, p.Peer)
	if _, err := unix.Write(ps.fd, tagged); err != nil {
		t.Fatal(err)
	}
	descs := make([]Desc, 1)
	if ev, err := s.Wait(time.Second); ev != Ready || err != nil || s.Receive(descs) != 1 {
		t.Fatal(ev, err)
	}
	if got := s.Frame(descs[0]); !bytes.Equal(got, tagged) {
		t.Errorf("sent % x\ngot  % x", tagged, got)
	}
}

// Binding to a device that is down succeeds in copy mode; it shows at the first Wait or Kick.
func TestBindToDownDevice(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	setLink := func(up bool) {
		p.SUT.Do(t, func() {
			l, err := netlink.LinkByIndex(p.SUT.Index)
			if err == nil && up {
				err = netlink.LinkSetUp(l)
			} else if err == nil {
				err = netlink.LinkSetDown(l)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	r := attach(t, p.SUT, link.XDPDriverMode, false)
	setLink(false)
	s := openAt(t, p.SUT, Options{})
	r.add(t, s)
	if _, err := s.Wait(time.Millisecond); err == nil {
		t.Error("waiting on a device that is down reports no error")
	}
	setLink(true)
	if ev, err := s.Wait(time.Millisecond); ev != TimedOut || err != nil {
		t.Errorf("after the device came up: %v, %v", ev, err)
	}
	ps := newPacketSocket(t, p.Peer)
	waitFor(t, "carrier", func() bool { _, err := unix.Write(ps.fd, frame(0, 60)); return err == nil && s.Queued() > 0 })
}

// One process after another on the same queue, each ending without Close, as a crash would.
func TestReopenByManyProcesses(t *testing.T) {
	const child = "XSK_TEST_CHILD"
	if os.Getenv(child) != "" {
		s, err := Open(Options{Device: "sut0", RxRing: 64, TxRing: 64, BindTimeout: 20 * time.Second})
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		_ = s
		fmt.Println("opened")
		os.Exit(0)
	}
	p := nstest.NewPair(t, nstest.Options{})
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		p.SUT.Do(t, func() { // the child inherits this thread's namespace
			cmd := exec.Command(exe, "-test.run", "^TestReopenByManyProcesses$")
			cmd.Env = append(os.Environ(), child+"=1")
			if out, err := cmd.CombinedOutput(); err != nil || string(out) != "opened\n" {
				t.Errorf("process %d: %v: %s", i, err, out)
			}
		})
	}
}
