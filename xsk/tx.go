// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// txRing takes frames to the kernel (xskq_cons_peek_desc in __xsk_generic_xmit, or the driver in zero-copy mode).
type txRing struct {
	producer
	slots []Desc
}

// txSide is all that the sending goroutine writes.
type txSide struct {
	ring        txRing
	done        completionRing
	free        frames
	base, bytes uint64 // the TX frames' part of the UMEM
	count       uint32 // TX frames
	reserved    uint32 // frames lent by Reserve
	outstanding uint32 // frames submitted and not completed
	kick        bool   // the TX ring's wake-up flag counts
	zeroCopy    bool   // one kick is enough: the driver goes on by itself
	budget      uint32 // frames one kick sends in copy mode
	n           TxCounters
}

// Reserve lends up to len(descs) free frames, and returns how many. Each descriptor has the address of its frame and no length. Write the frame
// through Buffer, set Len, then Submit; or Cancel.
func (s *Socket) Reserve(descs []Desc) int {
	t := &s.tx
	want := uint32(len(descs))
	if t.free.len() < want {
		s.Complete()
	}
	n := min(want, t.free.len())
	for i := range descs[:n] {
		descs[i] = Desc{Addr: t.free.take()}
	}
	t.reserved += n
	if n < want {
		t.n.Short++
	}
	return int(n)
}

// Buffer returns the memory from the descriptor's address to the end of its chunk: the room to write a frame in.
func (s *Socket) Buffer(d Desc) []byte {
	end := d.Addr&s.chunkMask + s.chunk
	return s.mem[d.Addr:end:end]
}

// Submit puts descriptors of reserved frames on the TX ring, in order, and returns how many it took: all, unless there are more than Reserve has lent.
// The frames are the kernel's from here on. Nothing moves before a Kick (in copy mode always; in zero-copy mode when the driver sleeps).
// A packet in several descriptors must be submitted whole.
func (s *Socket) Submit(descs []Desc) int {
	t := &s.tx
	n := min(uint32(len(descs)), t.reserved)
	n = t.ring.room(n)
	if n == 0 {
		return 0
	}
	a, b := split(t.ring.slots, t.ring.head, n)
	copy(a, descs)
	copy(b, descs[len(a):])
	t.ring.publish(n)
	t.reserved -= n
	t.outstanding += n
	t.n.Submitted += uint64(n)
	return int(n)
}

// Cancel returns reserved frames unsent, and returns how many it took.
func (s *Socket) Cancel(descs []Desc) int {
	t := &s.tx
	n := min(uint32(len(descs)), t.reserved, t.count-t.free.len())
	for _, d := range descs[:n] {
		t.free.put(d.Addr & s.chunkMask)
	}
	t.reserved -= n
	return int(n)
}

// Outstanding returns how many descriptors were submitted and are not completed yet.
func (s *Socket) Outstanding() int { return int(s.tx.outstanding) }

// Pending returns how many descriptors are on the TX ring, not consumed by the kernel as far as it says.
func (s *Socket) Pending() int { return int(s.tx.ring.pending()) }

// extraKicks bounds how often Kick calls again without anything to show for it: an EAGAIN for want of socket buffer or device room passes with time, not with calls.
const extraKicks = 4

// Kick asks the kernel to send what was submitted. In copy mode the sending happens inside this call, Mode.Obtained.TxBudget frames to a system call,
// so Kick calls again until the ring is empty or nothing moves any more; then frames are left over (Pending) and a later Kick sends them. It returns
// an error only if kicking again is in vain: ErrNetDown, ErrUnbound, ErrClosed or an errno unknown to this package.
func (s *Socket) Kick() error {
	t := &s.tx
	if s.fd < 0 {
		return fmt.Errorf("send: %w", ErrClosed)
	}
	pending := t.ring.pending()
	// A zero-copy driver may need waking to complete what it has taken already.
	if pending == 0 && !(t.zeroCopy && t.outstanding > 0) {
		return nil
	}
	if t.kick && !t.ring.wakeup() {
		t.n.KicksSpared++
		return nil
	}
	left := pending/t.budget + extraKicks
	for {
		t.n.Kicks++
		errno := sysSend(s.fd)
		switch errno {
		case 0:
			if t.zeroCopy {
				return nil
			}
		case unix.EINTR:
			t.n.EINTR++
			continue
		case unix.EAGAIN: // budget spent, or no room in the socket buffer, the completion ring or the device
			t.n.EAGAIN++
		case unix.EBUSY: // the driver dropped a frame; its descriptor is consumed and completed
			t.n.EBUSY++
			left++
		case unix.ENOBUFS: // no memory for an skb just now
			t.n.ENOBUFS++
		case unix.EINVAL:
			t.n.Failed++
			return fmt.Errorf("send: %w (igb, in zero-copy mode, sends only with an XDP program attached)", errno)
		default:
			t.n.Failed++
			return socketError("send", errno)
		}
		if left--; left == 0 || t.ring.pending() == 0 {
			return nil
		}
	}
}

// Flush kicks and completes until nothing is outstanding. If frames still are after timeout it returns ErrStalled with their number.
func (s *Socket) Flush(timeout time.Duration) error {
	t := &s.tx
	deadline := time.Now().Add(timeout)
	for {
		s.Complete()
		if t.outstanding == 0 {
			return nil
		}
		if err := s.Kick(); err != nil {
			return fmt.Errorf("flush, %d frames outstanding: %w", t.outstanding, err)
		}
		if s.Complete() > 0 {
			continue
		}
		if !time.Now().Before(deadline) {
			return fmt.Errorf("flush: %d %w for %v", t.outstanding, ErrStalled, timeout)
		}
		time.Sleep(20 * time.Microsecond) // let the other side's softirq run
	}
}
