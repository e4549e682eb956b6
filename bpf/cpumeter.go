// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// Class is what a task's CPU time is booked under. ClassIdle and ClassOther are given by the meter; ClassFirst up to
// Classes-1 are the caller's.
type Class uint8

const (
	ClassIdle  = Class(cpumeterCpuClassCLASS_IDLE)
	ClassOther = Class(cpumeterCpuClassCLASS_OTHER) // tasks without a class
	ClassFirst = Class(cpumeterCpuClassCLASS_FIRST)
	Classes    = int(cpumeterCpuClassCLASS_COUNT)
)

// Softirq vectors, by what is of interest here.
const (
	VectorNetRX = int(cpumeterCpuVectorVECTOR_NET_RX)
	VectorNetTX = int(cpumeterCpuVectorVECTOR_NET_TX)
	VectorTimer = int(cpumeterCpuVectorVECTOR_TIMER)
	VectorOther = int(cpumeterCpuVectorVECTOR_OTHER)
	Vectors     = int(cpumeterCpuVectorVECTORS)
)

// CPUMeterOptions says whose time is of interest. Process and thread ids are those of the initial PID namespace.
type CPUMeterOptions struct {
	TGIDs map[int]Class // processes, all their threads
	PIDs  map[int]Class // single threads, such as a NAPI kthread or ksoftirqd; looked at before TGIDs
}

// CPUMeter accounts the time of each CPU by task class, softirq vector and interrupt, at every switch, without
// sampling. It costs some 100 ns per switch. It sees softirqs in idle too, which task accounting does not.
type CPUMeter struct {
	obj      cpumeterObjects
	links    []link.Link
	accounts *mapMemory
	cpus     int

	mu     sync.Mutex
	closed bool
}

// CPUTime is one CPU since the meter began. Between two readings Class, SoftIRQ and IRQ add up to the difference of At: the time of a softirq or
// interrupt is taken out of the task it came upon. Threaded NAPI is a task, not a softirq.
type CPUTime struct {
	CPU         int
	At          uint64          // CLOCK_MONOTONIC of this CPU's reading, ns
	Class       [Classes]uint64 // ns
	SoftIRQ     [Vectors]uint64 // ns
	IRQ         uint64          // ns in device interrupts
	Voluntary   [Classes]uint64 // times a task of the class went to sleep
	Involuntary [Classes]uint64 // times one was switched away while still runnable
	SoftIRQs    [Vectors]uint64 // times run
	IRQs        uint64
}

// Total returns all time accounted, in ns.
func (t CPUTime) Total() uint64 {
	sum := t.IRQ
	for _, n := range t.Class {
		sum += n
	}
	for _, n := range t.SoftIRQ {
		sum += n
	}
	return sum
}

// CPUTimes is a reading: the CPUs that were online when the meter began, in order.
type CPUTimes struct {
	CPU []CPUTime
}

// Sum adds up all CPUs; its CPU is -1, its At the sum of theirs: CPU time, where that of a difference is taken.
func (t CPUTimes) Sum() CPUTime {
	sum := CPUTime{CPU: -1}
	for _, c := range t.CPU {
		sum.add(c, 1)
	}
	return sum
}

// Sub returns what was added since an earlier reading of the same meter.
func (t CPUTimes) Sub(earlier CPUTimes) CPUTimes {
	var out CPUTimes
	for i, c := range t.CPU {
		if i < len(earlier.CPU) {
			c.add(earlier.CPU[i], ^uint64(0)) // times -1
		}
		out.CPU = append(out.CPU, c)
	}
	return out
}

func (t *CPUTime) add(o CPUTime, times uint64) {
	for i := range t.Class {
		t.Class[i] += times * o.Class[i]
		t.Voluntary[i] += times * o.Voluntary[i]
		t.Involuntary[i] += times * o.Involuntary[i]
	}
	for i := range t.SoftIRQ {
		t.SoftIRQ[i] += times * o.SoftIRQ[i]
		t.SoftIRQs[i] += times * o.SoftIRQs[i]
	}
	t.At += times * o.At
	t.IRQ += times * o.IRQ
	t.IRQs += times * o.IRQs
}

// NewCPUMeter starts a meter for all CPUs. It needs BTF, CAP_BPF and CAP_PERFMON.
func NewCPUMeter(o CPUMeterOptions) (_ *CPUMeter, err error) {
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("cpu meter: %w", err)
	}
	spec, err := loadCpumeter()
	if err != nil {
		return nil, fmt.Errorf("cpu meter: %w", err)
	}
	spec.Maps[cpumeterMapAccounts].MaxEntries = uint32(cpus)
	m := &CPUMeter{cpus: cpus}
	if err := load("cpu meter", spec, &m.obj); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, m.Close())
		}
	}()
	if m.accounts, err = mmapMap(m.obj.Accounts); err != nil {
		return nil, fmt.Errorf("cpu meter: %w", err)
	}
	for id, c := range o.TGIDs {
		if err := m.SetTGID(id, c); err != nil {
			return nil, err
		}
	}
	for id, c := range o.PIDs {
		if err := m.SetPID(id, c); err != nil {
			return nil, err
		}
	}
	for _, p := range []*ebpf.Program{m.obj.SchedSwitch, m.obj.SoftirqEntry, m.obj.SoftirqExit,
		m.obj.IrqHandlerEntry, m.obj.IrqHandlerExit} {
		l, err := link.AttachTracing(link.TracingOptions{Program: p})
		if err != nil {
			return nil, fmt.Errorf("cpu meter: attach %s: %w", p, err)
		}
		m.links = append(m.links, l)
	}
	return m, m.prime()
}

// prime tells the meter which task each CPU is on, by running a program there. A CPU that is offline stays out.
func (m *CPUMeter) prime() error {
	const runOnCPU = 1 // BPF_F_TEST_RUN_ON_CPU
	online := 0
	for cpu := range m.cpus {
		_, err := m.obj.Prime.Run(&ebpf.RunOptions{Flags: runOnCPU, CPU: uint32(cpu)})
		if errors.Is(err, unix.ENXIO) {
			continue // offline
		}
		if err != nil {
			return fmt.Errorf("cpu meter: begin on CPU %d: %w", cpu, err)
		}
		online++
	}
	if online == 0 {
		return errors.New("cpu meter: no CPU is online")
	}
	return nil
}

// SetTGID gives a process a class, from its next switch on; ClassOther takes it away.
func (m *CPUMeter) SetTGID(tgid int, c Class) error { return setClass(m.obj.Tgids, tgid, c) }

// SetPID gives a thread a class, from its next switch on.
func (m *CPUMeter) SetPID(pid int, c Class) error { return setClass(m.obj.Pids, pid, c) }

func setClass(m *ebpf.Map, id int, c Class) error {
	if id < 1 {
		return fmt.Errorf("cpu meter: %d is no process or thread id", id)
	}
	if int(c) >= Classes || c == ClassIdle {
		return fmt.Errorf("cpu meter: class %d of id %d, want %d..%d", c, id, ClassOther, Classes-1)
	}
	if err := m.Put(uint32(id), uint32(c)); err != nil {
		return fmt.Errorf("cpu meter: class of id %d: %w", id, err)
	}
	return nil
}

// Read returns the times so far, the running intervals included. It disturbs no other CPU.
func (m *CPUMeter) Read() (CPUTimes, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var t CPUTimes
	if m.closed {
		return t, errors.New("read cpu meter: it is closed")
	}
	for cpu := range m.cpus {
		a, now, err := m.account(cpu)
		if err != nil {
			return CPUTimes{}, err
		}
		if a.Primed != 0 {
			t.CPU = append(t.CPU, cpuTime(cpu, a, now))
		}
	}
	return t, nil
}

// account copies the account of a CPU while it is not being written (it pairs with begin and end in c/cpumeter.bpf.c).
func (m *CPUMeter) account(cpu int) (a cpumeterCpuAccount, now uint64, err error) {
	first := cpu * accountWords
	seq := m.accounts.word(first + accountSeq)
	for range 1_000_000 {
		before := seq.Load()
		if before&1 == 0 {
			a = snapshot[cpumeterCpuAccount](m.accounts, first)
			now, err = monotonic()
			if err != nil {
				return a, 0, err
			}
			if seq.Load() == before {
				return a, now, nil
			}
		}
		runtime.Gosched()
	}
	return a, 0, fmt.Errorf("read cpu meter: CPU %d never held still", cpu)
}

// cpuTime converts an account and books the interval still running at now.
func cpuTime(cpu int, a cpumeterCpuAccount, now uint64) CPUTime {
	t := CPUTime{CPU: cpu, At: max(now, a.LastNs), Class: a.ClassNs, SoftIRQ: a.SoftirqNs, IRQ: a.IrqNs,
		Voluntary: a.Voluntary, Involuntary: a.Involuntary, SoftIRQs: a.Softirqs, IRQs: a.Irqs}
	if now <= a.LastNs {
		return t
	}
	ns := now - a.LastNs
	switch {
	case a.Irq != 0:
		t.IRQ += ns
	case a.Vector != 0:
		t.SoftIRQ[(a.Vector-1)%uint64(Vectors)] += ns
	default:
		t.Class[a.Task%uint64(Classes)] += ns
	}
	return t
}

func monotonic() (uint64, error) {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		return 0, fmt.Errorf("read CLOCK_MONOTONIC: %w", err)
	}
	return uint64(ts.Nano()), nil
}

// Close ends the accounting. It may be called twice.
func (m *CPUMeter) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil
	}
	m.closed = true
	var errs []error
	for _, l := range m.links {
		errs = append(errs, l.Close())
	}
	if m.accounts != nil {
		errs = append(errs, m.accounts.close())
	}
	return errors.Join(append(errs, m.obj.Close())...)
}
