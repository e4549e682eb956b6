// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"testing"

	"github.com/cilium/ebpf"

	"twopath/internal/nstest"
)

// Whatever a frame carries, its source address decides; what is not marked goes on to the kernel.
func TestMarked(t *testing.T) {
	nstest.Root(t)
	r, err := NewMarked(MarkedOptions{Prefix: [3]byte{2, 0xab, 0xcd}, Queues: 1})
	if err != nil {
		t.Fatal(err)
	}
	frame := func(src ...byte) []byte {
		f := make([]byte, 60)
		copy(f[6:], src)
		return f
	}
	for _, c := range []struct {
		name  string
		frame []byte
		want  uint32
	}{
		{"marked, without a socket", frame(2, 0xab, 0xcd, 1, 2, 3), xdpDrop},
		{"another run", frame(2, 0xab, 0xce, 1, 2, 3), xdpPass},
		{"another kind of address", frame(0, 0xab, 0xcd, 1, 2, 3), xdpPass},
		{"the destination does not count", append([]byte{2, 0xab, 0xcd, 0, 0, 0}, frame()[6:]...), xdpPass},
	} {
		got, err := r.Program().Run(&ebpf.RunOptions{Data: c.frame})
		if err != nil || got != c.want {
			t.Errorf("%s: verdict %d, %v, want %d", c.name, got, err, c.want)
		}
	}
	reasons, queues, err := r.Counters()
	if err != nil || reasons["no_socket"] != 1 || reasons["foreign_run"] != 3 || reasons["redirected"] != 0 || queues[0] != 1 {
		t.Errorf("counters %v, queues %v, %v", reasons, queues[:2], err)
	}
	for range 2 {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := NewMarked(MarkedOptions{Queues: MaxQueues + 1}); err == nil {
		t.Error("more queues than there are counters: accepted")
	}
}
