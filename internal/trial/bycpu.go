// SPDX-License-Identifier: Apache-2.0

package trial

import (
	"slices"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/rig"
)

// byCPU is who had the CPUs that the SUT's work is done on; nil where only threads were seen.
func (r *running) byCPU() []compare.CPUShare {
	c := r.received.CPU
	if c == nil || c.Method == "schedstat" || c.Times.At <= 0 {
		return nil
	}
	cpus := slices.Concat(r.b.CPUs.Readers, r.b.CPUs.NAPI)
	if r.b.CPUs.Placement == rig.Sender {
		cpus = append(cpus, r.b.CPUs.Gen...)
	}
	var out []compare.CPUShare
	for _, t := range c.Times.CPUs {
		if !slices.Contains(cpus, t.CPU) {
			continue
		}
		share := func(ns ...uint64) float64 {
			sum := uint64(0)
			for _, n := range ns {
				sum += n
			}
			return float64(sum) / float64(c.Times.At)
		}
		out = append(out, compare.CPUShare{CPU: t.CPU, Reader: share(t.SUT), NAPI: share(t.NAPI), Softirq: share(t.NetRX, t.NetTX),
			Interrupt: share(t.IRQ, t.Timer, t.Soft), Other: share(t.Other), Idle: share(t.Idle)})
	}
	return out
}

// milestones numbers what each worker noted.
func milestones(list []agent.Milestone) []compare.Milestone {
	var out []compare.Milestone
	index := map[int]int{}
	for _, m := range list {
		index[m.Worker]++
		out = append(out, compare.Milestone{Worker: m.Worker, Index: index[m.Worker], Packets: m.Packets, Bytes: m.Bytes, ElapsedNs: m.ElapsedNS, Waits: m.Waits, Calls: m.Calls})
	}
	return out
}
