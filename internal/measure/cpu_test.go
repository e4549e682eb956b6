// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"math"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/compare"
)

// second is a made-up second of two CPUs: 0 is the SUT's, 1 the peer's.
func second() CPUSample {
	return CPUSample{At: 1e9, CPUs: []CPUTimes{
		{CPU: 0, Idle: 100e6, SUT: 500e6, NAPI: 200e6, Other: 50e6, NetRX: 100e6, NetTX: 10e6, Timer: 15e6, Soft: 15e6, IRQ: 10e6},
		{CPU: 1, Idle: 300e6, Other: 300e6, NetRX: 400e6},
	}}
}

func TestCostShared(t *testing.T) {
	c, err := Cost(CostInput{Times: second(), SoftirqCPUs: []int{0}, Packets: 1e6, SpinNs: 150e6, Rate: TickRate{2e9}, Method: "m"})
	if err != nil {
		t.Fatal(err)
	}
	want := CPUCost{ElapsedNs: 1e9, Packets: 1e6, TaskNs: 350e6, SpinNs: 150e6, NAPINs: 200e6, SoftirqNs: 110e6,
		OtherNs: 50e6, IRQNs: 10e6, Rate: TickRate{2e9}, Method: "m"}
	if c != want {
		t.Errorf("cost %+v, want %+v", c, want)
	}
	r := c.Record()
	for name, v := range map[string][2]float64{
		"work": {*r.WorkNsPerPacket, 660}, "spin": {*r.SpinNsPerPacket, 150}, "cores": {*r.Cores, 0.81},
		"cores per Mpps": {*r.CoresPerMpps, 0.66}, "softirq": {*r.SoftirqNsPerPacket, 310}} {
		if math.Abs(v[0]-v[1]) > 1e-9 {
			t.Errorf("%s %v, want %v", name, v[0], v[1])
		}
	}
	if tsc, err := c.TSCPerPacket(); err != nil || tsc != 1000 {
		t.Errorf("tsc per packet %v, %v; want 1000", tsc, err)
	}
}

func TestCostSenderPlacement(t *testing.T) {
	c, err := Cost(CostInput{Times: second(), SoftirqCPUs: []int{1}, Packets: 1e6})
	if err != nil {
		t.Fatal(err)
	}
	if c.WorkNs() != 500e6+200e6+400e6 {
		t.Errorf("work %d ns", c.WorkNs())
	}
}

func TestCostRefuses(t *testing.T) {
	if _, err := Cost(CostInput{Times: second(), SoftirqCPUs: []int{0, 7}}); err == nil {
		t.Error("a CPU without times was accepted")
	}
	if _, err := Cost(CostInput{}); err == nil {
		t.Error("no elapsed time was accepted")
	}
	c, err := Cost(CostInput{Times: second(), SpinNs: 9e9})
	if err != nil {
		t.Fatal(err)
	}
	if !c.SpinClamped || c.SpinNs != 500e6 || c.TaskNs != 0 {
		t.Errorf("more spin than running time: %+v", c)
	}
	r := c.Record()
	if r.WorkNsPerPacket != nil || r.CoresPerMpps != nil || r.Cores == nil {
		t.Errorf("without packets: %+v", r)
	}
}

func TestCPUSampleDelta(t *testing.T) {
	a, b := second(), second()
	b.At, b.CPUs[1].NetRX = 3e9, 401e6
	d, err := b.Delta(a)
	if err != nil {
		t.Fatal(err)
	}
	if d.At != 2e9 || d.CPUs[0] != (CPUTimes{CPU: 0}) || d.CPUs[1] != (CPUTimes{CPU: 1, NetRX: 1e6}) {
		t.Errorf("delta %+v", d)
	}
	if _, err := a.Delta(b); err == nil {
		t.Error("time that went back was accepted")
	}
	if _, err := a.Delta(CPUSample{}); err == nil {
		t.Error("samples of different machines were accepted")
	}
}

func TestSpinMeter(t *testing.T) {
	rate := TickRate{1e9} // a tick is 1 ns
	m := NewSpinMeter(rate)
	m.Start(1000)
	m.Tick(1100, true)   // 100 spin
	m.Tick(1900, false)  // work
	m.Tick(2000, true)   // 100 spin
	m.Tick(52_000, true) // preempted: capped at 2 us
	m.Tick(54_000, true) // exactly the cap
	m.Start(90_000)      // slept
	m.Tick(90_050, true)
	if m.Spin() != 100+100+2000+2000+50 || m.Empty() != 5 || m.Capped() != 1 {
		t.Errorf("spin %d, empty %d, capped %d", m.Spin(), m.Empty(), m.Capped())
	}
}

func TestWork(t *testing.T) {
	rate, err := CalibrateTicks(5 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWork(compare.Work{Time: 5 * time.Microsecond}, rate)
	for range 100 {
		before := Ticks()
		w.Do()
		if d := Ticks() - before; d < rate.Ticks(5*time.Microsecond) {
			t.Fatalf("5 us of work took %d ns", rate.Nanoseconds(d))
		}
	}
	w = NewWork(compare.Work{Loops: 1000}, rate)
	w.Do()
	want := 1.0
	for range 1000 {
		want *= w.factor
	}
	if w.x != want || w.x <= 1 {
		t.Errorf("1000 multiplications gave %v, want %v", w.x, want)
	}
	if w := NewWork(compare.Work{}, rate); !w.None() {
		t.Error("no work is work")
	}
}

func TestLoopMetersDoNotAllocate(t *testing.T) {
	rate := TickRate{1e9}
	spin := NewSpinMeter(rate)
	work := NewWork(compare.Work{Time: 100 * time.Nanosecond, Loops: 3}, TickRate{2e9})
	now := uint64(0)
	if got := testing.AllocsPerRun(1000, func() {
		now += 1000
		spin.Tick(now, now%2000 == 0)
		work.Do()
	}); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
	if spin.Empty() == 0 || work.x == 1 {
		t.Error("nothing was done")
	}
}

func TestTaskTimes(t *testing.T) {
	if _, err := os.Stat("/proc/self/schedstat"); err != nil {
		t.Skipf("kernel without schedstats: %v", err)
	}
	before, err := TaskTimes(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var usage unix.Timespec
	read := func() int64 {
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &usage); err != nil {
			t.Fatal(err)
		}
		return usage.Nano()
	}
	for start := read(); read()-start < 50e6; {
	}
	after, err := TaskTimes(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	var ran uint64
	for tid, a := range after {
		ran += a.Delta(before[tid]).RunNs
	}
	if ran < 40e6 { // the running thread's own account lags by up to a scheduler tick
		t.Errorf("threads ran %d ns, of at least 50 ms", ran)
	}
	if _, err := TaskTimes(1 << 30); err == nil {
		t.Error("a process that is not there has threads")
	}
	if d := (TaskTime{RunNs: 1}).Delta(TaskTime{RunNs: 2}); d.RunNs != 0 {
		t.Errorf("time went back: %+v", d)
	}
}

func BenchmarkLoopMeters(b *testing.B) {
	spin := NewSpinMeter(TickRate{1e9})
	for b.Loop() {
		spin.Tick(Ticks(), true)
	}
}
