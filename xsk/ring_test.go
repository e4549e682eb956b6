// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"math"
	"runtime"
	"sync/atomic"
	"testing"
)

// heapRing is a ring as the kernel would make it, on the heap, with its indices starting anywhere.
func heapRing(start uint32) shared {
	s := deadShared()
	s.producer.Store(start)
	s.consumer.Store(start)
	return s
}

// otherEnd is the kernel's side of a ring, written without the code under test: plain index arithmetic on the shared words.
type otherEnd struct{ shared }

func (k otherEnd) consume(slots []uint64) (v uint64, ok bool) {
	c := k.consumer.Load()
	if k.producer.Load() == c {
		return 0, false
	}
	v = slots[c%uint32(len(slots))]
	k.consumer.Store(c + 1)
	return v, true
}

func (k otherEnd) produce(slots []uint64, v uint64) bool {
	p := k.producer.Load()
	if p-k.consumer.Load() == uint32(len(slots)) {
		return false
	}
	slots[p%uint32(len(slots))] = v
	k.producer.Store(p + 1)
	return true
}

func TestProducerAcrossWrap(t *testing.T) {
	for _, size := range []uint32{1, 2, 8, 64, 1 << 16} {
		sh := heapRing(math.MaxUint32 - size/2)
		slots := make([]uint64, size)
		p, k := newProducer(sh, size), otherEnd{sh}
		if got := p.room(size + 5); got != size {
			t.Fatalf("size %d: room %d in an empty ring", size, got)
		}
		next, want := uint64(0), uint64(0)
		for range 6 {
			n := p.room(size)
			if n != size {
				t.Fatalf("size %d: room %d, want all", size, n)
			}
			a, b := split(slots, p.head, n)
			for _, part := range [][]uint64{a, b} {
				for i := range part {
					part[i] = next
					next++
				}
			}
			p.publish(n)
			if p.room(1) != 0 || p.pending() != size {
				t.Fatalf("size %d: full ring has room %d, pending %d", size, p.room(1), p.pending())
			}
			for range size {
				if v, ok := k.consume(slots); !ok || v != want {
					t.Fatalf("size %d: kernel read %d, %v; want %d", size, v, ok, want)
				}
				want++
			}
			if _, ok := k.consume(slots); ok || p.pending() != 0 {
				t.Fatalf("size %d: ring not empty after all was read", size)
			}
		}
	}
}

func TestConsumerAcrossWrap(t *testing.T) {
	for _, size := range []uint32{1, 2, 8, 64, 1 << 16} {
		sh := heapRing(math.MaxUint32 - size/2)
		slots := make([]uint64, size)
		c, k := newConsumer(sh), otherEnd{sh}
		if c.ready(size) != 0 || c.queued() != 0 {
			t.Fatalf("size %d: empty ring is ready", size)
		}
		next, want := uint64(0), uint64(0)
		for range 6 {
			for k.produce(slots, next) {
				next++
			}
			if c.queued() != size || c.ready(size+5) != size {
				t.Fatalf("size %d: full ring has %d queued, %d ready", size, c.queued(), c.ready(size))
			}
			a, b := split(slots, c.tail, size)
			for _, part := range [][]uint64{a, b} {
				for _, v := range part {
					if v != want {
						t.Fatalf("size %d: read %d, want %d", size, v, want)
					}
					want++
				}
			}
			c.release(size)
		}
	}
}

// The cached index must be used: a ready that never looks at the producer again would be as wrong as one that always does is slow.
func TestReadyLooksOnlyWhenUsedUp(t *testing.T) {
	sh := heapRing(0)
	slots := make([]uint64, 8)
	c, k := newConsumer(sh), otherEnd{sh}
	k.produce(slots, 1)
	if c.ready(8) != 1 {
		t.Fatal("one entry expected")
	}
	k.produce(slots, 2)
	if c.ready(8) != 1 {
		t.Fatal("looked at the producer though an entry was left")
	}
	c.release(1)
	if c.ready(8) != 1 {
		t.Fatal("did not look though all was used up")
	}
}

func TestWakeupFlag(t *testing.T) {
	sh := heapRing(0)
	for flags, want := range map[uint32]bool{0: false, 1: true, 2: false, 3: true} {
		sh.flags.Store(flags)
		if sh.wakeup() != want {
			t.Errorf("flags %#x: wakeup %v", flags, sh.wakeup())
		}
	}
}

func TestSplit(t *testing.T) {
	slots := []int{0, 1, 2, 3, 4, 5, 6, 7}
	for index := uint32(math.MaxUint32 - 20); index != 20; index++ {
		for n := range uint32(9) {
			a, b := split(slots, index, n)
			got := append(append([]int{}, a...), b...)
			if uint32(len(got)) != n {
				t.Fatalf("split at %d of %d gave %v", index, n, got)
			}
			for i, v := range got {
				if v != int((index+uint32(i))%8) {
					t.Fatalf("split at %d of %d gave %v", index, n, got)
				}
			}
		}
	}
}

// Two goroutines, one on each end, across the wrap of the index. Meant for -race: it sees a missing barrier as a race on the slots.
func TestRingBetweenGoroutines(t *testing.T) {
	const size, total = 16, 20000
	sh := heapRing(math.MaxUint32 - 1000)
	slots := make([]uint64, size)
	p, c := newProducer(sh, size), newConsumer(sh)
	var failed atomic.Bool
	go func() {
		for next := uint64(0); next < total && !failed.Load(); {
			n := p.room(uint32(min(1+next%7, total-next)))
			if n == 0 {
				runtime.Gosched()
				continue
			}
			a, b := split(slots, p.head, n)
			for _, part := range [2][]uint64{a, b} {
				for i := range part {
					part[i] = next
					next++
				}
			}
			p.publish(n)
		}
	}()
	for want := uint64(0); want < total; {
		n := c.ready(uint32(1 + want%5))
		if n == 0 {
			runtime.Gosched()
			continue
		}
		a, b := split(slots, c.tail, n)
		for _, part := range [2][]uint64{a, b} {
			for _, v := range part {
				if v != want {
					failed.Store(true)
					t.Fatalf("read %d, want %d", v, want)
				}
				want++
			}
		}
		c.release(n)
	}
}

// FuzzRing drives both ends of two rings by the fuzzer's bytes and compares with a deque.
func FuzzRing(f *testing.F) {
	f.Add(uint32(0), uint8(3), []byte{0x11, 0x92, 0x43, 0xc4, 0x25, 0xa6})
	f.Add(uint32(math.MaxUint32-2), uint8(1), []byte{0x3f, 0xbf, 0x3f, 0xbf, 0x7f, 0xff})
	f.Add(uint32(math.MaxUint32), uint8(0), []byte{1, 0x81, 1, 0x81})
	f.Fuzz(func(t *testing.T, start uint32, order uint8, ops []byte) {
		size := uint32(1) << (order % 8)
		up, down := heapRing(start), heapRing(start)
		upSlots, downSlots := make([]uint64, size), make([]uint64, size)
		p, c := newProducer(up, size), newConsumer(down)
		kp, kc := otherEnd{up}, otherEnd{down}
		var upModel, downModel []uint64
		next := uint64(1)
		for _, op := range ops {
			n := uint32(op & 0x3f)
			switch op >> 6 {
			case 0: // we produce
				got := p.room(n)
				// room may be cached and so too small, but only if it is enough; when short it must be exact.
				if exact := min(n, size-uint32(len(upModel))); got != exact {
					t.Fatalf("room(%d) = %d, want %d", n, got, exact)
				}
				a, b := split(upSlots, p.head, got)
				for _, part := range [2][]uint64{a, b} {
					for i := range part {
						part[i] = next
						upModel = append(upModel, next)
						next++
					}
				}
				p.publish(got)
			case 1: // the kernel consumes
				for range n {
					v, ok := kp.consume(upSlots)
					if ok != (len(upModel) > 0) {
						t.Fatalf("kernel found entry: %v, model has %d", ok, len(upModel))
					}
					if !ok {
						break
					}
					if v != upModel[0] {
						t.Fatalf("kernel read %d, want %d", v, upModel[0])
					}
					upModel = upModel[1:]
				}
			case 2: // the kernel produces
				for range n {
					ok := kc.produce(downSlots, next)
					if ok != (len(downModel) < int(size)) {
						t.Fatalf("kernel found room: %v, model has %d of %d", ok, len(downModel), size)
					}
					if !ok {
						break
					}
					downModel = append(downModel, next)
					next++
				}
			case 3: // we consume
				got := c.ready(n)
				if got > uint32(len(downModel)) || got > n || n > 0 && got == 0 && len(downModel) > 0 {
					t.Fatalf("ready(%d) = %d, model has %d", n, got, len(downModel))
				}
				a, b := split(downSlots, c.tail, got)
				for _, part := range [2][]uint64{a, b} {
					for _, v := range part {
						if v != downModel[0] {
							t.Fatalf("read %d, want %d", v, downModel[0])
						}
						downModel = downModel[1:]
					}
				}
				c.release(got)
			}
			if p.pending() != uint32(len(upModel)) || c.queued() != uint32(len(downModel)) {
				t.Fatalf("pending %d, queued %d; model %d, %d", p.pending(), c.queued(), len(upModel), len(downModel))
			}
		}
	})
}

func BenchmarkReceiveRelease(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256} {
		b.Run(itoa(batch), func(b *testing.B) {
			s := heapSocket(b, 4096, 0)
			k := s.kernel()
			descs := make([]Desc, batch)
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				k.refill(uint32(batch))
				got := s.Receive(descs)
				s.Release(descs[:got])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/packet")
		})
	}
}

func BenchmarkReserveSubmitComplete(b *testing.B) {
	for _, batch := range []int{1, 16, 64, 256} {
		b.Run(itoa(batch), func(b *testing.B) {
			s := heapSocket(b, 4096, 0)
			k := s.kernel()
			descs := make([]Desc, batch)
			b.ReportAllocs()
			for n := 0; n < b.N; n += batch {
				got := s.Reserve(descs)
				s.Submit(descs[:got])
				k.send(uint32(got))
				s.Complete()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N), "ns/packet")
		})
	}
}

func BenchmarkEmptyReceive(b *testing.B) {
	s := heapSocket(b, 64, 0)
	descs := make([]Desc, 64)
	for range b.N {
		s.Receive(descs)
	}
}
