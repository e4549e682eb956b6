// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// Socket is an AF_XDP socket bound to one queue of a device. The package comment says which goroutine may call what.
type Socket struct {
	// Written by Open and Close only.
	mem       []byte // the UMEM
	chunkMask uint64 // clears the offset inside a chunk
	chunk     uint64 // bytes
	fd        int    // -1 when closed
	wake      int    // eventfd

	_  [64]byte // the two sides may be on two cores: keep their cache lines apart
	rx rxSide
	_  [64]byte
	tx txSide
	_  [64]byte

	woken   atomic.Bool
	polled  [2]unix.PollFd // of Wait
	wakeBuf [8]byte        // of Wait

	mu     sync.Mutex
	closed bool
	mode   Mode
	maps   [][]byte // the rings
	umem   *UMEM
	own    bool // the UMEM is this socket's alone
	member *member
}

// FD returns the file descriptor, to be put into an XSKMAP. It stays the socket's: do not close it. -1 after Close.
func (s *Socket) FD() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.fd
}

// Mode returns what was asked for and what the kernel gave.
func (s *Socket) Mode() Mode { return s.mode }

// Close gives up the queue and the memory. The other goroutines must have stopped, see the package comment. Closing twice is no error.
//
// The order matters: a ring that is still mapped keeps the socket, and so the queue, alive after its descriptor is closed. The kernel releases the queue
// some milliseconds later even so (xp_release_deferred); Open retries.
func (s *Socket) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.rx.ring, s.rx.fill, s.rx.held = rxRing{consumer: deadConsumer()}, fillRing{producer: deadProducer()}, 0
	s.tx.ring, s.tx.done, s.tx.free = txRing{producer: deadProducer()}, completionRing{consumer: deadConsumer()}, frames{}
	s.tx.reserved, s.tx.outstanding = 0, 0
	s.mem = nil
	fd := s.fd
	s.fd = -1
	return s.teardown(fd)
}

// teardown frees whatever Open has got so far.
func (s *Socket) teardown(fd int) error {
	var errs []error
	for _, m := range s.maps {
		if err := unix.Munmap(m); err != nil {
			errs = append(errs, fmt.Errorf("unmap ring: %w", err))
		}
	}
	s.maps = nil
	if s.umem != nil {
		s.umem.mu.Lock() // no other socket may begin to share this descriptor while it goes
		s.member.fd = -1
	}
	if fd >= 0 {
		if err := unix.Close(fd); err != nil {
			errs = append(errs, fmt.Errorf("close socket: %w", err))
		}
	}
	if s.umem != nil {
		s.umem.mu.Unlock()
		s.umem.giveBack(s.member)
		if s.own {
			errs = append(errs, s.umem.Close())
		}
	}
	if s.wake >= 0 {
		if err := unix.Close(s.wake); err != nil {
			errs = append(errs, fmt.Errorf("close eventfd: %w", err))
		}
		s.wake = -1
	}
	return errors.Join(errs...)
}

// deadShared stands for the shared words of a ring that is no more, so that a late call finds it empty rather than unmapped.
func deadShared() shared { return shared{new(atomic.Uint32), new(atomic.Uint32), new(atomic.Uint32)} }

func deadProducer() producer { return newProducer(deadShared(), 0) }

func deadConsumer() consumer { return newConsumer(deadShared()) }
