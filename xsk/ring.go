// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// The index arithmetic of the four rings, free of system calls and of what is in the slots. Indices count up and wrap at 2^32; a slot is index & (size-1).
// Each ring has one producer and one consumer, one of which is the kernel (net/xdp/xsk_queue.h, whose comment names the barriers A to D).
// Go's atomics are sequentially consistent, which is at least as strong as each acquire and release asked for here.

// shared holds the words of a ring that both sides see.
type shared struct {
	producer *atomic.Uint32 // next index to be written
	consumer *atomic.Uint32 // next index to be read
	flags    *atomic.Uint32 // XDP_RING_NEED_WAKEUP, set by the kernel
}

// wakeup reports whether the kernel sleeps and wants to be called. It is read after publish: both are sequentially consistent, so either the kernel sees
// the new entries before it sleeps, or we see the flag (pairs with xsk_set_rx_need_wakeup and xsk_set_tx_need_wakeup, which set the flag and then look again).
func (s *shared) wakeup() bool { return s.flags.Load()&unix.XDP_RING_NEED_WAKEUP != 0 }

// producer is our end of a ring the kernel consumes: fill and TX.
type producer struct {
	shared
	size  uint32 // slots, a power of two
	head  uint32 // next index we write; slots before it are published
	limit uint32 // the consumer index last seen, plus size: first index that may still be in use
}

func newProducer(s shared, size uint32) producer {
	return producer{shared: s, size: size, head: s.producer.Load(), limit: s.consumer.Load() + size}
}

// room returns how many slots from head on may be written, at most want. The shared index is loaded only when the last one seen is not enough.
func (p *producer) room(want uint32) uint32 {
	free := p.limit - p.head
	if free < want {
		// Pairs with __xskq_cons_release: what the kernel has read of a slot it read before it moved the consumer (barrier D).
		p.limit = p.consumer.Load() + p.size
		free = p.limit - p.head
	}
	return min(free, want)
}

// publish hands the n slots from head on to the kernel.
func (p *producer) publish(n uint32) {
	p.head += n
	// Pairs with the load-acquire in __xskq_cons_peek: slots are written before the index that shows them (barriers B and C).
	p.producer.Store(p.head)
}

// pending returns how many published slots the kernel has not consumed. Kernels before 6.17 move the TX consumer late in copy mode, so this is an upper bound.
func (p *producer) pending() uint32 { return p.head - p.consumer.Load() }

// consumer is our end of a ring the kernel produces: RX and completion.
type consumer struct {
	shared
	tail uint32 // next index we read; slots before it are given back
	seen uint32 // the producer index last seen
}

func newConsumer(s shared) consumer {
	return consumer{shared: s, tail: s.consumer.Load(), seen: s.consumer.Load()}
}

// ready returns how many slots from tail on may be read, at most want. The shared index is loaded only when all seen so far is used up.
func (c *consumer) ready(want uint32) uint32 {
	if c.seen == c.tail {
		// Pairs with the store-release in __xskq_prod_submit: what the index shows is in the slots (barriers B and C).
		c.seen = c.producer.Load()
	}
	return min(c.seen-c.tail, want)
}

// release gives n slots from tail on back to the kernel.
func (c *consumer) release(n uint32) {
	c.tail += n
	// Pairs with the load of the consumer in xskq_prod_nb_free: our reads of the slots come before it (barriers D and A).
	c.consumer.Store(c.tail)
}

// queued returns how many slots the kernel has filled and we have not read. It leaves the cached index alone.
func (c *consumer) queued() uint32 { return c.producer.Load() - c.tail }

// split returns n slots from index on, in two pieces where the ring wraps. len(slots) is a power of two, n at most len(slots).
func split[T any](slots []T, index, n uint32) (a, b []T) {
	size := uint32(len(slots))
	pos := index & (size - 1)
	if run := size - pos; n > run {
		return slots[pos:], slots[:n-run]
	}
	return slots[pos : pos+n], nil
}
