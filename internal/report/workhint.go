// SPDX-License-Identifier: Apache-2.0

package report

import (
	"twopath/compare"
)

// hintWork is the application work the last line reckons with.
const hintWork = 5000.0 // ns

// workHint reckons what would be left of the gap in a program that works on
// each packet. It holds where one core does everything, so it is only given
// there, and only from CPU work, not from waiting.
func (v *view) workHint() string {
	c := v.doc.Verdict
	if c == nil || v.doc.Rig.Placement != compare.PlaceShared || v.doc.Plan.Work != (compare.Work{}) {
		return ""
	}
	if c.Word != compare.Faster && c.Word != compare.Slower {
		return ""
	}
	a, b := v.arm(c.A), v.arm(c.B)
	if a == nil || b == nil || a.CPU.WorkNsPerPacket == nil || b.CPU.WorkNsPerPacket == nil {
		return ""
	}
	r := (*a.CPU.WorkNsPerPacket + hintWork) / (*b.CPU.WorkNsPerPacket + hintWork)
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
