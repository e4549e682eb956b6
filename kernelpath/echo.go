// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// EpollEcho is the textbook responder: [Epoll] with recvfrom in place of read, and one sendto for each answer. With Batch 1
// each datagram is answered before the next is read.
type EpollEcho struct {
	*Epoll
	replies replies
}

// OpenEpollEcho opens the socket in the network namespace of the calling thread.
func OpenEpollEcho(o EpollOptions) (*EpollEcho, error) {
	e, err := OpenEpoll(o)
	if err != nil {
		return nil, err
	}
	e.from = make([]peerName, e.o.Batch)
	return &EpollEcho{Epoll: e, replies: newReplies(e.s.fd)}, nil
}

// Receive is that of Epoll; what it lends can be answered until the next call.
func (r *EpollEcho) Receive(b [][]byte) (int, error) {
	n, err := r.Epoll.Receive(b)
	r.replies.lent = b[:n]
	return n, err
}

// Reply sends the datagrams at the given places of the last batch back to their senders, and returns how many went out. An
// answer that the kernel refuses is counted and left; a full send buffer is waited for, 10 ms at most in all.
func (r *EpollEcho) Reply(which []int) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	sent := 0
	for _, i := range which {
		ok, err := r.replies.until(func() unix.Errno { return nowReplyto(r.s.fd, r.replies.lent[i], &r.from[i]) })
		if err != nil {
			return sent, err
		}
		if ok {
			sent++
		}
	}
	return sent, nil
}

// Counters adds the sending side to those of Epoll.
func (r *EpollEcho) Counters() map[string]uint64 {
	return r.replies.addTo(r.Epoll.Counters(), "sendto")
}

// RecvmmsgEcho answers in batches: recvmmsg takes what is there, sendmmsg sends it back.
type RecvmmsgEcho struct {
	*Recvmmsg
	replies replies
	base    int // the message that is lent first
	out     []unix.Mmsghdr
	vectors []unix.Iovec
}

// OpenRecvmmsgEcho opens the socket in the network namespace of the calling thread. GRO is not for it: an aggregate could not
// be answered piece by piece with one address each.
func OpenRecvmmsgEcho(o RecvmmsgOptions) (*RecvmmsgEcho, error) {
	if o.GRO {
		return nil, fmt.Errorf("options: GRO: a responder takes datagrams one by one")
	}
	r, err := OpenRecvmmsg(o)
	if err != nil {
		return nil, err
	}
	r.from = make([]peerName, r.o.Batch)
	r.prepare()
	e := &RecvmmsgEcho{Recvmmsg: r, replies: newReplies(r.s.fd), out: make([]unix.Mmsghdr, r.o.Batch), vectors: make([]unix.Iovec, r.o.Batch)}
	for i := range e.out {
		e.out[i].Hdr.Iov = &e.vectors[i]
		e.out[i].Hdr.SetIovlen(1)
	}
	return e, nil
}

// Receive is that of Recvmmsg; what it lends can be answered until the next call.
func (r *RecvmmsgEcho) Receive(b [][]byte) (int, error) {
	n, err := r.Recvmmsg.Receive(b)
	r.base = r.next - n
	return n, err
}

// Reply is as EpollEcho.Reply, with one system call for all as a rule.
func (r *RecvmmsgEcho) Reply(which []int) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	for j, i := range which {
		m := &r.messages[r.base+i]
		r.out[j].Hdr.Name, r.out[j].Hdr.Namelen = m.Hdr.Name, m.Hdr.Namelen
		r.vectors[j].Base = r.Recvmmsg.vectors[r.base+i].Base
		r.vectors[j].SetLen(int(m.Len))
	}
	return r.send(len(which))
}

// send sends the first n messages of out.
func (r *RecvmmsgEcho) send(n int) (sent int, err error) {
	for next := 0; next < n; {
		k := 0
		ok, err := r.replies.until(func() (errno unix.Errno) {
			k, errno = nowReplymmsg(r.s.fd, r.out[next:n])
			return errno
		})
		if err != nil {
			return sent, err
		}
		if !ok { // the first of them was refused
			next++
			continue
		}
		sent += k
		next += k
	}
	return sent, nil
}

// Counters adds the sending side to those of Recvmmsg.
func (r *RecvmmsgEcho) Counters() map[string]uint64 {
	return r.replies.addTo(r.Recvmmsg.Counters(), "sendmmsg")
}
