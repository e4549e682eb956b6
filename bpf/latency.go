// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"fmt"

	"github.com/cilium/ebpf"
)

// The histogram of c/latency.h.
const (
	latencySubBits = 7
	latencySub     = 1 << latencySubBits
	latencyTop     = 36
	latencyBuckets = (latencyTop - latencySubBits + 2) * latencySub
)

// LatencyBucket is one non-empty step of a latency distribution.
type LatencyBucket struct {
	From, To uint64 // ns, inclusive
	Count    uint64
}

// readLatencies returns a histogram in rising order. A bucket is at most 0.8 % wide; the last possible one has no upper end.
func readLatencies(m *ebpf.Map) ([]LatencyBucket, error) {
	var out []LatencyBucket
	for i := range uint32(latencyBuckets) {
		n, err := sumPerCPU(m, i)
		if err != nil {
			return nil, fmt.Errorf("read latency bucket %d: %w", i, err)
		}
		if n > 0 {
			from, to := latencyRange(i)
			out = append(out, LatencyBucket{from, to, n})
		}
	}
	return out, nil
}

// latencyRange is the inverse of bucket in c/latency.h.
func latencyRange(i uint32) (from, to uint64) {
	if i < 2*latencySub { // up to there a bucket is 1 ns wide
		return uint64(i), uint64(i)
	}
	shift := i/latencySub - 1
	from = uint64(i-shift*latencySub) << shift
	return from, from + 1<<shift - 1
}
