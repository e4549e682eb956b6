// SPDX-License-Identifier: Apache-2.0

package xsk

// fillRing gives empty frames to the kernel to receive into. The kernel consumes it as each frame arrives (xsk_buff_alloc in copy mode) or as the driver
// refills its own ring (zero-copy).
type fillRing struct {
	producer
	slots []uint64 // UMEM addresses of chunks
}

// release publishes the chunks of descs. mask clears the offset inside a chunk. The caller has made sure of the room.
func (f *fillRing) release(descs []Desc, mask uint64) {
	a, b := split(f.slots, f.head, uint32(len(descs)))
	for i := range a {
		a[i] = descs[i].Addr & mask
	}
	descs = descs[len(a):]
	for i := range b {
		b[i] = descs[i].Addr & mask
	}
	f.publish(uint32(len(a) + len(b)))
}

// populate publishes count chunks of the given size from address base on.
func (f *fillRing) populate(base uint64, count, chunk int) {
	a, b := split(f.slots, f.head, uint32(count))
	for _, part := range [][]uint64{a, b} {
		for i := range part {
			part[i] = base
			base += uint64(chunk)
		}
	}
	f.publish(uint32(count))
}
