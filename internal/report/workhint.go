// SPDX-License-Identifier: Apache-2.0

package report

import (
	"twopath/compare"
)

// hintWork is the application work the last line reckons with.
const hintWork = 5000.0 // ns

// workHint reckons what would be left of the gap in a program that works on
// each packet. It holds where one core does everything, so it is only given
// there, and only from CPU work, not from waiting; in an echo test from the
// answers' times.
func (v *view) workHint() string {
	c := v.doc.Verdict
	if c == nil || v.doc.Rig.Placement != compare.PlaceShared || v.doc.Plan.Work != (compare.Work{}) {
		return ""
	}
	if c.Word != compare.Faster && c.Word != compare.Slower {
		return ""
	}
	a, b := v.arm(c.A), v.arm(c.B)
	if a == nil || b == nil {
		return ""
	}
	of := func(a *compare.Arm) *float64 { return a.CPU.WorkNsPerPacket }
	if c.Metric == compare.MetricP50 { // an answer waits for the work as it is done
		of = func(a *compare.Arm) *float64 { return a.LatencyP50Ns }
	}
	if of(a) == nil || of(b) == nil {
		return ""
	}
	r := (*of(a) + hintWork) / (*of(b) + hintWork)
	if r < 1 {
		r = 1 / r
	}
	if !finite(r) {
		return ""
	}
	if r < 1.05 {
		return "your app adds 5 us? hardly a gap left (--work 5us)"
	}
	return "your app adds 5 us? about " + trimZeros(fixed(r, 1)) + " x (--work 5us)"
}
