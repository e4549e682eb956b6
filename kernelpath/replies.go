// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// replies is the sending side of a responder.
type replies struct {
	lent  [][]byte       // what the last Receive lent
	poll  [1]unix.PollFd // waits for room
	limit unix.Timespec

	calls, full, refused, interrupts, icmp uint64
}

func newReplies(fd int) replies {
	return replies{poll: [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}}
}

// roomWait is how long a full send buffer is waited for; a device that takes longer for one datagram is stuck.
const roomWait = 10 * time.Millisecond

// until calls send until it succeeds, or the kernel refuses: false then. An error is one that no later call could cure.
func (r *replies) until(send func() unix.Errno) (bool, error) {
	waited, echoes := false, 0
	for {
		errno := send()
		r.calls++
		switch {
		case errno == 0:
			return true, nil
		case errno == unix.EINTR:
			r.interrupts++
		case errno == unix.EAGAIN && !waited:
			r.full++
			waited = true
			r.limit = unix.NsecToTimespec(roomWait.Nanoseconds())
			waitPoll(r.poll[:], &r.limit)
		case errno == unix.EAGAIN || errno == unix.ENOBUFS:
			r.refused++
			return false, nil
		case icmpError(errno) && echoes < 2: // of an earlier datagram, told once; this one was not sent
			r.icmp++
			echoes++
		case icmpError(errno): // again and again: there is no way to the asker
			r.refused++
			return false, nil
		case errno == unix.EPERM: // a netfilter rule
			r.refused++
			return false, nil
		default:
			return false, fmt.Errorf("send: %w", errno)
		}
	}
}

// addTo adds the witnesses by their names.
func (r *replies) addTo(m map[string]uint64, call string) map[string]uint64 {
	m["syscalls."+call] = r.calls
	m["syscalls.send_full"] = r.full
	m["syscalls.send_interrupted"] = r.interrupts
	m["syscalls.send_icmp_errors"] = r.icmp
	m["send.refused"] = r.refused
	return m
}
