// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Write sends datagrams with a system call each: write(2) on a connected socket, which is S1's sender, or sendto(2) with
// the address in every call.
type Write struct {
	senders
	to   []byte // raw address of Remote; nil on connected sockets
	name string
}

// OpenWrite opens connected sockets and sends with write(2), in the network namespace of the calling thread.
func OpenWrite(o SendSocket) (*Write, error) { return openWrite(o, "write") }

// OpenSendto opens unconnected sockets and sends with sendto(2).
func OpenSendto(o SendSocket) (*Write, error) { return openWrite(o, "sendto") }

func openWrite(o SendSocket, name string) (*Write, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	s, err := openSenders(o, name == "write")
	if err != nil {
		return nil, err
	}
	w := &Write{senders: *s, name: name}
	if name == "sendto" {
		w.to = rawAddress(o.Remote)
	}
	return w, nil
}

// Submit sends b in order from the flow's socket, and returns how many datagrams the kernel accepted. Fewer than len(b)
// without an error means that there was no room for as long as the timeout, or that a signal came.
func (s *Write) Submit(b [][]byte, flow int) (int, error) {
	if s.closed {
		return 0, ErrClosed
	}
	fd := s.fds[flow]
	for i, p := range b {
		var e unix.Errno
		s.count.calls++
		if s.to == nil {
			_, e = nowWrite(fd, p)
		} else {
			_, e = nowSendto(fd, p, s.to)
		}
		if e != 0 {
			if s.count.transient(e) {
				return i, nil
			}
			return i, fmt.Errorf("%s: %w", s.name, e)
		}
		s.count.packets++
		s.count.bytes += uint64(len(p))
	}
	return len(b), nil
}

// Counters returns what was sent and which errors came, by their ledger names.
func (s *Write) Counters() map[string]uint64 { return s.count.counters(s.name) }

// Effective returns what was obtained.
func (s *Write) Effective() Effective { return s.effective(s.name, 1) }
