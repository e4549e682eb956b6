// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// TaskTime is a thread's time on a CPU as the scheduler has it (/proc/PID/task/TID/schedstat). It includes softirqs
// that interrupted the thread and lacks those that ran in the idle task, so it is the fall-back of the BPF meter.
type TaskTime struct {
	RunNs     uint64 // on a CPU
	WaitNs    uint64 // runnable, waiting for one
	Timeslice uint64 // times it got a CPU
}

// TaskTimes reads all threads of a process, by thread id; a kernel thread is a process of one. Threads that end while
// being read are left out. A kernel without schedstats gives an error.
func TaskTimes(pid int) (map[int]TaskTime, error) {
	threads, err := procfs.AllThreads(pid)
	if err != nil {
		return nil, fmt.Errorf("list threads of %d: %w", pid, err)
	}
	m := make(map[int]TaskTime, len(threads))
	for _, t := range threads {
		s, err := t.Schedstat()
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read schedstat of thread %d: %w", t.PID, err)
		}
		m[t.PID] = TaskTime{RunNs: s.RunningNanoseconds, WaitNs: s.WaitingNanoseconds, Timeslice: s.RunTimeslices}
	}
	if len(m) == 0 {
		return nil, fmt.Errorf("read schedstat of %d: no thread has one", pid)
	}
	return m, nil
}

// Delta is the time between two readings of the same thread; a field that went back is 0.
func (after TaskTime) Delta(before TaskTime) TaskTime {
	sub := func(a, b uint64) uint64 { return a - min(a, b) }
	return TaskTime{RunNs: sub(after.RunNs, before.RunNs), WaitNs: sub(after.WaitNs, before.WaitNs),
		Timeslice: sub(after.Timeslice, before.Timeslice)}
}
