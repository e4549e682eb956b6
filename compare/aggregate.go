// SPDX-License-Identifier: Apache-2.0

package compare

import "slices"

// Aggregate fills a's figures and totals from its trials among all; what was
// requested and effective, and the bounds of a search, are left alone. A
// figure is the median over valid measured trials, the loss ratio that of all
// of them together. It may be called again when there are more trials.
func (a *Arm) Aggregate(trials []Trial, z Size) {
	a.Trials, a.Valid = 0, 0
	a.Sent, a.Received, a.Lost, a.Unexplained = 0, 0, 0, 0
	a.Duplicate, a.Reordered, a.Corrupt, a.Foreign, a.Late = 0, 0, 0, 0, 0
	a.Ledger, a.PerWorker, a.Unsent, a.Handed, a.Fragments = nil, nil, nil, nil, nil
	var mine []*Trial
	for i := range trials {
		t := &trials[i]
		if t.Arm != a.Name || (t.Kind != Measured && t.Kind != AA) {
			continue
		}
		a.Trials++
		if !t.Valid {
			continue
		}
		a.Valid++
		mine = append(mine, t)
		a.Sent, a.Received, a.Lost, a.Unexplained = a.Sent+t.Sent, a.Received+t.Received, a.Lost+t.Lost, a.Unexplained+t.Unexplained
		a.Duplicate, a.Reordered, a.Corrupt = a.Duplicate+t.Duplicate, a.Reordered+t.Reordered, a.Corrupt+t.Corrupt
		a.Foreign, a.Late = a.Foreign+t.Foreign, a.Late+t.Late
		a.PerWorker = addWorkers(a.PerWorker, t.PerWorker)
		a.Fragments = a.Fragments.plus(t.Fragments)
		a.Ledger = addRow(a.Ledger, t.Ledger)
		if t.Handed != nil {
			if a.Handed == nil {
				a.Handed = new(uint64)
			}
			*a.Handed += *t.Handed
			a.Unsent = addRow(a.Unsent, t.Unsent)
		}
	}
	middle := func(f func(*Trial) *float64) *float64 {
		var values []float64
		for _, t := range mine {
			if v := f(t); v != nil && finite(*v) {
				values = append(values, *v)
			}
		}
		return Num(median(values))
	}
	of := func(name string) *float64 {
		m, _ := LookupMetric(name)
		return middle(m.OfTrial)
	}
	a.OfferedPPS, a.ReceivedPPS = of(MetricOffered), of(MetricReceived)
	a.NsPerPacket, a.TSCPerPacket = Num(1e9/Val(a.ReceivedPPS)), of("tsc_per_packet")
	a.LossRatio = Num(float64(a.Lost) / float64(a.Sent))
	a.WireBPS = nil
	if z != (Size{}) {
		a.WireBPS = Num(Val(a.ReceivedPPS) * z.WireBits())
	}
	a.LatencyP50Ns, a.LatencyP99Ns = of("latency_p50_ns"), of("latency_p99_ns")
	a.LateMeanNs = middle(func(t *Trial) *float64 { return t.LateMeanNs })
	a.LateMaxNs = 0
	var latencies []*Latency
	for _, t := range mine {
		latencies = append(latencies, t.LatencyNs)
		if t.LatencyNs != nil {
			a.LateMaxNs = max(a.LateMaxNs, t.LateMaxNs)
		}
	}
	a.LatencyNs = MergeLatency(latencies)
	a.CPU = CPU{WorkNsPerPacket: of(MetricWork), SpinNsPerPacket: of("cpu.spin_ns_per_packet"), Cores: of("cpu.cores"), CoresPerMpps: of("cpu.cores_per_mpps")}
	part := func(f func(*CPU) *float64) *float64 {
		return middle(func(t *Trial) *float64 {
			if t.CPU == nil {
				return nil
			}
			return f(t.CPU)
		})
	}
	a.CPU.UserNsPerPacket = part(func(c *CPU) *float64 { return c.UserNsPerPacket })
	a.CPU.SystemNsPerPacket = part(func(c *CPU) *float64 { return c.SystemNsPerPacket })
	a.CPU.SoftirqNsPerPacket = part(func(c *CPU) *float64 { return c.SoftirqNsPerPacket })
	for _, t := range mine {
		if t.CPU != nil {
			a.CPU.Method = t.CPU.Method
		}
	}
}

// addRow adds a trial's rows to the arm's of the same place and witness; the
// sum is as sure as its least sure part.
func addRow(sum, rows []LedgerRow) []LedgerRow {
	for _, row := range rows {
		i := slices.IndexFunc(sum, func(r LedgerRow) bool { return r.At == row.At && r.Witness == row.Witness })
		if i < 0 {
			sum = append(sum, row)
			continue
		}
		sum[i].Packets += row.Packets
		if row.Grade == Bounded {
			sum[i].Grade = Bounded
		}
	}
	return sum
}
