// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/safchain/ethtool"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

func newRig(t testing.TB, o Options) *Rig {
	t.Helper()
	nstest.Root(t)
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return r
}

func TestRigCarriesUDP(t *testing.T) {
	r := newRig(t, Options{Queues: 2})
	for _, dst := range []string{"198.18.0.1:9000", "[2001:2::1]:9000"} {
		var srv net.PacketConn
		if err := r.SUT.Do(func() (err error) { srv, err = net.ListenPacket("udp", dst); return }); err != nil {
			t.Fatal(err)
		}
		defer srv.Close()
		err := r.Peer.Do(func() error {
			c, err := net.Dial("udp", dst)
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("hello"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 16)
		srv.SetReadDeadline(time.Now().Add(2 * time.Second))
		n, from, err := srv.ReadFrom(b)
		if err != nil || string(b[:n]) != "hello" {
			t.Fatalf("%s: got %q from %v, %v", dst, b[:n], from, err)
		}
	}
}

func TestNAPIPlacementIsReadBack(t *testing.T) {
	for _, queues := range []int{1, 4} {
		r := newRig(t, Options{Queues: queues})
		for _, want := range []NAPIOptions{
			{Threaded: true, CPUs: []int{0}},
			{Threaded: true, CPUs: []int{0, 1}, Policy: FIFO},
			{Threaded: true, CPUs: []int{1}, Policy: FIFO, Priority: 42},
			{Threaded: true, CPUs: []int{1}, Policy: Other},
			{},
			{Threaded: true, CPUs: []int{1, 0}},
		} {
			if err := r.SUT.SetNAPI(want); err != nil {
				t.Fatalf("%d queues, %+v: %v", queues, want, err)
			}
			got, err := r.SUT.NAPI()
			if err != nil || len(got) != queues {
				t.Fatalf("%d queues, %+v: read back %+v, %v", queues, want, got, err)
			}
			t.Logf("%+v -> %+v", want, got)
			if err := r.SUT.VerifyNAPI(want); err != nil {
				t.Errorf("%d queues: %v", queues, err)
			}
		}
	}
}

// The queue a NAPI instance is said to serve is the one it serves: frames are counted on the queue of that number.
func TestNAPIQueueNumbers(t *testing.T) {
	const queues = 4
	r := newRig(t, Options{Queues: queues})
	// A socket's frames enter through NAPI only where they could be merged; otherwise through the sending CPU's backlog
	// (drivers/net/veth.c, veth_skb_is_eligible_for_gro).
	if err := r.SUT.SetFeatures(map[string]bool{"rx-udp-gro-forwarding": true}); err != nil {
		t.Fatal(err)
	}
	threads, err := r.SUT.NAPI()
	if err != nil || len(threads) != queues {
		t.Fatalf("%+v, %v", threads, err)
	}
	queueOf := map[int]int{}
	for _, n := range threads {
		queueOf[n.ID] = n.Queue
	}
	seen := map[int]bool{}
	for flow := 0; flow < 200 && len(seen) < queues; flow++ {
		var fd int // a new one each time: a socket keeps the first NAPI id it sees (include/net/busy_poll.h)
		err := r.SUT.Do(func() (err error) {
			if fd, err = unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0); err != nil {
				return err
			}
			return unix.Bind(fd, &unix.SockaddrInet4{Port: 9000, Addr: r.SUT.IPv4.Addr().As4()})
		})
		if err != nil {
			t.Fatal(err)
		}
		before := queuePackets(t, r.SUT)
		err = r.Peer.Do(func() error {
			c, err := net.DialUDP("udp", &net.UDPAddr{Port: 10000 + flow}, &net.UDPAddr{IP: r.SUT.IPv4.Addr().AsSlice(), Port: 9000})
			if err != nil {
				return err
			}
			defer c.Close()
			_, err = c.Write([]byte("?"))
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unix.Read(fd, make([]byte, 8)); err != nil {
			t.Fatal(err)
		}
		id, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_INCOMING_NAPI_ID)
		unix.Close(fd)
		if err != nil {
			t.Fatal(err)
		}
		after := queuePackets(t, r.SUT) // counted at the end of the poll, which may be after we were woken
		for deadline := time.Now().Add(time.Second); slices.Equal(before, after) && time.Now().Before(deadline); {
			after = queuePackets(t, r.SUT)
		}
		for q, n := range after {
			if n != before[q] {
				seen[q] = true
				if got, ok := queueOf[id]; !ok || got != q {
					t.Errorf("flow %d came through NAPI %d on queue %d, which is said to serve queue %d (%t)", flow, id, q, got, ok)
				}
			}
		}
	}
	if len(seen) != queues {
		t.Errorf("only queues %v were reached", seen)
	}
}

// queuePackets reads the frames each receive queue has handled.
func queuePackets(t testing.TB, s *Side) (n []uint64) {
	t.Helper()
	err := s.Do(func() error {
		e, err := ethtool.NewEthtool()
		if err != nil {
			return err
		}
		defer e.Close()
		stats, err := e.Stats(s.Name)
		for q := 0; err == nil; q++ {
			v, ok := stats[fmt.Sprintf("rx_queue_%d_xdp_packets", q)]
			if !ok {
				return nil
			}
			n = append(n, v)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What ends NAPI ends its threads, and they come back unpinned: Verify must see it.
func TestVerifyNAPISeesWhatChanged(t *testing.T) {
	r := newRig(t, Options{Queues: 2})
	want := NAPIOptions{Threaded: true, CPUs: []int{1}, Policy: FIFO}
	set := func() {
		t.Helper()
		if err := errors.Join(r.SUT.SetNAPI(want), r.SUT.VerifyNAPI(want)); err != nil {
			t.Fatal(err)
		}
	}
	expect := func(word string) {
		t.Helper()
		if err := r.SUT.VerifyNAPI(want); err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("got %v, want it to say %q", err, word)
		}
	}
	set()
	if err := errors.Join(r.SUT.SetGRO(false), r.SUT.SetGRO(true)); err != nil {
		t.Fatal(err)
	}
	expect("may run on CPUs")
	set()
	if err := r.SUT.SetGRO(false); err != nil {
		t.Fatal(err)
	}
	expect("has none")
	if err := r.SUT.SetNAPI(want); err == nil {
		t.Error("NAPI of a device that has none was placed")
	}
	if err := r.SUT.SetGRO(true); err != nil {
		t.Fatal(err)
	}
	set()
	threads, err := r.SUT.NAPI()
	if err != nil {
		t.Fatal(err)
	}
	if err := setPolicy(threads[1].PID, Other, 0); err != nil {
		t.Fatal(err)
	}
	expect("is other priority 0, want fifo")
	set()
	if err := pin(threads[0].PID, []int{0}); err != nil {
		t.Fatal(err)
	}
	expect("queue 0: thread")
	set()
	if err := r.SUT.SetNAPI(NAPIOptions{}); err != nil {
		t.Fatal(err)
	}
	expect("runs in softirq")
	set()
	if err := r.SUT.VerifyNAPI(NAPIOptions{}); err == nil || !strings.Contains(err.Error(), "want softirq") {
		t.Errorf("threads pass for softirq: %v", err)
	}
}

func TestNAPIOptionsAreChecked(t *testing.T) {
	for _, o := range []NAPIOptions{{Threaded: true}, {Threaded: true, CPUs: []int{0}, Policy: "batch"},
		{Threaded: true, CPUs: []int{0}, Policy: FIFO, Priority: 100}} {
		if err := o.check(); err == nil {
			t.Errorf("%+v passes", o)
		}
	}
}

// The thread list of /proc, for kernels before 6.8, finds the same threads.
func TestProcNAPIsFindsTheSameThreads(t *testing.T) {
	r := newRig(t, Options{Queues: 3})
	if err := r.SUT.SetNAPI(NAPIOptions{Threaded: true, CPUs: []int{0}}); err != nil {
		t.Fatal(err)
	}
	// A name no other package's test can have at the same time.
	err := r.SUT.Do(func() error {
		l, err := netlink.LinkByIndex(r.SUT.Index)
		if err != nil {
			return err
		}
		return netlink.LinkSetName(l, "rt0")
	})
	if err != nil {
		t.Fatal(err)
	}
	r.SUT.Name = "rt0"
	if err := errors.Join(r.SUT.SetNAPI(NAPIOptions{}), r.SUT.SetNAPI(NAPIOptions{Threaded: true, CPUs: []int{0}})); err != nil {
		t.Fatal(err)
	}
	want, err := r.SUT.NAPI()
	if err != nil {
		t.Fatal(err)
	}
	var got []napiEntry
	if err := r.SUT.Do(func() (err error) { got, err = procNAPIs("rt0"); return }); err != nil {
		t.Fatal(err)
	}
	got = byQueue(got, nil)
	if len(got) != len(want) {
		t.Fatalf("got %+v, want %+v", got, want)
	}
	for i := range got {
		if got[i].id != want[i].ID || got[i].pid != want[i].PID {
			t.Errorf("got %+v, want %+v", got[i], want[i])
		}
	}
}

func TestNAPIComm(t *testing.T) {
	for comm, want := range map[string]int{"napi/sut0-81\n": 81, "napi/sut0-": 0, "napi/sut01-8": 0, "napi/sut0-8x": 0,
		"kworker/0:1": 0, "napi/sut0-812345": 0 /* may have been cut */, "": 0} {
		if id, ok := napiComm(comm, "sut0"); id != want || ok != (want != 0) {
			t.Errorf("%q: got %d, %t, want %d", comm, id, ok, want)
		}
	}
}
