// SPDX-License-Identifier: Apache-2.0

package measure

import "twopath/compare"

// Work stands for what an application does with each packet: it burns a time or runs a number of dependent floating
// multiplications. It shows what is left of a difference between two paths in a program that does something.
// One goroutine uses it.
type Work struct {
	ticks  uint64
	loops  uint64
	factor float64
	x      float64 // the product of the last Do: stored, so that the compiler cannot drop the loop
}

// NewWork prepares the work a plan asks for; the zero plan does nothing.
func NewWork(plan compare.Work, rate TickRate) *Work {
	// The factor is as near to 1 as keeps 10^9 multiplications finite, and read from memory, so that the loop is no constant.
	return &Work{ticks: rate.Ticks(plan.Time), loops: plan.Loops, factor: 1.0000001}
}

// None says that Do does nothing, so that a loop can leave the call out.
func (w *Work) None() bool { return w.ticks == 0 && w.loops == 0 }

// Do does one packet's work. A time is elapsed time by Ticks, right to about 20 ns, and includes whatever interrupts
// it. Each multiplication waits for the one before: 3-4 cycles on current CPUs.
func (w *Work) Do() {
	if w.ticks > 0 {
		for start := Ticks(); Ticks()-start < w.ticks; {
		}
	}
	if w.loops > 0 {
		x, f := 1.0, w.factor
		for range w.loops {
			x *= f
		}
		w.x = x
	}
}
