// SPDX-License-Identifier: Apache-2.0

package compare

// Metric is a number every arm may have. Its Name is the arm's JSON path.
type Metric struct {
	Name    string
	Unit    string
	Lower   bool // lower is better
	OfArm   func(*Arm) *float64
	OfTrial func(*Trial) *float64 // nil when only an arm has it
}

// Metrics are all metrics, in the order they are listed to a user.
func Metrics() []Metric {
	cpu := func(f func(*CPU) *float64) func(*Trial) *float64 {
		return func(t *Trial) *float64 {
			if t.CPU == nil {
				return nil
			}
			return f(t.CPU)
		}
	}
	latency := func(f func(*Latency) *float64) func(*Trial) *float64 {
		return func(t *Trial) *float64 {
			if t.LatencyNs == nil {
				return nil
			}
			return f(t.LatencyNs)
		}
	}
	work := func(c *CPU) *float64 { return c.WorkNsPerPacket }
	spin := func(c *CPU) *float64 { return c.SpinNsPerPacket }
	cores := func(c *CPU) *float64 { return c.Cores }
	perMpps := func(c *CPU) *float64 { return c.CoresPerMpps }
	p50 := func(l *Latency) *float64 { return l.P50 }
	p99 := func(l *Latency) *float64 { return l.P99 }
	return []Metric{
		{MetricReceived, "packets/s", false, func(a *Arm) *float64 { return a.ReceivedPPS }, func(t *Trial) *float64 { return Num(t.ReceivedPPS()) }},
		{MetricOffered, "packets/s", false, func(a *Arm) *float64 { return a.OfferedPPS }, func(t *Trial) *float64 { return Num(t.SentPPS()) }},
		{MetricLoss, "ratio", true, func(a *Arm) *float64 { return a.LossRatio }, func(t *Trial) *float64 { return Num(t.LossRatio()) }},
		{"ns_per_packet", "ns", true, func(a *Arm) *float64 { return a.NsPerPacket }, func(t *Trial) *float64 { return Num(1e9 / t.ReceivedPPS()) }},
		{MetricWork, "ns", true, func(a *Arm) *float64 { return work(&a.CPU) }, cpu(work)},
		{"cpu.spin_ns_per_packet", "ns", true, func(a *Arm) *float64 { return spin(&a.CPU) }, cpu(spin)},
		{"cpu.cores", "cores", true, func(a *Arm) *float64 { return cores(&a.CPU) }, cpu(cores)},
		{"cpu.cores_per_mpps", "cores", true, func(a *Arm) *float64 { return perMpps(&a.CPU) }, cpu(perMpps)},
		{"tsc_per_packet", "cycles", true, func(a *Arm) *float64 { return a.TSCPerPacket }, func(t *Trial) *float64 { return t.TSCPerPacket }},
		{MetricP50, "ns", true, func(a *Arm) *float64 { return a.LatencyP50Ns }, latency(p50)},
		{MetricP99, "ns", true, func(a *Arm) *float64 { return a.LatencyP99Ns }, latency(p99)},
		{"unexplained", "packets", true, func(a *Arm) *float64 { return Num(float64(a.Unexplained)) }, func(t *Trial) *float64 { return Num(float64(t.Unexplained)) }},
		{"lower_pps", "packets/s", false, func(a *Arm) *float64 { return a.LowerPPS }, nil},
		{"upper_pps", "packets/s", false, func(a *Arm) *float64 { return a.UpperPPS }, nil},
		{MetricConditional, "packets/s", false, func(a *Arm) *float64 { return a.ConditionalPPS }, nil},
	}
}

// Names of the metrics the headline chooses among.
const (
	MetricReceived = "received_pps"
	MetricOffered  = "offered_pps"
	MetricLoss     = "loss_ratio"
	MetricWork     = "cpu.work_ns_per_packet"
	// MetricConditional is what a search compares.
	MetricConditional = "conditional_pps"
	MetricP50         = "latency_p50_ns"
	MetricP99         = "latency_p99_ns"
)

// LookupMetric finds a metric by name.
func LookupMetric(name string) (Metric, bool) {
	for _, m := range Metrics() {
		if m.Name == name {
			return m, true
		}
	}
	return Metric{}, false
}

func metricNames() []string {
	var names []string
	for _, m := range Metrics() {
		names = append(names, m.Name)
	}
	return names
}
