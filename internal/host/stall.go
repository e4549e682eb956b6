// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Stall is what a CPU did while one thread tried to have it all.
type Stall struct {
	CPU    int
	Ran    time.Duration // how long it was watched
	Gap    time.Duration // longest time between two looks at the clock
	Steal  time.Duration // taken by the hypervisor, in ticks of 10 ms; 0 when /proc/stat can not be read
	Failed error         // the CPU could not be watched
}

// Stalls spins for d on each of the CPUs, on all at once where GOMAXPROCS lets it, and watches the clock: whoever takes the CPU away leaves a gap.
// A gap is what overflows a ring: 256 slots last 172 us at 1.488 Mpps.
func Stalls(cpus []int, d time.Duration) []Stall {
	out := make([]Stall, len(cpus))
	before := stealTicks(read("/proc/stat"))
	// No more at once than may run at once, or they would take the CPUs from each other.
	for next := 0; next < len(cpus); {
		var wg sync.WaitGroup
		for range min(runtime.GOMAXPROCS(0), len(cpus)-next) {
			i := next
			wg.Go(func() { out[i] = spin(cpus[i], d) })
			next++
		}
		wg.Wait()
	}
	after := stealTicks(read("/proc/stat"))
	for i := range out {
		const tick = 10 * time.Millisecond // USER_HZ is 100 everywhere
		b, okB := before[out[i].CPU]
		a, okA := after[out[i].CPU]
		if okA && okB && a > b {
			out[i].Steal = time.Duration(a-b) * tick
		}
	}
	return out
}

// spin watches one CPU from a thread pinned to it, and puts the thread's affinity back.
func spin(cpu int, d time.Duration) Stall {
	s := Stall{CPU: cpu}
	runtime.LockOSThread() // unlocked only when the thread is as it was
	var own, one unix.CPUSet
	one.Set(cpu)
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		runtime.UnlockOSThread()
		s.Failed = fmt.Errorf("read affinity: %w", err)
		return s
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		runtime.UnlockOSThread()
		s.Failed = fmt.Errorf("pin to CPU %d: %w", cpu, err)
		return s
	}
	start := time.Now()
	for last := start; s.Ran < d; {
		now := time.Now()
		s.Gap = max(s.Gap, now.Sub(last))
		last, s.Ran = now, now.Sub(start)
	}
	if err := unix.SchedSetaffinity(0, &own); err == nil {
		runtime.UnlockOSThread()
	}
	return s
}

// stealTicks reads the steal column of each CPU from the text of /proc/stat (proc_stat(5)).
func stealTicks(stat string) map[int]uint64 {
	out := make(map[int]uint64)
	for line := range strings.Lines(stat) {
		f := strings.Fields(line)
		if len(f) < 9 {
			continue
		}
		id, ok := strings.CutPrefix(f[0], "cpu")
		cpu, err := strconv.Atoi(id)
		if !ok || err != nil {
			continue
		}
		if n, err := strconv.ParseUint(f[8], 10, 64); err == nil {
			out[cpu] = n
		}
	}
	return out
}

const (
	stallWatch = 200 * time.Millisecond
	stallWarn  = time.Millisecond
)

// stallCheck watches every CPU this process may use.
func stallCheck(cpus []int) Check {
	c := Check{ID: "cpu.stalls", Status: Pass, Why: "who takes a CPU away from the receiver overflows the ring before it: 256 slots last 172 us at 1.488 Mpps"}
	var worst Stall
	var steal time.Duration
	for _, s := range Stalls(cpus, stallWatch) {
		if s.Failed != nil {
			c.Status, c.What = Skip, s.Failed.Error()
			return c
		}
		steal += s.Steal
		if s.Gap >= worst.Gap {
			worst = s
		}
	}
	c.What = fmt.Sprintf("longest gap in %v on each of %d CPUs: %d us on CPU %d; steal %v", stallWatch, len(cpus), worst.Gap.Microseconds(), worst.CPU, steal)
	if worst.Gap > stallWarn || steal > 0 {
		c.Status, c.Cure = Warn, "stop other work on this machine (on a VM: ask for dedicated CPUs); trials with stalls are found and repeated, so expect a longer run"
	}
	return c
}
