// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"

	"twopath/bpf"
	"twopath/internal/agent"
	"twopath/internal/measure"
)

// Classes of the CPU meter: the readers, and the NAPI threads of the SUT's device.
const (
	classReader = bpf.ClassFirst
	classNAPI   = bpf.ClassFirst + 1
)

// cpuAccount takes CPU time between begin and end. Where the kernel has no BTF or lets no tracing program in, it falls
// back to the scheduler's per-thread times, which miss softirqs in idle, and says so.
type cpuAccount struct {
	meter  *bpf.CPUMeter
	begin  bpf.CPUTimes
	tids   []int
	napi   []int
	cpus   []int // of the readers, for the fall-back
	tasks  map[int]measure.TaskTime
	start  int64
	reason error                    // why there is no meter
	ready  map[int]measure.TaskTime // of the readers, at the start
	waited *uint64
}

// newCPUAccount starts the account for reader threads and NAPI threads. The threads must not run yet: a thread's class
// counts from its next switch.
func newCPUAccount(tids, napi, cpus []int) *cpuAccount {
	a := &cpuAccount{tids: tids, napi: napi, cpus: cpus}
	pids := map[int]bpf.Class{}
	for _, t := range tids {
		pids[t] = classReader
	}
	for _, t := range napi {
		pids[t] = classNAPI
	}
	a.meter, a.reason = bpf.NewCPUMeter(bpf.CPUMeterOptions{PIDs: pids})
	return a
}

func (a *cpuAccount) read() (err error) {
	if a.ready, err = measure.TaskTimes(selfPID()); err != nil {
		a.ready = nil // then it is not known how long readers wait
	}
	if a.meter != nil {
		a.begin, err = a.meter.Read()
		return err
	}
	a.start = measure.Monotonic()
	a.tasks, err = a.taskTimes()
	return err
}

// note takes how long the readers have waited for a CPU. It is for the moment before they end, with which their times go.
func (a *cpuAccount) note() {
	if a == nil || a.ready == nil || a.waited != nil {
		return
	}
	now, err := measure.TaskTimes(selfPID())
	if err != nil {
		return
	}
	most := uint64(0)
	for _, t := range a.tids {
		after, there := now[t]
		if !there {
			return // it has ended by itself
		}
		most = max(most, after.Delta(a.ready[t]).WaitNs)
	}
	a.waited = &most
}

// taskTimes reads the schedstat of readers and NAPI threads.
func (a *cpuAccount) taskTimes() (map[int]measure.TaskTime, error) {
	out := map[int]measure.TaskTime{}
	all, err := measure.TaskTimes(selfPID())
	if err != nil {
		return nil, err
	}
	for _, t := range a.tids {
		out[t] = all[t]
	}
	for _, t := range a.napi {
		one, err := measure.TaskTimes(t)
		if err != nil {
			return nil, err
		}
		out[t] = one[t]
	}
	return out, nil
}

// end is the time since read.
func (a *cpuAccount) end(rate measure.TickRate) (*agent.CPU, error) {
	c := &agent.CPU{TicksPerSecond: rate.PerSecond, Waited: a.waited}
	if a.meter == nil {
		return c, a.endTasks(c)
	}
	now, err := a.meter.Read()
	if err != nil {
		return nil, err
	}
	d := now.Sub(a.begin)
	c.Method = "sched_switch+softirq"
	for _, t := range d.CPU {
		c.Times.At = max(c.Times.At, int64(t.At)) // CPUs are read one after another, within microseconds
		c.Times.CPUs = append(c.Times.CPUs, measure.CPUTimes{CPU: t.CPU, Idle: t.Class[bpf.ClassIdle], SUT: t.Class[classReader], NAPI: t.Class[classNAPI],
			Other: t.Class[bpf.ClassOther], NetRX: t.SoftIRQ[bpf.VectorNetRX], NetTX: t.SoftIRQ[bpf.VectorNetTX],
			Timer: t.SoftIRQ[bpf.VectorTimer], Soft: t.SoftIRQ[bpf.VectorOther], IRQ: t.IRQ})
		c.Switches += t.Voluntary[classReader] + t.Involuntary[classReader]
	}
	return c, nil
}

func (a *cpuAccount) endTasks(c *agent.CPU) error {
	after, err := a.taskTimes()
	if err != nil {
		return fmt.Errorf("no CPU meter (%w), and %w", a.reason, err)
	}
	c.Method = "schedstat"
	c.Times.At = measure.Monotonic() - a.start
	t := measure.CPUTimes{}
	if len(a.cpus) > 0 {
		t.CPU = a.cpus[0]
	}
	for _, id := range a.tids {
		t.SUT += after[id].Delta(a.tasks[id]).RunNs
	}
	for _, id := range a.napi {
		t.NAPI += after[id].Delta(a.tasks[id]).RunNs
	}
	c.Times.CPUs = []measure.CPUTimes{t}
	return nil
}

func (a *cpuAccount) close() error {
	if a == nil || a.meter == nil {
		return nil
	}
	return errors.Join(a.meter.Close())
}
