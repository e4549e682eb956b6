// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// BenchmarkReceive is the receiver's own cost per datagram: the socket is filled first, and only emptying it is timed. The
// kernel's cost up to the socket is not in it.
func BenchmarkReceive(b *testing.B) {
	for _, k := range append(kinds(), recvmmsgKind("recvmmsg+batch=1", RecvmmsgOptions{Socket: Socket{Batch: 1}})) {
		b.Run(k.name, func(b *testing.B) {
			p := nstest.NewPair(b, nstest.Options{})
			r := k.mustOpen(b, p, sutAddr(p, false))
			fd, to := mustSender(b, p, false, 0)
			defer unix.Close(fd)
			data := payload(0, 18)
			frames := make([][]byte, 64)
			b.ReportAllocs()
			b.ResetTimer()
			for left := b.N; left > 0; {
				b.StopTimer()
				fill := min(left, 4096)
				for range fill {
					if err := unix.Sendto(fd, data, 0, to); err != nil {
						b.Fatal(err)
					}
				}
				time.Sleep(3 * time.Millisecond) // the packet ring hands over its last block by a timer
				b.StartTimer()
				for got := 0; got < fill; {
					n := receive(b, r, frames)
					if err := r.Release(); err != nil {
						b.Fatal(err)
					}
					got += n
				}
				left -= fill
			}
		})
	}
}
