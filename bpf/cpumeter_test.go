// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

func newTestMeter(t *testing.T, o CPUMeterOptions) *CPUMeter {
	t.Helper()
	nstest.Root(t)
	m, err := NewCPUMeter(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for range 2 {
			if err := m.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return m
}

func readMeter(t *testing.T, m *CPUMeter) CPUTimes {
	t.Helper()
	r, err := m.Read()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// onThread runs fn on a thread of its own on one CPU, with its thread id.
func onThread(t *testing.T, cpu int, fn func(tid int)) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine, and its affinity with it
		pin(t, cpu)
		fn(unix.Gettid())
	}()
	<-done
}

func threadCPU(t *testing.T) uint64 {
	t.Helper()
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &ts); err != nil {
		t.Error(err)
	}
	return uint64(ts.Nano())
}

// busy computes for some wall time.
func busy(t *testing.T, d time.Duration) {
	t.Helper()
	for end := time.Now().Add(d); time.Now().Before(end); {
	}
}

// A thread busy 30 % of the time reads as what its own CPU clock says, within 3 %. That clock includes the interrupts and
// softirqs that came upon the thread, which the meter takes out.
func TestCPUMeterDutyCycle(t *testing.T) {
	const mine = ClassFirst + 3
	m := newTestMeter(t, CPUMeterOptions{})
	cpu := runtime.NumCPU() - 1
	var used uint64
	var diff CPUTimes
	onThread(t, cpu, func(tid int) {
		if err := m.SetPID(tid, mine); err != nil {
			t.Error(err)
			return
		}
		time.Sleep(time.Millisecond) // the class holds from the next switch on
		start, used0 := readMeter(t, m), threadCPU(t)
		for range 60 {
			busy(t, 3*time.Millisecond)
			ts := unix.NsecToTimespec(int64(7 * time.Millisecond))
			_ = unix.Nanosleep(&ts, nil)
		}
		used = threadCPU(t) - used0
		diff = readMeter(t, m).Sub(start)
	})
	sum := diff.Sum()
	got := sum.Class[mine]
	var interrupts uint64
	for _, c := range diff.CPU {
		if c.CPU == cpu {
			interrupts = c.IRQ
			for _, n := range c.SoftIRQ {
				interrupts += n
			}
		}
	}
	t.Logf("thread clock %d ns, meter %d ns (%+.2f %%), interrupts on the CPU %d ns", used, got, 100*(float64(got)/float64(used)-1), interrupts)
	if float64(got) > 1.03*float64(used) || float64(got+interrupts) < 0.97*float64(used) {
		t.Errorf("meter says %d ns, the thread's clock %d, interrupts %d", got, used, interrupts)
	}
	if sum.Voluntary[mine] < 50 {
		t.Errorf("%d voluntary switches, slept 60 times", sum.Voluntary[mine])
	}
}

// Every ns of every CPU is somewhere, exactly once.
func TestCPUMeterAddsUp(t *testing.T) {
	m := newTestMeter(t, CPUMeterOptions{TGIDs: map[int]Class{os.Getpid(): ClassFirst}})
	last := readMeter(t, m)
	if len(last.CPU) != runtime.NumCPU() {
		t.Fatalf("%d CPUs metered, %d are there", len(last.CPU), runtime.NumCPU())
	}
	var all uint64
	for range 50 {
		busy(t, time.Millisecond)
		time.Sleep(time.Millisecond)
		now := readMeter(t, m)
		for _, c := range now.Sub(last).CPU {
			if c.Total() != c.At {
				t.Errorf("CPU %d: %d ns booked of %d: %+v", c.CPU, c.Total(), c.At, c)
			}
			all += c.Class[ClassFirst]
		}
		last = now
	}
	if all == 0 {
		t.Error("this process, busy for 50 ms, has no time")
	}
}

// A thread's class goes before its process's.
func TestCPUMeterThreadBeforeProcess(t *testing.T) {
	const process, thread = ClassFirst, ClassFirst + 1
	m := newTestMeter(t, CPUMeterOptions{TGIDs: map[int]Class{os.Getpid(): process}})
	var before, after CPUTime
	onThread(t, runtime.NumCPU()-1, func(tid int) {
		time.Sleep(time.Millisecond)
		busy(t, 20*time.Millisecond)
		before = readMeter(t, m).Sum()
		if err := m.SetPID(tid, thread); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		busy(t, 20*time.Millisecond)
		after = readMeter(t, m).Sum()
	})
	if before.Class[process] == 0 || before.Class[thread] != 0 || after.Class[thread] == 0 {
		t.Errorf("before: process %d, thread %d ns; after: thread %d ns", before.Class[process], before.Class[thread], after.Class[thread])
	}
}

// The receive softirq of a veth is seen as NET_RX, on the CPU where it ran, and not as time of the task it came upon.
func TestCPUMeterSeesSoftIRQ(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	d, err := NewDrop(DropOptions{Match: frame4().match()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	attachSUT(t, p, d)
	m := newTestMeter(t, CPUMeterOptions{TGIDs: map[int]Class{os.Getpid(): ClassFirst}})
	o := pairOptions(p, frame4())
	o.Count = 500_000
	start := readMeter(t, m)
	generate(t, p, o)
	frames, _ := xmit(t, p)
	diff := readMeter(t, m).Sub(start).Sum()
	// No CPU takes a frame from a ring, runs a program on it and frees it in less than 5 ns.
	if diff.SoftIRQ[VectorNetRX] < 5*frames || diff.SoftIRQs[VectorNetRX] == 0 || diff.Class[ClassFirst] == 0 {
		t.Errorf("%d frames: %+v", frames, diff)
	}
	if diff.Total() != diff.At {
		t.Errorf("%d ns booked of %d", diff.Total(), diff.At)
	}
	t.Logf("%d frames: NET_RX %d ns, this process %d ns", frames, diff.SoftIRQ[VectorNetRX], diff.Class[ClassFirst])
}

func TestCPUMeterRefusals(t *testing.T) {
	nstest.Root(t)
	for name, o := range map[string]CPUMeterOptions{
		"idle":      {TGIDs: map[int]Class{1: ClassIdle}},
		"class 16":  {PIDs: map[int]Class{1: Class(Classes)}},
		"process 0": {TGIDs: map[int]Class{0: ClassFirst}},
		"thread -1": {PIDs: map[int]Class{-1: ClassFirst}},
	} {
		if m, err := NewCPUMeter(o); err == nil {
			m.Close()
			t.Errorf("%s: accepted", name)
		}
	}
	m := newTestMeter(t, CPUMeterOptions{})
	if err := m.Close(); err != nil {
		t.Error(err)
	}
	if _, err := m.Read(); err == nil {
		t.Error("read after close")
	}
}
