// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"math"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/trial"
)

// echo says whether the SUT answers, so that what counts is how soon.
func (s *cell) echo() bool { return s.o.Plan.Test == "udp-echo" }

// pingPong says whether requests wait for the answer before.
func (s *cell) pingPong() bool { return s.o.Plan.Mode == compare.ModePingPong }

// limitName names what stands for the rig's ceiling in this test.
func (s *cell) limitName() string {
	if s.echo() {
		return compare.LimitReflect
	}
	return compare.LimitDrop
}

// limitWords is a limit as people know it.
func limitWords(name string) string {
	if name == compare.LimitReflect {
		return "XDP_TX"
	}
	return "XDP_DROP"
}

// limitSpec is a trial of the limit under the cell's load.
func (s *cell) limitSpec() trial.Spec {
	spec := trial.Spec{Role: agent.Drop, RunID: s.runID(), Load: s.load(1), Setting: s.limitSetting()}
	if s.echo() {
		spec.Test, spec.Role = s.o.Plan.Test, agent.Reflect
	}
	return spec
}

// limitLatency is the distribution of the limit's answers over all its valid trials at the cell's load; nil without any.
func limitLatency(trials []compare.Trial) *compare.Latency {
	var parts []*compare.Latency
	for i := range trials {
		if t := &trials[i]; t.Kind == compare.LimitRun && t.Valid {
			parts = append(parts, t.LatencyNs)
		}
	}
	return compare.MergeLatency(parts)
}

// latency is the mean of a metric of latency over the candidate's trials, ns; NaN when one has none.
func (c *scored) latency(metric string) float64 {
	m, _ := compare.LookupMetric(metric)
	return c.mean(func(t *compare.Trial) float64 {
		if v := m.OfTrial(t); v != nil {
			return *v
		}
		return math.NaN()
	})
}

// sameTail is how much two candidates' 99th percentiles may differ for their medians to decide: of a pilot's few hundred or
// thousand answers, the tail is known no better.
const sameTail = 1.3

// betterLatency orders candidates that lost about as little: whose tail is much shorter, else whose median is lower.
func betterLatency(x, y *scored) int {
	if tx, ty := x.latency(compare.MetricP99), y.latency(compare.MetricP99); tx > ty*sameTail || ty > tx*sameTail {
		return cmp.Compare(ty, tx)
	}
	mx, my := x.latency(compare.MetricP50), y.latency(compare.MetricP50)
	if math.IsNaN(mx) || math.IsNaN(my) {
		return cmp.Compare(y.rank, x.rank)
	}
	return cmp.Compare(my, mx)
}
