// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"testing"
	"time"

	"github.com/cilium/ebpf/link"

	"twopath/internal/nstest"
)

func TestReceiveExact(t *testing.T) {
	for _, chunk := range []int{2048, 4096} {
		p, s := receiver(t, nstest.Options{}, Options{ChunkSize: chunk, RxRing: 256, TxRing: None})
		ps := newPacketSocket(t, p.Peer)
		total := 0
		for round := range 40 { // several times round every ring
			ps.send(total, 100, 60+round*30)
			exactly(t, collect(t, s, 100), total, 100)
			total += 100
		}
		if st := stats(t, s); st != (Stats{}) {
			t.Errorf("chunk %d: kernel counted losses: %+v", chunk, st)
		}
		c := s.RxCounters()
		if c.Received != uint64(total) || c.Released != uint64(total) || s.Held() != 0 || s.Queued() != 0 {
			t.Errorf("chunk %d: counters %+v, held %d, queued %d after %d frames", chunk, c, s.Held(), s.Queued(), total)
		}
		if m := s.Mode(); m.Obtained.Bind != Copy || m.Requested.Bind != Auto {
			t.Errorf("mode %v", m)
		}
	}
}

// The rows below were measured on Linux 6.18 before this package existed; see Stats for what overlaps.

func TestFillRingRunsEmpty(t *testing.T) {
	p, s := receiver(t, nstest.Options{}, Options{RxFrames: 10, RxRing: 64, FillRing: 64})
	newPacketSocket(t, p.Peer).send(0, 30, 60)
	waitFor(t, "30 frames delivered or dropped", func() bool { return stats(t, s).RxDropped == 20 && s.Queued() == 10 })
	if st := stats(t, s); st != (Stats{RxDropped: 20, RxFillRingEmptyDescs: 20}) || st.Lost() != 20 {
		t.Errorf("statistics %+v, lost %d", st, st.Lost())
	}
	exactly(t, collect(t, s, 10), 0, 10)
	// The frames are back: the socket works again.
	newPacketSocket(t, p.Peer).send(30, 10, 60)
	exactly(t, collect(t, s, 10), 30, 10)
}

func TestRxRingFull(t *testing.T) {
	p, s := receiver(t, nstest.Options{}, Options{RxRing: 16, FillRing: 64})
	before := deviceCounters(t, p.SUT)
	newPacketSocket(t, p.Peer).send(0, 40, 60)
	waitFor(t, "40 frames delivered or dropped", func() bool { return stats(t, s).RxRingFull == 24 })
	if st := stats(t, s); st != (Stats{RxRingFull: 24}) || st.Lost() != 24 {
		t.Errorf("statistics %+v", st)
	}
	if s.Queued() != 16 {
		t.Errorf("%d queued, want 16", s.Queued())
	}
	if d := deviceCounters(t, p.SUT).RxDropped - before.RxDropped; d != 24 {
		t.Errorf("device rx_dropped rose by %d, want 24", d)
	}
	exactly(t, collect(t, s, 16), 0, 16)
}

// A frame must fit a chunk with 256 bytes (and the headroom) in front of it, or it is dropped.
func TestLargestFrame(t *testing.T) {
	for _, c := range []struct{ size, headroom, want int }{
		{1700, 0, 1}, {1792, 0, 1}, {1793, 0, 0}, {1900, 0, 0}, {2500, 0, 0}, {1664, 128, 1}, {1665, 128, 0},
	} {
		p, s := receiver(t, nstest.Options{MTU: 3000}, Options{ChunkSize: 2048, Headroom: c.headroom, RxRing: 64})
		newPacketSocket(t, p.Peer).send(5, 1, c.size)
		waitFor(t, "frame delivered or dropped", func() bool { return stats(t, s).RxDropped+uint64(s.Queued()) == 1 })
		if got := s.Queued(); got != c.want {
			t.Errorf("%d bytes, headroom %d: %d delivered, want %d", c.size, c.headroom, got, c.want)
			continue
		}
		if st := stats(t, s); st != (Stats{RxDropped: uint64(1 - c.want)}) {
			t.Errorf("%d bytes: statistics %+v", c.size, st)
		}
		descs := make([]Desc, 1)
		if s.Receive(descs) == 1 && descs[0].Addr%2048 != uint64(256+c.headroom) {
			t.Errorf("headroom %d: frame begins at %d of its chunk", c.headroom, descs[0].Addr%2048)
		}
	}
}

func TestReceiveMultiBuffer(t *testing.T) {
	p, s := receiver(t, nstest.Options{MTU: 9000}, Options{MultiBuffer: true, ChunkSize: 2048, RxRing: 256})
	const packets, size = 30, 3000
	newPacketSocket(t, p.Peer).send(0, packets, size)
	got := map[uint32]int{}
	descs := make([]Desc, MaxFrags)
	deadline := time.Now().Add(5 * time.Second)
	for len(got) < packets && time.Now().Before(deadline) {
		n := s.Receive(descs)
		var packet []byte
		for i, d := range descs[:n] {
			packet = append(packet, s.Frame(d)...)
			if d.More() {
				if i == n-1 {
					t.Fatal("packet torn between two calls")
				}
				continue
			}
			k, err := checkFrame(packet)
			if err != nil || len(packet) != size {
				t.Fatalf("packet of %d bytes: %v", len(packet), err)
			}
			got[k]++
			packet = nil
		}
		s.Release(descs[:n])
	}
	exactly(t, got, 0, packets)
	if c := s.RxCounters(); c.Received != 2*packets {
		t.Errorf("%d descriptors for %d packets, want 2 each", c.Received, packets)
	}
}

func TestSharedUMEMAcrossQueues(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	r := attach(t, p.SUT, link.XDPDriverMode, false)
	var q *Queues
	p.SUT.Do(t, func() {
		var err error
		if q, err = OpenQueues(Options{Device: p.SUT.Name, RxRing: 64, TxRing: 64}, 0, 1); err != nil {
			t.Fatal(err)
		}
	})
	defer q.Close()
	for i, s := range q.Sockets {
		r.add(t, s)
		if m := s.Mode(); m.Queue != i || m.Obtained.SharedUMEM != (i == 1) {
			t.Errorf("mode %+v", m)
		}
	}
	// veth delivers on the queue it was sent on, modulo the number of queues.
	peer := make([]*Socket, 2)
	for i := range peer {
		peer[i] = openAt(t, p.Peer, Options{Queue: i, RxRing: None, TxRing: 64})
	}
	for round := range 5 {
		for i, s := range q.Sockets {
			transmit(t, peer[i], round*100+i*1000, 50, 60)
			exactly(t, collect(t, s, 50), round*100+i*1000, 50)
			if other := q.Sockets[1-i]; other.Queued() != 0 {
				t.Errorf("%d frames of queue %d came on the other", other.Queued(), i)
			}
		}
	}
	// And back, from both halves of the one UMEM.
	ps := newPacketSocket(t, p.Peer)
	transmit(t, q.Sockets[0], 0, 100, 60)
	transmit(t, q.Sockets[1], 100, 100, 60)
	exactly(t, ps.read(200, time.Second), 0, 200)
	for _, s := range q.Sockets {
		if st := stats(t, s); st != (Stats{}) || s.TxCounters().Foreign != 0 {
			t.Errorf("statistics %+v, foreign %d", st, s.TxCounters().Foreign)
		}
	}
	if err := errors.Join(q.Close(), q.Close()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// A UMEM outlives the socket that brought it, and a socket opened later shares with who is left.
func TestUMEMOutlivesFirstSocket(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{Queues: 2})
	r := attach(t, p.SUT, link.XDPDriverMode, false)
	u, err := NewUMEM(UMEMOptions{Frames: 256, ChunkSize: 2048})
	if err != nil {
		t.Fatal(err)
	}
	o := Options{UMEM: u, RxRing: 32, TxRing: None}
	first, second := openAt(t, p.SUT, o), (*Socket)(nil)
	o.Queue = 1
	second = openAt(t, p.SUT, o)
	if err := u.Close(); !errors.Is(err, ErrInUse) {
		t.Errorf("closing a UMEM in use: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	o.Queue, o.NoNeedWakeup = 0, true
	var oe *OptionError
	if _, err := tryOpen(t, p.SUT, o); !errors.As(err, &oe) || oe.Field != "NoNeedWakeup" {
		t.Errorf("unlike socket on a UMEM: %v", err)
	}
	o.NoNeedWakeup = false
	third := openAt(t, p.SUT, o)
	r.add(t, second)
	r.add(t, third)
	for i, s := range []*Socket{third, second} {
		transmit(t, openAt(t, p.Peer, Options{Queue: i, RxRing: None, TxRing: 64}), i*100, 20, 60)
		exactly(t, collect(t, s, 20), i*100, 20)
	}
	o.RxFrames, o.FillRing = 512, 512
	if _, err := tryOpen(t, p.SUT, o); !errors.As(err, &oe) || oe.Field != "UMEM" {
		t.Errorf("more frames than the UMEM has: %v", err)
	}
	if err := errors.Join(second.Close(), third.Close(), u.Close(), u.Close()); err != nil {
		t.Error(err)
	}
	if _, err := tryOpen(t, p.SUT, Options{UMEM: u, RxRing: 32}); !errors.Is(err, ErrClosed) {
		t.Errorf("open on a closed UMEM: %v", err)
	}
}

// waitFor waits for what another CPU's softirq will do, bounded.
func waitFor(t testing.TB, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(3 * time.Second); !done(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not in 3 s", what)
		}
	}
	time.Sleep(5 * time.Millisecond) // and a little more, so that too much is seen as well
}

// An address outside the UMEM on the fill ring is skipped, and no packet is lost by it. The kernel counts it on the fill ring but reports the RX ring's
// count (xsk_getsockopt), so RxInvalidDescs stays 0 here; should a later kernel report it, 1 is right as well.
func TestInvalidFillAddress(t *testing.T) {
	p, s := receiver(t, nstest.Options{}, Options{RxRing: 8, FillRing: 8})
	ps := newPacketSocket(t, p.Peer)
	ps.send(0, 1, 60)
	waitFor(t, "a frame", func() bool { return s.Queued() == 1 })
	descs := make([]Desc, 1)
	if s.Receive(descs) != 1 || s.Release([]Desc{{Addr: 1 << 40}}) != 1 {
		t.Fatal("not received and released")
	}
	// 7 good frames are left, in the ring before the bad address.
	for i := range 4 {
		ps.send(i*5, 5, 60)
		exactly(t, collect(t, s, 5), i*5, 5)
	}
	if st := stats(t, s); st.RxInvalidDescs > 1 || st.Lost() != 0 {
		t.Errorf("statistics %+v", st)
	} else {
		t.Logf("rx_invalid_descs %d", st.RxInvalidDescs)
	}
}
