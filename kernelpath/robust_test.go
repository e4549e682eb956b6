// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// receiveUnder receives n datagrams of a steady trickle while disturb runs against the receiving thread.
func receiveUnder(t *testing.T, p *nstest.Pair, k kind, n int, disturb func(tid int, stop <-chan struct{})) receiver {
	t.Helper()
	r := k.mustOpen(t, p, sutAddr(p, false))
	const size = 32
	fd, to := mustSender(t, p, false, 0)
	defer unix.Close(fd)
	tid := make(chan int)
	done := make(chan map[int]int, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		tid <- unix.Gettid()
		seen, _ := collect(t, r, k.frames, n, size, 16)
		done <- seen
	}()
	stop, stopped := make(chan struct{}), make(chan struct{})
	id := <-tid
	go func() {
		defer close(stopped)
		disturb(id, stop)
	}()
	for i := range n {
		if err := unix.Sendto(fd, payload(i, size), 0, to); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Microsecond) // so that the receiver sleeps now and then
	}
	seen := <-done
	close(stop)
	<-stopped
	exactly(t, seen, n)
	return r
}

func TestSignalStorm(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, unix.SIGUSR1) // or it would kill the process
	defer signal.Stop(signals)
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			r := receiveUnder(t, p, k, 300, func(tid int, stop <-chan struct{}) {
				for {
					select {
					case <-stop:
						return
					case <-time.After(time.Millisecond):
						if err := unix.Tgkill(unix.Getpid(), tid, unix.SIGUSR1); err != nil {
							t.Errorf("tgkill: %v", err)
							return
						}
					}
				}
			})
			if c := r.Counters(); c["syscalls.interrupted"] == 0 && r.Effective().Wait != WaitSpin {
				t.Errorf("no wait was interrupted, so nothing was tried: %v", c)
			}
		})
	}
}

func TestStopAndContinue(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, k := range kinds() {
		t.Run(k.name, func(t *testing.T) {
			receiveUnder(t, p, k, 300, func(int, <-chan struct{}) {
				time.Sleep(20 * time.Millisecond)
				script := fmt.Sprintf("kill -STOP %[1]d; sleep 0.1; kill -CONT %[1]d", os.Getpid())
				if out, err := exec.Command("sh", "-c", script).CombinedOutput(); err != nil {
					t.Errorf("stop and continue: %v: %s", err, out)
				}
			})
		})
	}
}

// The receivers sleep without telling the scheduler. Stopping the world must work all the same.
func TestSleepDoesNotHoldUpTheCollector(t *testing.T) {
	if runtime.GOMAXPROCS(0) < 2 {
		t.Skip("needs two processors: one for the receiver")
	}
	p := nstest.NewPair(t, nstest.Options{})
	local := sutAddr(p, false)
	s := Socket{Local: local, Timeout: time.Hour}
	for _, k := range []kind{
		{name: "epoll", open: func(*nstest.Pair, netip.AddrPort) (receiver, error) { return OpenEpoll(EpollOptions{Socket: s}) }},
		recvmmsgKind("recvmmsg", RecvmmsgOptions{Socket: s}),
		recvmmsgKind("busypoll", RecvmmsgOptions{Socket: s, Wait: WaitBusyPoll}),
		recvmmsgKind("spin", RecvmmsgOptions{Socket: s, Wait: WaitSpin}),
		{name: "packet", open: func(p *nstest.Pair, _ netip.AddrPort) (receiver, error) {
			return OpenPacket(PacketOptions{Interface: p.SUT.Name, Local: local, Timeout: time.Hour})
		}},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, local)
			stop := make(chan struct{})
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				b := make([][]byte, 8)
				for {
					select {
					case <-stop:
						return
					default:
					}
					if _, err := r.Receive(b); err != nil {
						t.Error(err)
						return
					}
				}
			}()
			time.Sleep(10 * time.Millisecond)
			start := time.Now()
			for range 20 {
				runtime.GC()
			}
			if d := time.Since(start); d > 10*time.Second {
				t.Errorf("20 collections took %v", d)
			}
			close(stop)
			if err := r.Wake(); err != nil {
				t.Error(err)
			}
			<-ended
		})
	}
}

// An ICMP error of something sent before is reported by the next receive call, once. It is no reason to stop.
func TestICMPErrorIsNotTheEnd(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	p.Peer.Do(t, func() { // no limit on the answers
		for name, value := range map[string]string{"icmp_ratelimit": "0", "icmp_msgs_per_sec": "100000"} {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, k := range kinds()[:5] {
		t.Run(k.name, func(t *testing.T) {
			r := k.mustOpen(t, p, sutAddr(p, false))
			var fd int
			switch r := r.(type) {
			case *Epoll:
				fd = r.s.fd
			case *Recvmmsg:
				fd = r.s.fd
			}
			// Nobody listens there: the peer answers with port unreachable, and only a connected socket is told.
			closed := &unix.SockaddrInet4{Port: 9, Addr: p.Peer.IP4.As4()}
			if err := unix.Connect(fd, closed); err != nil {
				t.Fatal(err)
			}
			pending := []unix.PollFd{{Fd: int32(fd)}} // POLLERR needs no asking
			for deadline := time.Now().Add(5 * time.Second); pending[0].Revents&unix.POLLERR == 0; {
				if time.Now().After(deadline) {
					t.Fatal("no ICMP answer within 5 s")
				}
				if err := unix.Sendto(fd, []byte("?"), 0, nil); err != nil && err != unix.ECONNREFUSED {
					t.Fatal(err)
				}
				if _, err := unix.Poll(pending, 100); err != nil && err != unix.EINTR {
					t.Fatal(err)
				}
			}
			if err := unix.Connect(fd, &unix.SockaddrInet4{Port: 10000, Addr: p.Peer.IP4.As4()}); err != nil {
				t.Fatal(err)
			}
			send(t, p, false, 0, 10, 18, 1)
			seen, _ := collect(t, r, k.frames, 10, 18, 4)
			exactly(t, seen, 10)
			if c := r.Counters(); c["syscalls.icmp_errors"] == 0 {
				t.Errorf("the ICMP error was not seen: %v", c)
			}
		})
	}
}
