// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"twopath/internal/measure"
	"twopath/internal/packet"
)

// Assembler puts datagrams together of frames that hold fragments of them, where the receiver does not: the kernel has done so
// for its readers. It belongs to the goroutine of one worker and does not allocate.
type Assembler interface {
	// Batch tells the time, CLOCK_MONOTONIC in ns, before the frames of a batch.
	Batch(now int64)
	// Frame takes a frame. It returns the checked payload of the datagram that the frame made whole, until the next call; Held
	// when it made none; or what is wrong with the one it made.
	Frame(b []byte) ([]byte, packet.Verdict)
}

// fragments is frames for a test whose datagrams come in pieces: the loop counts datagrams all the same.
func (l *Receive) fragments(batch [][]byte) {
	l.o.Assembler.Batch(measure.Monotonic())
	for _, f := range batch {
		if p, verdict := l.o.Assembler.Frame(f); verdict == packet.OK {
			l.datagram(p)
		} else {
			l.refused(verdict)
		}
	}
}
