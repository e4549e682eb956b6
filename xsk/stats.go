// SPDX-License-Identifier: Apache-2.0

package xsk

import "fmt"

// Stats are the kernel's counters of one socket since it was bound (struct xdp_statistics, linux/if_xdp.h). They overlap: see each field, and never add them all up.
type Stats struct {
	// RxDropped counts frames dropped in copy mode for want of a free frame, or because they do not fit one (chunk - 256 B of XDP headroom - Options.Headroom).
	RxDropped uint64
	// RxInvalidDescs is meant to count fill ring addresses outside the UMEM. Linux 6.18 skips those, losing no packet, and reports 0: it counts on the fill
	// ring and reads the RX ring's counter.
	RxInvalidDescs uint64
	// TxInvalidDescs counts TX descriptors with length 0, too long, outside the UMEM or across a chunk. They are completed all the same.
	TxInvalidDescs uint64
	// RxRingFull counts frames dropped because the reader left the RX ring full. Not part of RxDropped.
	RxRingFull uint64
	// RxFillRingEmptyDescs counts failed attempts to get a frame from the fill ring, not packets. In copy mode each of them is a packet already in RxDropped.
	RxFillRingEmptyDescs uint64
	// TxRingEmptyDescs counts looks at an empty TX ring: in copy mode each sendto that sent all there was, in zero-copy mode each try of the driver. Not a loss.
	TxRingEmptyDescs uint64
}

// Lost returns the packets that reached the socket and were lost there: RxDropped + RxRingFull. In copy mode that is exact; in zero-copy mode a
// want of frames shows as a drop of the device, not here.
func (s Stats) Lost() uint64 { return s.RxDropped + s.RxRingFull }

// Stats reads the kernel's counters. Kernels before 5.9 know only the first three fields and count RxRingFull inside RxDropped.
func (s *Socket) Stats() (Stats, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return Stats{}, fmt.Errorf("read statistics: %w", ErrClosed)
	}
	k, err := sysStatistics(s.fd)
	if err != nil {
		return Stats{}, fmt.Errorf("read statistics: %w", err)
	}
	return Stats{k.Rx_dropped, k.Rx_invalid_descs, k.Tx_invalid_descs, k.Rx_ring_full, k.Rx_fill_ring_empty_descs, k.Tx_ring_empty_descs}, nil
}

// RxCounters are counted by the receiving goroutine, in 64 bits: ring indices wrap within minutes.
type RxCounters struct {
	Received   uint64 // descriptors lent by Receive
	Released   uint64 // descriptors given back by Release
	Refused    uint64 // descriptors Release did not take: more than were lent
	Batches    uint64 // calls of Receive that found something
	EmptyPolls uint64 // calls of Receive that found nothing at first
	Kicks      uint64 // recvfrom calls, to wake the driver or to busy-poll
	KickErrors uint64 // of those, failed with anything but EAGAIN
	Waits      uint64 // calls of Wait that found nothing at first
	Wakeups    uint64 // calls of Wait ended by Wake
	Timeouts   uint64 // calls of Wait that ran out of time
	EINTR      uint64 // system calls of Wait interrupted by a signal
}

// TxCounters are counted by the sending goroutine.
type TxCounters struct {
	Submitted   uint64 // descriptors put on the TX ring
	Completed   uint64 // descriptors that came back: not the same as transmitted
	Foreign     uint64 // completions of addresses that are no TX frame of this socket, or were free already
	Short       uint64 // calls of Reserve that had fewer frames than asked for: back-pressure, not loss
	Kicks       uint64 // sendto calls
	KicksSpared uint64 // calls of Kick without a system call, because the driver was awake
	EAGAIN      uint64 // kicks to be repeated: budget spent, or no room
	EBUSY       uint64 // kicks in which the driver dropped a frame: consumed and completed, not sent
	ENOBUFS     uint64 // kicks without memory for an skb
	EINTR       uint64 // kicks interrupted by a signal
	Failed      uint64 // kicks that Kick returned as an error
}

// RxCounters returns a copy. Call it from the receiving goroutine, or after that has stopped.
func (s *Socket) RxCounters() RxCounters { return s.rx.n }

// TxCounters returns a copy. Call it from the sending goroutine, or after that has stopped.
func (s *Socket) TxCounters() TxCounters { return s.tx.n }
