// SPDX-License-Identifier: Apache-2.0

package xsk

// Order is how free TX frames are taken: the choice is between warm caches and even use of the memory.
type Order int

const (
	LIFO Order = iota // the frame that came back last goes out first: it is likely in the cache still
	FIFO              // round robin over all frames
)

// frames is the list of free TX frames: a deque of addresses with room for all of them, made once.
type frames struct {
	slots      []uint64 // a power of two
	head, tail uint32   // free frames are slots[head..tail), wrapping
	fifo       bool
}

// newFrames holds count frames of size chunk from address base on.
func newFrames(base uint64, count, chunk int, order Order) frames {
	f := frames{slots: make([]uint64, roundPow2(max(count, 1))), fifo: order == FIFO}
	for i := range count {
		// LIFO takes from the end: put the lowest address there.
		at := i
		if !f.fifo {
			at = count - 1 - i
		}
		f.put(base + uint64(at)*uint64(chunk))
	}
	return f
}

func (f *frames) len() uint32 { return f.tail - f.head }

// take returns a free frame; there must be one.
func (f *frames) take() uint64 {
	mask := uint32(len(f.slots) - 1)
	if f.fifo {
		f.head++
		return f.slots[(f.head-1)&mask]
	}
	f.tail--
	return f.slots[f.tail&mask]
}

// put returns a frame to the list; there are never more frames than slots.
func (f *frames) put(addr uint64) {
	f.slots[f.tail&uint32(len(f.slots)-1)] = addr
	f.tail++
}

func roundPow2(n int) int {
	p := 1
	for p < n {
		p <<= 1
	}
	return p
}
