// SPDX-License-Identifier: Apache-2.0

package xsk

import (
	"testing"

	"twopath/internal/nstest"
)

func TestReceiveExact(t *testing.T) {
	for _, chunk := range []int{2048, 4096} {
		p, s := receiver(t, nstest.Options{}, Options{ChunkSize: chunk, RxRing: 256, TxRing: None})
		ps := newPacketSocket(t, p.Peer)
		total := 0
		for round := range 40 { // several times round every ring
			ps.send(total, 100, 60+round*30)
			exactly(t, collect(t, s, 100), total, 100)
			total += 100
		}
		if st := stats(t, s); st != (Stats{}) {
			t.Errorf("chunk %d: kernel counted losses: %+v", chunk, st)
		}
		c := s.RxCounters()
		if c.Received != uint64(total) || c.Released != uint64(total) || s.Held() != 0 || s.Queued() != 0 {
			t.Errorf("chunk %d: counters %+v, held %d, queued %d after %d frames", chunk, c, s.Held(), s.Queued(), total)
		}
		if m := s.Mode(); m.Obtained.Bind != Copy || m.Requested.Bind != Auto {
			t.Errorf("mode %v", m)
		}
	}
}
