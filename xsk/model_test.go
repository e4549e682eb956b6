// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

func itoa(n int) string { return strconv.Itoa(n) }

// modelSocket is a Socket over rings on the heap, with a kernel that the test plays.
type modelSocket struct {
	*Socket
	start uint32
}

const modelChunk = 2048

// heapSocket makes a socket of `size` slots in each ring, as many frames in each direction, and indices starting at start.
func heapSocket(t testing.TB, size int, start uint32) *modelSocket {
	t.Helper()
	o, err := Options{Device: "none", ChunkSize: modelChunk, RxRing: size, TxRing: size, FillRing: size, CompletionRing: size}.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s := &Socket{fd: -1, wake: -1, mem: make([]byte, 2*size*modelChunk), chunk: modelChunk, chunkMask: ^uint64(modelChunk - 1)}
	s.rx.fill = fillRing{newProducer(heapRing(start), uint32(size)), make([]uint64, size)}
	s.rx.ring = rxRing{newConsumer(heapRing(start)), make([]Desc, size)}
	s.tx.ring = txRing{newProducer(heapRing(start), uint32(size)), make([]Desc, size)}
	s.tx.done = completionRing{newConsumer(heapRing(start)), make([]uint64, size)}
	s.tx.base, s.tx.bytes, s.tx.count = uint64(size)*modelChunk, uint64(size)*modelChunk, uint32(size)
	s.tx.free = newFrames(s.tx.base, size, modelChunk, o.Order)
	s.tx.budget = kernelBudget
	s.rx.fill.populate(0, size, modelChunk)
	return &modelSocket{s, start}
}

// modelKernel is the other side of the four rings.
type modelKernel struct {
	s          *Socket
	filled     []uint64 // taken from the fill ring, not yet delivered
	sending    []uint64 // taken from the TX ring, not yet completed
	fillC, rxP uint32
	txC, doneP uint32
}

func (m *modelSocket) kernel() *modelKernel {
	return &modelKernel{s: m.Socket, fillC: m.start, rxP: m.start, txC: m.start, doneP: m.start}
}

// takeFill moves up to n frames from the fill ring into the kernel.
func (k *modelKernel) takeFill(n uint32) {
	f := &k.s.rx.fill
	for ; n > 0 && k.fillC != f.producer.producer.Load(); n-- {
		k.filled = append(k.filled, f.slots[k.fillC%uint32(len(f.slots))])
		k.fillC++
	}
	f.consumer.Store(k.fillC)
}

// deliver moves up to n frames from the kernel to the RX ring.
func (k *modelKernel) deliver(n uint32, options func() uint32) {
	r := &k.s.rx.ring
	for ; n > 0 && len(k.filled) > 0 && k.rxP-r.consumer.consumer.Load() < uint32(len(r.slots)); n-- {
		r.slots[k.rxP%uint32(len(r.slots))] = Desc{Addr: k.filled[0] + 256, Len: 60, Options: options()}
		k.filled = k.filled[1:]
		k.rxP++
	}
	r.producer.Store(k.rxP)
}

// refill is takeFill and deliver in one, without memory of its own, for benchmarks.
func (k *modelKernel) refill(n uint32) {
	f, r := &k.s.rx.fill, &k.s.rx.ring
	for ; n > 0; n-- {
		r.slots[k.rxP%uint32(len(r.slots))] = Desc{Addr: f.slots[k.fillC%uint32(len(f.slots))] + 256, Len: 60}
		k.fillC++
		k.rxP++
	}
	f.consumer.Store(k.fillC)
	r.producer.Store(k.rxP)
}

// takeTx moves up to n frames from the TX ring into the kernel.
func (k *modelKernel) takeTx(n uint32) {
	r := &k.s.tx.ring
	for ; n > 0 && k.txC != r.producer.producer.Load(); n-- {
		k.sending = append(k.sending, r.slots[k.txC%uint32(len(r.slots))].Addr)
		k.txC++
	}
	r.consumer.Store(k.txC)
}

// complete moves up to n frames from the kernel to the completion ring, the i-th of those it has first.
func (k *modelKernel) complete(n uint32, pick func(int) int) {
	r := &k.s.tx.done
	for ; n > 0 && len(k.sending) > 0; n-- {
		i := pick(len(k.sending))
		r.slots[k.doneP%uint32(len(r.slots))] = k.sending[i]
		k.sending = append(k.sending[:i], k.sending[i+1:]...)
		k.doneP++
	}
	r.producer.Store(k.doneP)
}

// send is takeTx and complete in one, without memory of its own, for benchmarks.
func (k *modelKernel) send(n uint32) {
	tx, done := &k.s.tx.ring, &k.s.tx.done
	for ; n > 0; n-- {
		done.slots[k.doneP%uint32(len(done.slots))] = tx.slots[k.txC%uint32(len(tx.slots))].Addr
		k.txC++
		k.doneP++
	}
	tx.consumer.Store(k.txC)
	done.producer.Store(k.doneP)
}

// census returns where each frame is. It fails if one is in two places, in the wrong direction, or nowhere.
func (k *modelKernel) census(rxHeld, txHeld []Desc) error {
	size := len(k.s.rx.fill.slots)
	where := map[uint64]string{}
	put := func(place string, addr uint64, tx bool) error {
		addr &= k.s.chunkMask
		if other, twice := where[addr]; twice {
			return fmt.Errorf("frame %#x is in %s and in %s", addr, other, place)
		}
		if (addr >= uint64(size)*modelChunk) != tx || addr >= uint64(2*size)*modelChunk {
			return fmt.Errorf("frame %#x is in %s, the wrong direction", addr, place)
		}
		where[addr] = place
		return nil
	}
	var all []error
	add := func(place string, addr uint64, tx bool) { all = append(all, put(place, addr, tx)) }
	f, r, x, d := &k.s.rx.fill, &k.s.rx.ring, &k.s.tx.ring, &k.s.tx.done
	for i := k.fillC; i != f.producer.producer.Load(); i++ {
		add("fill ring", f.slots[i%uint32(size)], false)
	}
	for _, a := range k.filled {
		add("kernel, receiving", a, false)
	}
	for i := r.consumer.consumer.Load(); i != k.rxP; i++ {
		add("RX ring", r.slots[i%uint32(size)].Addr, false)
	}
	for _, d := range rxHeld {
		add("reader", d.Addr, false)
	}
	for i := k.txC; i != x.producer.producer.Load(); i++ {
		add("TX ring", x.slots[i%uint32(size)].Addr, true)
	}
	for _, a := range k.sending {
		add("kernel, sending", a, true)
	}
	for i := d.consumer.consumer.Load(); i != k.doneP; i++ {
		add("completion ring", d.slots[i%uint32(size)], true)
	}
	for _, d := range txHeld {
		add("writer", d.Addr, true)
	}
	for i := k.s.tx.free.head; i != k.s.tx.free.tail; i++ {
		add("free list", k.s.tx.free.slots[i%uint32(len(k.s.tx.free.slots))], true)
	}
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	if len(where) != 2*size {
		return fmt.Errorf("%d of %d frames are anywhere", len(where), 2*size)
	}
	return nil
}

// TestNoFrameInTwoPlaces makes random moves on both sides of all rings, across the wrap of the indices, and takes a census after each.
func TestNoFrameInTwoPlaces(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 1))
		size := 1 << rng.IntN(6)
		m := heapSocket(t, size, ^uint32(0)-uint32(rng.IntN(4*size)))
		if seed%2 == 1 {
			m.tx.free = newFrames(m.tx.base, size, modelChunk, FIFO)
		}
		m.rx.whole = seed%3 == 0
		k := m.kernel()
		var rxHeld, txHeld []Desc
		received, submitted := 0, 0
		for step := range 600 {
			n := rng.IntN(size + 2)
			descs := make([]Desc, n)
			switch rng.IntN(10) {
			case 0:
				k.takeFill(uint32(n))
			case 1:
				k.deliver(uint32(n), func() uint32 {
					if m.rx.whole {
						return uint32(rng.IntN(2))
					}
					return 0
				})
			case 2:
				got := m.Receive(descs)
				received += got
				rxHeld = append(rxHeld, descs[:got]...)
			case 3:
				rng.Shuffle(len(rxHeld), func(i, j int) { rxHeld[i], rxHeld[j] = rxHeld[j], rxHeld[i] })
				n = min(n, len(rxHeld))
				if got := m.Release(rxHeld[:n]); got != n {
					t.Fatalf("seed %d step %d: released %d of %d", seed, step, got, n)
				}
				rxHeld = rxHeld[n:]
			case 4:
				txHeld = append(txHeld, descs[:m.Reserve(descs)]...)
			case 5:
				n = min(n, len(txHeld))
				for i := range txHeld[:n] {
					txHeld[i].Addr += uint64(rng.IntN(100)) // a frame need not begin where its chunk does
				}
				if got := m.Submit(txHeld[:n]); got != n {
					t.Fatalf("seed %d step %d: submitted %d of %d", seed, step, got, n)
				}
				submitted += n
				txHeld = txHeld[n:]
			case 6:
				n = min(n, len(txHeld))
				if got := m.Cancel(txHeld[:n]); got != n {
					t.Fatalf("seed %d step %d: cancelled %d of %d", seed, step, got, n)
				}
				txHeld = txHeld[n:]
			case 7:
				k.takeTx(uint32(n))
			case 8:
				k.complete(uint32(n), rng.IntN)
			case 9:
				m.Complete()
			}
			if err := k.census(rxHeld, txHeld); err != nil {
				t.Fatalf("seed %d step %d: %v", seed, step, err)
			}
			if m.Held() != len(rxHeld) || m.tx.reserved != uint32(len(txHeld)) {
				t.Fatalf("seed %d step %d: counted %d and %d lent, are %d and %d", seed, step, m.Held(), m.tx.reserved, len(rxHeld), len(txHeld))
			}
		}
		if size > 1 && (received == 0 || submitted == 0) {
			t.Fatalf("seed %d: nothing moved", seed)
		}
		if f := m.TxCounters().Foreign; f != 0 {
			t.Fatalf("seed %d: %d frames came back that were not ours", seed, f)
		}
	}
}

// The census itself must be able to fail.
func TestCensusFindsDoubleRelease(t *testing.T) {
	m := heapSocket(t, 4, 0)
	k := m.kernel()
	k.takeFill(4)
	k.deliver(2, func() uint32 { return 0 })
	descs := make([]Desc, 2)
	if n := m.Receive(descs); n != 2 {
		t.Fatalf("received %d", n)
	}
	m.Release([]Desc{descs[0], descs[0]})
	if err := k.census(nil, nil); err == nil {
		t.Fatal("a frame released twice was not noticed")
	}
}

func TestReleaseAndSubmitRefuseWhatWasNotLent(t *testing.T) {
	m := heapSocket(t, 4, 0)
	if n := m.Release(make([]Desc, 3)); n != 0 || m.RxCounters().Refused != 3 {
		t.Errorf("released %d frames that nobody received, refused %d", n, m.RxCounters().Refused)
	}
	if n := m.Submit(make([]Desc, 3)); n != 0 {
		t.Errorf("submitted %d frames that nobody reserved", n)
	}
	if n := m.Cancel(make([]Desc, 3)); n != 0 {
		t.Errorf("cancelled %d frames that nobody reserved", n)
	}
}

func TestForeignCompletionsAreKeptOut(t *testing.T) {
	m := heapSocket(t, 4, 0)
	k := m.kernel()
	descs := make([]Desc, 4)
	if m.Reserve(descs) != 4 {
		t.Fatal("no frames")
	}
	descs[0].Addr = 0              // an RX frame
	descs[1].Addr = 8 * modelChunk // past the end
	descs[2].Addr = ^uint64(0)     // far past the end
	m.Submit(descs)
	k.send(4)
	if n := m.Complete(); n != 4 || m.TxCounters().Foreign != 3 || m.tx.free.len() != 1 || m.Outstanding() != 0 {
		t.Errorf("completed %d, foreign %d, free %d, outstanding %d", n, m.TxCounters().Foreign, m.tx.free.len(), m.Outstanding())
	}
}

func TestPacketsAreNotTorn(t *testing.T) {
	m := heapSocket(t, 8, 0)
	m.rx.whole = true
	k := m.kernel()
	k.takeFill(8)
	more := []uint32{1, 0, 1, 1, 0, 0, 1, 0} // packets of 2, 3, 1 and 2 descriptors
	i := 0
	k.deliver(8, func() uint32 { i++; return more[i-1] })
	for _, step := range []struct{ room, want int }{{4, 2}, {2, 2}, {3, 2}, {8, 2}, {8, 0}} {
		// With room for 2 the packet of 3 cannot come whole: it comes in pieces rather than never.
		if got := m.Receive(make([]Desc, step.room)); got != step.want {
			t.Fatalf("room for %d: received %d, want %d", step.room, got, step.want)
		}
	}
}

func TestFrameOrder(t *testing.T) {
	lifo, fifo := newFrames(4096, 3, 2048, LIFO), newFrames(4096, 3, 2048, FIFO)
	for i := range uint64(3) {
		if a, b := lifo.take(), fifo.take(); a != 4096+i*2048 || b != a {
			t.Errorf("frame %d: %d and %d", i, a, b)
		}
	}
	for _, f := range []*frames{&lifo, &fifo} {
		f.put(1)
		f.put(2)
	}
	if a, b := lifo.take(), fifo.take(); a != 2 || b != 1 {
		t.Errorf("LIFO gave %d, FIFO %d", a, b)
	}
}
