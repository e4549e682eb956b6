// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestTicksNeverGoBack(t *testing.T) {
	last := Ticks()
	for range 100_000 {
		now := Ticks()
		if now < last {
			t.Fatalf("ticks went from %d to %d", last, now)
		}
		last = now
	}
}

func TestCalibrateTicks(t *testing.T) {
	if _, err := CalibrateTicks(time.Microsecond); err == nil {
		t.Error("a microsecond was accepted")
	}
	a, err := CalibrateTicks(20 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	b, err := CalibrateTicks(20 * time.Millisecond)
	if err != nil {
		t.Fatal(err)
	}
	// A constant-rate counter: two calibrations agree. 1 % leaves room for a preemption inside the reading pair.
	if q := a.PerSecond / b.PerSecond; q < 0.99 || q > 1.01 {
		t.Errorf("calibrations differ: %g and %g ticks/s", a.PerSecond, b.PerSecond)
	}
	if ns := a.Nanoseconds(a.Ticks(time.Second)); ns < 999_999_000 || ns > 1_000_000_001 {
		t.Errorf("one second converts to %d ns and back", ns)
	}
	if a.Ticks(-time.Second) != 0 || (TickRate{}).Nanoseconds(5) != 0 {
		t.Error("negative durations and the zero rate must give 0")
	}
}

func TestMonotonicIsTheKernelsClock(t *testing.T) {
	read := func() int64 {
		var ts unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
			t.Fatal(err)
		}
		return ts.Nano()
	}
	for range 1000 {
		before, now, after := read(), Monotonic(), read()
		if now < before || now > after {
			t.Fatalf("Monotonic %d is not between %d and %d", now, before, after)
		}
	}
}

func TestClocksDoNotAllocate(t *testing.T) {
	var sum uint64
	if got := testing.AllocsPerRun(100, func() { sum += Ticks() + uint64(Monotonic()) }); got != 0 {
		t.Errorf("%v allocations per run", got)
	}
	if sum == 0 {
		t.Error("clocks stand still")
	}
}

func BenchmarkTicks(b *testing.B) {
	for b.Loop() {
		Ticks()
	}
}

func BenchmarkMonotonic(b *testing.B) {
	for b.Loop() {
		Monotonic()
	}
}
