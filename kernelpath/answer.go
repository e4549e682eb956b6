// SPDX-License-Identifier: Apache-2.0

package kernelpath

import "golang.org/x/sys/unix"

// AnswerBytes is the room for one answer: what fits a frame on Ethernet.
const AnswerBytes = 1472

// EpollAnswer is [EpollEcho] with answers that are messages of their own.
type EpollAnswer struct {
	*EpollEcho
	rooms [][]byte
}

// OpenEpollAnswer opens the socket in the network namespace of the calling thread.
func OpenEpollAnswer(o EpollOptions) (*EpollAnswer, error) {
	e, err := OpenEpollEcho(o)
	if err != nil {
		return nil, err
	}
	return &EpollAnswer{EpollEcho: e, rooms: slots(e.o.Batch, AnswerBytes)}, nil
}

// Room is the memory for the k-th answer to the last batch, until Answer.
func (r *EpollAnswer) Room(k int) []byte { return r.rooms[k] }

// Answer sends the first lengths[k] bytes of Room(k) to where datagram which[k] of the last batch came from, and returns
// how many went out. It deals with refusals and a full buffer as Reply does.
func (r *EpollAnswer) Answer(which, lengths []int) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	sent := 0
	for k, i := range which {
		ok, err := r.replies.until(func() unix.Errno { return nowReplyto(r.s.fd, r.rooms[k][:lengths[k]], &r.from[i]) })
		if err != nil {
			return sent, err
		}
		if ok {
			sent++
		}
	}
	return sent, nil
}

// RecvmmsgAnswer is [RecvmmsgEcho] with answers that are messages of their own.
type RecvmmsgAnswer struct {
	*RecvmmsgEcho
	rooms [][]byte
}

// OpenRecvmmsgAnswer opens the socket in the network namespace of the calling thread. GRO is not for it.
func OpenRecvmmsgAnswer(o RecvmmsgOptions) (*RecvmmsgAnswer, error) {
	e, err := OpenRecvmmsgEcho(o)
	if err != nil {
		return nil, err
	}
	return &RecvmmsgAnswer{RecvmmsgEcho: e, rooms: slots(e.o.Batch, AnswerBytes)}, nil
}

// Room is as EpollAnswer.Room.
func (r *RecvmmsgAnswer) Room(k int) []byte { return r.rooms[k] }

// Answer is as EpollAnswer.Answer, with one system call for all as a rule.
func (r *RecvmmsgAnswer) Answer(which, lengths []int) (int, error) {
	if r.closed {
		return 0, ErrClosed
	}
	for k, i := range which {
		m := &r.messages[r.base+i]
		r.out[k].Hdr.Name, r.out[k].Hdr.Namelen = m.Hdr.Name, m.Hdr.Namelen
		r.RecvmmsgEcho.vectors[k].Base = &r.rooms[k][0]
		r.RecvmmsgEcho.vectors[k].SetLen(lengths[k])
	}
	return r.send(len(which))
}
