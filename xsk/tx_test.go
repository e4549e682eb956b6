// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// sender makes a pair with a socket that only sends on the SUT's end, and a packet socket that reads on the peer's.
func sender(t testing.TB, po nstest.Options, o Options) (*nstest.Pair, *Socket, *packetSocket) {
	t.Helper()
	p := nstest.NewPair(t, po)
	ps := newPacketSocket(t, p.Peer)
	o.RxRing = None
	return p, openAt(t, p.SUT, o), ps
}

// transmit sends frames first..first+count-1 of the given length and waits until all are completed.
func transmit(t testing.TB, s *Socket, first, count, size int) {
	t.Helper()
	submit(t, s, first, count, size)
	if err := s.Flush(5 * time.Second); err != nil {
		t.Fatal(err)
	}
}

// submit puts frames on the TX ring, kicking when it is out of frames.
func submit(t testing.TB, s *Socket, first, count, size int) {
	t.Helper()
	descs := make([]Desc, 64)
	deadline := time.Now().Add(5 * time.Second)
	for sent := 0; sent < count; {
		n := s.Reserve(descs[:min(len(descs), count-sent)])
		for i := range descs[:n] {
			writeFrame(s.Buffer(descs[i])[:size], uint32(first+sent+i))
			descs[i].Len = uint32(size)
		}
		if got := s.Submit(descs[:n]); got != n {
			t.Fatalf("submitted %d of %d reserved", got, n)
		}
		sent += n
		if n == 0 {
			if err := s.Kick(); err != nil {
				t.Fatal(err)
			}
			if time.Now().After(deadline) {
				t.Fatalf("sent %d of %d in 5 s", sent, count)
			}
		}
	}
}

func TestSendExact(t *testing.T) {
	for _, o := range []Options{{TxRing: 64}, {TxRing: 256, ChunkSize: 2048, Order: FIFO}, {NoNeedWakeup: true}, {TxRing: 1}} {
		_, s, ps := sender(t, nstest.Options{}, o)
		total := 0
		for round := range 8 {
			transmit(t, s, total, 250, 60+round*200)
			exactly(t, ps.read(250, time.Second), total, 250)
			total += 250
		}
		c := s.TxCounters()
		if c.Submitted != uint64(total) || c.Completed != uint64(total) || c.Foreign != 0 || c.EBUSY != 0 || s.Outstanding() != 0 {
			t.Errorf("%+v: counters %+v, outstanding %d after %d frames", o, c, s.Outstanding(), total)
		}
		if st := stats(t, s); st != (Stats{}) {
			t.Errorf("%+v: kernel statistics %+v", o, st)
		}
	}
}

// One system call sends 32 frames in copy mode; the rest must not wait for the next batch (xdp-tutorial issue 311).
func TestAllFramesOfABatchLeave(t *testing.T) {
	for _, count := range []int{1, 31, 32, 33, 40, 64, 256, 2048} {
		_, s, ps := sender(t, nstest.Options{}, Options{})
		submit(t, s, 0, count, 60)
		if s.Pending() != count {
			t.Fatalf("%d frames: %d pending before any kick", count, s.Pending())
		}
		if err := s.Kick(); err != nil {
			t.Fatal(err)
		}
		// Not another call: idle from here.
		exactly(t, ps.read(count, time.Second), 0, count)
		if s.Pending() != 0 {
			t.Errorf("%d frames: %d still pending", count, s.Pending())
		}
	}
}

func TestTxBudget(t *testing.T) {
	_, s, ps := sender(t, nstest.Options{}, Options{TxBudget: 512})
	submit(t, s, 0, 512, 60)
	if err := s.Kick(); err != nil {
		t.Fatal(err)
	}
	exactly(t, ps.read(512, time.Second), 0, 512)
	got, kicks := s.Mode().Obtained.TxBudget, s.TxCounters().Kicks
	switch {
	case got == 512 && kicks > 2:
		t.Errorf("budget 512 obtained, but it took %d kicks", kicks)
	case got == kernelBudget && kicks < 512/kernelBudget:
		t.Errorf("budget not obtained, but %d kicks sent all", kicks)
	case got != 512 && got != kernelBudget:
		t.Errorf("obtained budget %d", got)
	}
	t.Logf("budget %d, %d kicks", got, kicks)
}

// deviceCounters returns the rtnl counters of an end.
func deviceCounters(t testing.TB, e *nstest.End) (st netlink.LinkStatistics) {
	t.Helper()
	e.Do(t, func() {
		l, err := netlink.LinkByIndex(e.Index)
		if err != nil {
			t.Fatal(err)
		}
		st = *l.Attrs().Statistics
	})
	return st
}

// What the kernel finds wrong with a descriptor it counts, and completes; what the driver refuses is EBUSY, and completed too.
func TestBadDescriptorsAreCountedAndCompleted(t *testing.T) {
	for _, c := range []struct {
		name                   string
		change                 func(d *Desc)
		invalid, busy, foreign uint64
	}{
		{"length 0", func(d *Desc) { d.Len = 0 }, 1, 0, 0},
		{"longer than a chunk", func(d *Desc) { d.Len = 2049 }, 1, 0, 0},
		{"across a chunk", func(d *Desc) { d.Addr, d.Len = d.Addr+2040, 60 }, 1, 0, 0},
		{"outside the UMEM", func(d *Desc) { d.Addr = 1 << 30 }, 1, 0, 1},
		{"unknown option", func(d *Desc) { d.Options = 1 << 5 }, 1, 0, 0},
		{"longer than the MTU", func(d *Desc) { d.Len = 1600 }, 0, 1, 0},
		{"shorter than a header", func(d *Desc) { d.Len = 13 }, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, s, ps := sender(t, nstest.Options{}, Options{ChunkSize: 2048, TxRing: 64})
			before := deviceCounters(t, p.SUT)
			descs := make([]Desc, 3)
			if s.Reserve(descs) != 3 {
				t.Fatal("no frames")
			}
			for i := range descs {
				writeFrame(s.Buffer(descs[i])[:60], uint32(i))
				descs[i].Len = 60
			}
			c.change(&descs[1]) // good, bad, good
			s.Submit(descs)
			if err := s.Flush(2 * time.Second); err != nil {
				t.Fatal(err)
			}
			got := ps.read(2, time.Second)
			if got[0] != 1 || got[2] != 1 || len(got) != 2 {
				t.Errorf("frames 0 and 2 expected, got %v", got)
			}
			n, st := s.TxCounters(), stats(t, s)
			if n.Completed != 3 || n.EBUSY != c.busy || n.Foreign != c.foreign || st.TxInvalidDescs != c.invalid {
				t.Errorf("completed %d, EBUSY %d, foreign %d, tx_invalid_descs %d; want 3, %d, %d, %d",
					n.Completed, n.EBUSY, n.Foreign, st.TxInvalidDescs, c.busy, c.foreign, c.invalid)
			}
			if dropped := deviceCounters(t, p.SUT).TxDropped - before.TxDropped; c.name == "longer than the MTU" && dropped != 1 {
				t.Errorf("device tx_dropped rose by %d, want 1", dropped)
			}
		})
	}
}

// The 4 bytes of a VLAN tag are allowed beyond the MTU.
func TestLengthLimitOfDevice(t *testing.T) {
	for size, busy := range map[int]uint64{1514: 0, 1518: 0, 1519: 1} {
		_, s, ps := sender(t, nstest.Options{}, Options{})
		transmit(t, s, 7, 1, size)
		if got := len(ps.read(1, 50*time.Millisecond)); uint64(got) != 1-busy || s.TxCounters().EBUSY != busy {
			t.Errorf("%d bytes: %d frames arrived, EBUSY %d; want EBUSY %d", size, got, s.TxCounters().EBUSY, busy)
		}
	}
}

func TestLinkDown(t *testing.T) {
	p, s, _ := sender(t, nstest.Options{}, Options{})
	if err := s.Alive(); err != nil {
		t.Fatalf("alive: %v", err)
	}
	p.SUT.Do(t, func() {
		l, err := netlink.LinkByIndex(p.SUT.Index)
		if err == nil {
			err = netlink.LinkSetDown(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	submit(t, s, 0, 3, 60)
	if err := s.Kick(); !errors.Is(err, ErrNetDown) || !errors.Is(err, unix.ENETDOWN) {
		t.Errorf("kick: %v", err)
	}
	if err := s.Flush(time.Second); !errors.Is(err, ErrNetDown) {
		t.Errorf("flush: %v", err)
	}
	if err := s.Alive(); !errors.Is(err, ErrNetDown) {
		t.Errorf("alive: %v", err)
	}
	if s.Outstanding() != 3 {
		t.Errorf("outstanding %d, want 3", s.Outstanding())
	}
}

// With the peer's link down the driver drops every frame, and says EBUSY.
func TestPeerDown(t *testing.T) {
	p, s, _ := sender(t, nstest.Options{}, Options{})
	p.Peer.Do(t, func() {
		l, err := netlink.LinkByIndex(p.Peer.Index)
		if err == nil {
			err = netlink.LinkSetDown(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	transmit(t, s, 0, 40, 60)
	if c := s.TxCounters(); c.EBUSY != 40 || c.Completed != 40 {
		t.Errorf("EBUSY %d, completed %d; want 40 and 40", c.EBUSY, c.Completed)
	}
}

func TestDeviceDeleted(t *testing.T) {
	p, s := receiver(t, nstest.Options{}, Options{Wait: Poll})
	done := make(chan error, 1)
	go func() {
		_, err := s.Wait(-1)
		done <- err
	}()
	time.Sleep(20 * time.Millisecond) // let it go to sleep; the outcome is the same if it has not
	p.Peer.Do(t, func() {
		l, err := netlink.LinkByIndex(p.Peer.Index)
		if err == nil {
			err = netlink.LinkDel(l)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	select {
	case err := <-done:
		if !errors.Is(err, ErrUnbound) && !errors.Is(err, ErrNetDown) {
			t.Errorf("wait on a device that is gone: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Fatal("still waiting 5 s after the device went")
	}
	submit(t, s, 0, 1, 60)
	if err := s.Kick(); !errors.Is(err, ErrUnbound) || !errors.Is(err, unix.ENXIO) {
		t.Errorf("kick: %v", err)
	}
}

// Frames are reserved until the free list is empty, and Cancel brings them back.
func TestReserveAllAndCancel(t *testing.T) {
	_, s, _ := sender(t, nstest.Options{}, Options{TxRing: 64})
	descs := make([]Desc, 100)
	if n := s.Reserve(descs); n != 64 || s.TxCounters().Short != 1 {
		t.Fatalf("reserved %d, short %d", n, s.TxCounters().Short)
	}
	seen := map[uint64]bool{}
	for _, d := range descs[:64] {
		if seen[d.Addr] || d.Addr%4096 != 0 || len(s.Buffer(d)) != 4096 {
			t.Fatalf("frame %#x, %d bytes", d.Addr, len(s.Buffer(d)))
		}
		seen[d.Addr] = true
	}
	if s.Reserve(descs[64:]) != 0 {
		t.Fatal("reserved more than there are")
	}
	if s.Cancel(descs[:64]) != 64 || s.Reserve(descs) != 64 {
		t.Fatal("cancelled frames did not come back")
	}
}

// A sender that never calls Complete is not stopped for ever: Reserve does.
func TestSendWithoutComplete(t *testing.T) {
	_, s, ps := sender(t, nstest.Options{}, Options{TxRing: 16})
	submit(t, s, 0, 400, 60)
	if err := s.Kick(); err != nil {
		t.Fatal(err)
	}
	exactly(t, ps.read(400, time.Second), 0, 400)
}

func TestSendMultiBuffer(t *testing.T) {
	_, s, ps := sender(t, nstest.Options{MTU: 9000}, Options{MultiBuffer: true, ChunkSize: 2048, TxRing: 64})
	const packets, size = 20, 5000
	for k := range packets {
		want := frame(uint32(k), size)
		descs := make([]Desc, 3)
		if n := s.Reserve(descs); n != 3 {
			t.Fatalf("reserved %d", n)
		}
		for i := range descs {
			n := copy(s.Buffer(descs[i]), want)
			descs[i].Len = uint32(n)
			want = want[n:]
			descs[i].SetMore(len(want) > 0)
		}
		if s.Submit(descs) != 3 {
			t.Fatal("not all submitted")
		}
		if err := s.Flush(time.Second); err != nil {
			t.Fatal(err)
		}
	}
	exactly(t, ps.read(packets, time.Second), 0, packets) // read checks every byte
	if c, st := s.TxCounters(), stats(t, s); c.Completed != 3*packets || st != (Stats{}) {
		t.Errorf("completed %d descriptors, statistics %+v", c.Completed, st)
	}
}
