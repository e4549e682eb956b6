// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// makeRings sets the sizes of the rings and maps them. The kernel tells where in a mapping the indices and slots are (XDP_MMAP_OFFSETS), and the
// offset of the mapping says which ring it is.
func (s *Socket) makeRings(o Options) error {
	for _, r := range []struct {
		name      string
		opt, size int
	}{
		{"fill", unix.XDP_UMEM_FILL_RING, o.FillRing},
		{"completion", unix.XDP_UMEM_COMPLETION_RING, o.CompletionRing},
		{"RX", unix.XDP_RX_RING, o.RxRing},
		{"TX", unix.XDP_TX_RING, o.TxRing},
	} {
		if r.size == None {
			continue
		}
		if err := unix.SetsockoptInt(s.fd, unix.SOL_XDP, r.opt, r.size); err != nil {
			return fmt.Errorf("make %s ring of %d: %w", r.name, r.size, err)
		}
	}
	off, err := sysOffsets(s.fd)
	if err != nil {
		return fmt.Errorf("read ring offsets: %w", err)
	}
	var sh shared
	if s.rx.fill.slots, sh, err = mapRing[uint64](s, "fill", unix.XDP_UMEM_PGOFF_FILL_RING, off.Fr, o.FillRing); err != nil {
		return err
	}
	s.rx.fill.producer = newProducer(sh, uint32(o.FillRing))
	if s.tx.done.slots, sh, err = mapRing[uint64](s, "completion", unix.XDP_UMEM_PGOFF_COMPLETION_RING, off.Cr, o.CompletionRing); err != nil {
		return err
	}
	s.tx.done.consumer = newConsumer(sh)
	s.rx.ring.consumer = deadConsumer()
	if o.RxRing != None {
		if s.rx.ring.slots, sh, err = mapRing[Desc](s, "RX", unix.XDP_PGOFF_RX_RING, off.Rx, o.RxRing); err != nil {
			return err
		}
		s.rx.ring.consumer = newConsumer(sh)
	}
	s.tx.ring.producer = deadProducer()
	if o.TxRing != None {
		if s.tx.ring.slots, sh, err = mapRing[Desc](s, "TX", unix.XDP_PGOFF_TX_RING, off.Tx, o.TxRing); err != nil {
			return err
		}
		s.tx.ring.producer = newProducer(sh, uint32(o.TxRing))
	}
	return nil
}

// mapRing maps one ring; the mapping is noted in s.maps for Close.
func mapRing[T any](s *Socket, name string, pgoff int64, off unix.XDPRingOffset, size int) ([]T, shared, error) {
	var slot T
	mem, err := unix.Mmap(s.fd, pgoff, int(off.Desc)+size*int(unsafe.Sizeof(slot)), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_POPULATE)
	if err != nil {
		return nil, shared{}, fmt.Errorf("map %s ring: %w", name, err)
	}
	s.maps = append(s.maps, mem)
	word := func(at uint64) *atomic.Uint32 { return (*atomic.Uint32)(unsafe.Pointer(&mem[at])) }
	return unsafe.Slice((*T)(unsafe.Pointer(&mem[off.Desc])), size), shared{word(off.Producer), word(off.Consumer), word(off.Flags)}, nil
}
