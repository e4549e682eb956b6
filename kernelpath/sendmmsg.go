// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// SendmmsgOptions are the options of a [Sendmmsg] sender.
type SendmmsgOptions struct {
	SendSocket
	// GSO hands datagrams of one length to the kernel as one message, which it cuts again (UDP_SEGMENT, Linux 4.18).
	GSO bool
}

// Limits of one UDP_SEGMENT message: UDP_MAX_SEGMENTS (64 up to Linux 6.0, linux/udp.h), and what a datagram may hold.
const (
	maxSegments     = 64
	maxSegmentBytes = 65000
)

// Sendmmsg sends batches of datagrams with one system call: sendmmsg(2) on connected sockets.
type Sendmmsg struct {
	senders
	gso      bool
	messages []unix.Mmsghdr
	vectors  []unix.Iovec
	control  [][]byte // with GSO, one UDP_SEGMENT control message each
	parts    []int    // with GSO, datagrams in each message
}

// OpenSendmmsg opens the sockets in the network namespace of the calling thread.
func OpenSendmmsg(o SendmmsgOptions) (*Sendmmsg, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	u, err := openSenders(o.SendSocket, true)
	if err != nil {
		return nil, err
	}
	s := &Sendmmsg{senders: *u, gso: o.GSO}
	if o.GSO {
		// Setting the option once shows whether the kernel has it; each message then says its own size.
		for _, fd := range s.fds {
			if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, 0); err != nil {
				_ = s.Close()
				return nil, explain("set UDP_SEGMENT (Linux 4.18)", err)
			}
		}
	}
	s.prepare()
	return s, nil
}

// prepare builds the message vector once.
func (s *Sendmmsg) prepare() {
	n := s.o.Batch
	s.messages = make([]unix.Mmsghdr, n)
	s.vectors = make([]unix.Iovec, n)
	s.parts = make([]int, n)
	for i := range n {
		s.messages[i].Hdr.Iov = &s.vectors[i]
		s.messages[i].Hdr.SetIovlen(1)
	}
	if !s.gso {
		return
	}
	s.control = slots(n, unix.CmsgSpace(2))
	for _, c := range s.control {
		segmentMessage(c)
	}
}

// Submit sends b in order from the flow's socket, and returns how many datagrams the kernel accepted. Fewer than len(b)
// without an error means that there was no room for as long as the timeout, or that a signal came.
func (s *Sendmmsg) Submit(b [][]byte, flow int) (int, error) {
	if s.closed {
		return 0, ErrClosed
	}
	if len(b) > len(s.messages) {
		b = b[:len(s.messages)]
	}
	if len(b) == 0 {
		return 0, nil
	}
	for i, p := range b {
		if len(p) > 0 {
			s.vectors[i].Base = &p[0]
		}
		s.vectors[i].SetLen(len(p))
	}
	messages := len(b)
	if s.gso {
		messages = s.group(b)
	}
	done, sent := 0, 0
	for done < messages {
		s.count.calls++
		n, e := nowSendmmsg(s.fds[flow], s.messages[done:messages])
		if e != 0 {
			if s.count.transient(e) {
				return sent, nil
			}
			return sent, fmt.Errorf("sendmmsg: %w", e)
		}
		for _, m := range s.messages[done : done+n] {
			s.count.bytes += uint64(m.Len)
		}
		k := s.accepted(done, n)
		s.count.packets += uint64(k)
		sent += k
		done += n
	}
	return sent, nil
}

// accepted is the number of datagrams in n messages from first on.
func (s *Sendmmsg) accepted(first, n int) int {
	if !s.gso {
		return n
	}
	sum := 0
	for _, k := range s.parts[first : first+n] {
		sum += k
	}
	return sum
}

// group makes messages of neighbouring datagrams of one length, the last of which may be shorter (udp(7), UDP_SEGMENT), and
// returns how many.
func (s *Sendmmsg) group(b [][]byte) int {
	n := 0
	for i := 0; i < len(b); n++ {
		size, bytes, k := len(b[i]), len(b[i]), 1
		for i+k < len(b) && k < maxSegments && len(b[i+k]) <= size && bytes+len(b[i+k]) <= maxSegmentBytes {
			bytes += len(b[i+k])
			k++
			if len(b[i+k-1]) < size {
				break
			}
		}
		h := &s.messages[n].Hdr
		h.Iov = &s.vectors[i]
		h.SetIovlen(k)
		h.Control, h.Controllen = nil, 0
		if k > 1 {
			c := s.control[n]
			binary.NativeEndian.PutUint16(c[unix.CmsgLen(0):], uint16(size))
			h.Control = &c[0]
			h.SetControllen(unix.CmsgSpace(2))
		}
		s.parts[n] = k
		i += k
	}
	return n
}

// Counters returns what was sent and which errors came, by their ledger names.
func (s *Sendmmsg) Counters() map[string]uint64 { return s.count.counters("sendmmsg") }

// Effective returns what was obtained.
func (s *Sendmmsg) Effective() Effective {
	e := s.effective("sendmmsg", s.o.Batch)
	e.GSO = s.gso
	return e
}
