// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// Ticks reads the CPU's own constant-rate counter: the TSC on amd64, CNTVCT_EL0 on arm64. The unit is ticks; see
// CalibrateTicks. Both read after every earlier instruction has completed (clock_amd64.s says why it is LFENCE and
// not RDTSCP), so work done before the call is never counted after it. It makes no system call and does not allocate.
func Ticks() uint64

// Monotonic is CLOCK_MONOTONIC in ns since boot, read through the vDSO. BPF's bpf_ktime_get_ns reads the same clock,
// so stamps of the live-frame generator and readings of this function on the same host can be subtracted.
func Monotonic() int64 { return nanotime() }

// TickRate converts between ticks and ns. The zero value is not usable: get one from CalibrateTicks.
type TickRate struct {
	PerSecond float64 // ticks in one second of CLOCK_MONOTONIC_RAW
}

// CalibrateTicks compares Ticks with CLOCK_MONOTONIC_RAW (the clock no NTP daemon slews) over d, at least 1 ms.
// 20 ms give about 1 part in 10,000 or better; the call sleeps that long.
func CalibrateTicks(d time.Duration) (TickRate, error) {
	if d < time.Millisecond {
		return TickRate{}, fmt.Errorf("calibrate ticks: %v is shorter than 1ms", d)
	}
	t0, ns0, err := tickPair()
	if err != nil {
		return TickRate{}, err
	}
	time.Sleep(d)
	t1, ns1, err := tickPair()
	if err != nil {
		return TickRate{}, err
	}
	if t1 <= t0 || ns1 <= ns0 {
		return TickRate{}, fmt.Errorf("calibrate ticks: counter went from %d to %d in %d ns", t0, t1, ns1-ns0)
	}
	return TickRate{PerSecond: float64(t1-t0) * 1e9 / float64(ns1-ns0)}, nil
}

// tickPair reads both clocks as close together as it can: of several tries, the one with the least ticks around the
// system call wins, since a preemption in between would spoil the rate.
func tickPair() (ticks uint64, ns int64, err error) {
	best := ^uint64(0)
	for range 16 {
		var ts unix.Timespec
		before := Ticks()
		if err := unix.ClockGettime(unix.CLOCK_MONOTONIC_RAW, &ts); err != nil {
			return 0, 0, fmt.Errorf("read CLOCK_MONOTONIC_RAW: %w", err)
		}
		if w := Ticks() - before; w < best {
			best, ticks, ns = w, before+w/2, ts.Nano()
		}
	}
	return ticks, ns, nil
}

// Nanoseconds converts a number of ticks, rounded down.
func (r TickRate) Nanoseconds(ticks uint64) uint64 {
	if r.PerSecond <= 0 {
		return 0
	}
	return uint64(float64(ticks) * 1e9 / r.PerSecond)
}

// Ticks converts a duration; a negative one is 0.
func (r TickRate) Ticks(d time.Duration) uint64 {
	if d <= 0 {
		return 0
	}
	return uint64(d.Seconds() * r.PerSecond)
}
