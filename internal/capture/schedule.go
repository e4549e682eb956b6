// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"math"
	"time"
)

// Schedule is when each frame is to be sent at speed times the capture's own timing, after the start of a loop, and how long
// a loop is: to the last frame and one mean gap.
func (c *Capture) Schedule(speed float64) (due []time.Duration, period time.Duration) {
	due = make([]time.Duration, len(c.At))
	for i, at := range c.At {
		due[i] = time.Duration(math.Round(float64(at) / speed))
	}
	last := due[len(due)-1]
	period = last
	if n := len(due); n > 1 {
		period += last / time.Duration(n-1)
	}
	return due, period
}

// LongestGap is the longest time between two frames, and before which frame it is, from 1.
func (c *Capture) LongestGap() (gap time.Duration, frame int) {
	for i := 1; i < len(c.At); i++ {
		if d := c.At[i] - c.At[i-1]; d > gap {
			gap, frame = d, i+1
		}
	}
	return gap, frame
}
