// SPDX-License-Identifier: Apache-2.0

package rig

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// NAPIOptions places a side's receive processing. The zero value means inline: in softirq, on whichever CPU the frames
// arrive (on veth the sending one).
type NAPIOptions struct {
	Threaded bool
	CPUs     []int  // of the NAPI threads: queue i runs on CPUs[i mod len]; required when threaded
	Policy   Policy // of the NAPI threads; "" means Other
	Priority int    // for FIFO, 1..99; 0 means DefaultPriority
}

func (o *NAPIOptions) check() error {
	if !o.Threaded {
		return nil
	}
	if o.Policy == "" {
		o.Policy = Other
	}
	if o.Policy == FIFO && o.Priority == 0 {
		o.Priority = DefaultPriority
	}
	switch {
	case len(o.CPUs) == 0:
		return errors.New("threaded NAPI: no CPUs given")
	case o.Policy != Other && o.Policy != FIFO:
		return fmt.Errorf("threaded NAPI: scheduling policy %q: want %q or %q", o.Policy, Other, FIFO)
	case o.Policy == FIFO && (o.Priority < 1 || o.Priority > 99):
		return fmt.Errorf("threaded NAPI: priority %d: want 1 to 99", o.Priority)
	}
	return nil
}

// NAPIThread is one NAPI instance as the kernel has it now.
type NAPIThread struct {
	ID       int    // NAPI id, as SO_INCOMING_NAPI_ID and the netdev family name it
	Queue    int    // receive queue
	PID      int    // of the kernel thread napi/IF-ID; 0 when not threaded, and the rest is then empty
	CPUs     []int  // it may run on, ascending
	Policy   Policy // scheduling policy
	Priority int    // SCHED_FIFO priority
}

// SetNAPI switches a side's NAPI between threads and softirq, and pins and schedules the threads. A device that has no
// NAPI (a veth end with neither GRO nor XDP) is an error, since there would be nothing to place.
func (s *Side) SetNAPI(o NAPIOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	return s.Do(func() error {
		value := "0"
		if o.Threaded {
			value = "1"
		}
		if err := writeNetSysfs(s.Name, "threaded", value); err != nil {
			return fmt.Errorf("set threaded NAPI: %w", err)
		}
		threads, err := s.waitNAPI(o.Threaded)
		if err != nil || !o.Threaded {
			return err
		}
		for _, t := range threads {
			if err := pin(t.PID, []int{o.CPUs[t.Queue%len(o.CPUs)]}); err != nil {
				return fmt.Errorf("place NAPI of %s queue %d: %w", s.Name, t.Queue, err)
			}
			if err := setPolicy(t.PID, o.Policy, o.Priority); err != nil {
				return fmt.Errorf("place NAPI of %s queue %d: %w", s.Name, t.Queue, err)
			}
		}
		return nil
	})
}

// waitNAPI returns the NAPI instances once all have (or have no) thread. Since Linux 6.17 switching threads off returns
// before the thread has stopped.
func (s *Side) waitNAPI(threaded bool) ([]NAPIThread, error) {
	deadline := time.Now().Add(time.Second)
	for {
		threads, err := readNAPI(s.Name, s.Index)
		if err != nil {
			return nil, err
		}
		settled := len(threads) > 0
		for _, t := range threads {
			settled = settled && (t.PID != 0) == threaded
		}
		switch {
		case settled:
			return threads, nil
		case len(threads) == 0 && !threaded:
			return nil, nil // nothing runs, so nothing runs in a thread
		case time.Now().After(deadline):
			err := fmt.Errorf("NAPI of %s: %w", s.Name, notSettled(threads, threaded))
			if ns, _ := os.Readlink("/proc/self/ns/pid"); threaded && len(threads) > 0 && ns != firstPIDNamespace {
				err = hiddenThread("NAPI threads are", err)
			}
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
}

func notSettled(threads []NAPIThread, threaded bool) error {
	if len(threads) == 0 {
		return errors.New("the device has none (switch GRO on or attach XDP)")
	}
	n := 0
	for _, t := range threads {
		if t.PID != 0 {
			n++
		}
	}
	return fmt.Errorf("%d of %d instances have a thread a second after threaded was set to %t", n, len(threads), threaded)
}

// NAPI reads the side's NAPI instances back from the kernel, by queue.
func (s *Side) NAPI() ([]NAPIThread, error) {
	var threads []NAPIThread
	err := s.Do(func() error {
		var err error
		threads, err = readNAPI(s.Name, s.Index)
		return err
	})
	return threads, err
}

// VerifyNAPI compares what is with what was asked for and says every difference. Call it before each trial: NAPI
// threads end with the device's NAPI (GRO off, XDP attached or detached) and come back unpinned as SCHED_OTHER.
func (s *Side) VerifyNAPI(want NAPIOptions) error {
	if err := want.check(); err != nil {
		return err
	}
	threads, err := s.NAPI()
	if err != nil {
		return err
	}
	if want.Threaded && len(threads) == 0 {
		return fmt.Errorf("NAPI of %s: want it threaded, but the device has none (switch GRO on or attach XDP)", s.Name)
	}
	var errs []error
	for _, t := range threads {
		if d := want.differs(t); d != "" {
			errs = append(errs, fmt.Errorf("NAPI of %s queue %d: %s", s.Name, t.Queue, d))
		}
	}
	return errors.Join(errs...)
}

// differs says in words how a NAPI instance is not as wanted, or "".
func (o NAPIOptions) differs(t NAPIThread) string {
	if (t.PID != 0) != o.Threaded {
		if o.Threaded {
			return "runs in softirq, want a thread"
		}
		return fmt.Sprintf("runs in thread %d, want softirq", t.PID)
	}
	if !o.Threaded {
		return ""
	}
	var d []string
	if cpu := o.CPUs[t.Queue%len(o.CPUs)]; !sameCPUs(t.CPUs, []int{cpu}) {
		d = append(d, fmt.Sprintf("thread %d may run on CPUs %v, want %d", t.PID, t.CPUs, cpu))
	}
	if t.Policy != o.Policy || (o.Policy == FIFO && t.Priority != o.Priority) {
		d = append(d, fmt.Sprintf("thread %d is %s priority %d, want %s priority %d",
			t.PID, t.Policy, t.Priority, o.Policy, o.Priority))
	}
	return strings.Join(d, "; ")
}

// readNAPI lists the NAPI instances of a device in the calling thread's namespace, by queue.
func readNAPI(name string, ifindex int) ([]NAPIThread, error) {
	entries, err := netdevNAPIs(ifindex)
	queues := map[int]int{}
	if err == nil {
		queues, err = netdevQueueNAPIs(ifindex)
	}
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.EOPNOTSUPP) {
		entries, err = procNAPIs(name) // before Linux 6.8
	}
	if err != nil {
		return nil, err
	}
	device := true
	if v, err := readNetSysfs(name, "threaded"); err == nil {
		device = v != "0"
	}
	threads := make([]NAPIThread, 0, len(entries))
	for i, e := range byQueue(entries, queues) {
		t := NAPIThread{ID: e.id, Queue: i, PID: e.pid}
		if threaded := e.threaded; (threaded != nil && !*threaded) || (threaded == nil && !device) {
			t.PID = 0 // the thread is there and sleeps
		}
		if q, ok := queues[e.id]; ok {
			t.Queue = q
		}
		if t.PID != 0 {
			if err := isNAPIThread(t.PID); err != nil {
				return nil, err
			}
			if t.CPUs, err = affinity(t.PID); err != nil {
				return nil, err
			}
			if t.Policy, t.Priority, err = policy(t.PID); err != nil {
				return nil, err
			}
		}
		threads = append(threads, t)
	}
	return threads, nil
}

// isNAPIThread guards against pinning a stranger: the kernel tells a thread's id as the first PID namespace numbers it,
// and in a container that may be nobody, or somebody else.
func isNAPIThread(pid int) error {
	comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err == nil && strings.HasPrefix(string(comm), "napi/") {
		return nil
	}
	return hiddenThread(fmt.Sprintf("NAPI thread %d is", pid), err)
}

// firstPIDNamespace is what /proc/self/ns/pid is outside of containers: PROC_PID_INIT_INO in include/linux/proc_ns.h.
const firstPIDNamespace = "pid:[4026531836]"

func hiddenThread(which string, err error) error {
	return &Refusal{ID: "pid-namespace", What: which + " not to be seen from here: this process is in a PID namespace of its own",
		Cure: "run it outside, or the container with the host's PIDs (docker run --pid=host); --placement sender does without threads", Err: err}
}

// byQueue keeps the instances that serve a receive queue, in order. A driver that does not name its queues (veth) makes
// its NAPI instances in queue order, and ids only grow, so the order of ids is that of queues. A driver that does may
// have transmit-only instances besides, which are left out.
func byQueue(entries []napiEntry, queues map[int]int) []napiEntry {
	entries = slices.Clone(entries)
	if len(queues) > 0 {
		entries = slices.DeleteFunc(entries, func(e napiEntry) bool { _, ok := queues[e.id]; return !ok })
		slices.SortFunc(entries, func(a, b napiEntry) int { return cmp.Compare(queues[a.id], queues[b.id]) })
		return entries
	}
	slices.SortFunc(entries, func(a, b napiEntry) int { return cmp.Compare(a.id, b.id) })
	return entries
}

// procNAPIs finds the threads of a device by their names, napi/IF-ID. Interface names are unique per namespace only, so
// a name met twice is ambiguous and an error rather than a guess.
func procNAPIs(name string) ([]napiEntry, error) {
	dirs, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("list processes: %w", err)
	}
	var out []napiEntry
	for _, d := range dirs {
		pid, err := strconv.Atoi(d.Name())
		if err != nil {
			continue
		}
		comm, err := os.ReadFile("/proc/" + d.Name() + "/comm")
		if err != nil {
			continue // it ended meanwhile
		}
		if id, ok := napiComm(string(comm), name); ok {
			out = append(out, napiEntry{id: id, pid: pid})
		}
	}
	rx, _ := rxQueues(name)
	queues := len(rx)
	if queues > 0 && len(out) > queues {
		return nil, fmt.Errorf("%d threads are named napi/%s-*, but the device has %d queues: another namespace has one of this name",
			len(out), name, queues)
	}
	return out, nil
}

// napiComm takes the NAPI id from a thread's name. Names are cut at 15 characters (TASK_COMM_LEN): one that lost the
// end of its id is not matched.
func napiComm(comm, name string) (id int, ok bool) {
	comm = strings.TrimSuffix(comm, "\n")
	rest, ok := strings.CutPrefix(comm, "napi/"+name+"-")
	if !ok || len(comm) >= 15 {
		return 0, false
	}
	id, err := strconv.Atoi(rest)
	return id, err == nil && id > 0
}

// Deferral keeps a device's interrupts off while somebody polls it: after Irqs polls that found nothing the interrupt comes
// back, and Timeout after a poll the kernel polls by itself (napi_defer_hard_irqs and gro_flush_timeout, Linux 5.6; what
// busy-polling readers need, Documentation/networking/napi.rst). The zero value is a device's default: off.
type Deferral struct {
	Irqs    int
	Timeout time.Duration
}

// SetDeferral sets a side's deferral.
func (s *Side) SetDeferral(d Deferral) error {
	return s.Do(func() error {
		for _, f := range []struct {
			name  string
			value int64
		}{{"napi_defer_hard_irqs", int64(d.Irqs)}, {"gro_flush_timeout", d.Timeout.Nanoseconds()}} {
			if err := writeNetSysfs(s.Name, f.name, strconv.FormatInt(f.value, 10)); err != nil {
				return fmt.Errorf("set %s of %s: %w", f.name, s.Name, err)
			}
		}
		return nil
	})
}
