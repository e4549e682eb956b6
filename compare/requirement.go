// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Requirement is one --require: "ARM.METRIC OP NUMBER". ARM is an arm's name,
// or an engine (then each of its arms must comply), or "verdict" with the
// metrics of [VerdictMetrics].
type Requirement struct {
	Subject string
	Metric  string
	Op      string // <=, >=, <, >, ==, !=
	Number  float64
}

// VerdictMetrics are the metrics of the subject "verdict".
func VerdictMetrics() []string { return []string{"ratio", "ci_low", "ci_high", "blocks", "p"} }

func operators() []string { return []string{"<=", ">=", "==", "!=", "<", ">"} }

// ParseRequirement parses one requirement; a misspelt metric is refused with the list.
func ParseRequirement(s string) (Requirement, error) {
	refuse := func(token, problem string) (Requirement, error) {
		return Requirement{}, &UsageError{What: "require", Token: token, Problem: problem, Hint: "as in xdp:auto.loss_ratio<=1e-4"}
	}
	left, op, right := "", "", ""
	for i := range s {
		for _, o := range operators() {
			if op == "" && strings.HasPrefix(s[i:], o) {
				left, op, right = strings.TrimSpace(s[:i]), o, strings.TrimSpace(s[i+len(o):])
			}
		}
	}
	if op == "" {
		return refuse(s, "no comparison (one of "+strings.Join(operators(), " ")+")")
	}
	subject, metric, ok := strings.Cut(left, ".")
	if !ok || subject == "" {
		return refuse(left, "not ARM.METRIC")
	}
	metrics := metricNames()
	if subject == "verdict" {
		metrics = VerdictMetrics()
	} else if subject != Kernel && subject != XDP {
		a, err := ParseArm(subject)
		if err != nil {
			return Requirement{}, err
		}
		subject = a.String()
	}
	if !slices.Contains(metrics, metric) {
		return Requirement{}, unknown("require", metric, "no such metric", metrics)
	}
	v, err := parseLimit(right)
	if err != nil {
		return refuse(right, "not a number")
	}
	return Requirement{Subject: subject, Metric: metric, Op: op, Number: v}, nil
}

// parseLimit reads 1e-4, 0.01%, 1.2M.
func parseLimit(s string) (float64, error) {
	if v, err := strconv.ParseFloat(s, 64); err == nil && finite(v) {
		return v, nil
	}
	if strings.HasSuffix(s, "%") {
		return parseShare("require", s)
	}
	return parseNumber(s)
}

// String is the requirement as typed.
func (r Requirement) String() string {
	return r.Subject + "." + r.Metric + r.Op + strconv.FormatFloat(r.Number, 'g', -1, 64)
}

// Evaluate judges the requirement on a record. A number that is missing, and
// an arm that is not there, fail it: what was not measured is not met.
func (r Requirement) Evaluate(d *Document) RequirementResult {
	res := RequirementResult{Text: r.String(), OK: true}
	judge := func(who string, v *float64) {
		switch {
		case v == nil:
			res.OK, res.Because = false, fmt.Sprintf("%s: %s.%s was not measured", r, who, r.Metric)
		case !r.holds(*v) && res.OK:
			res.OK, res.Value, res.Because = false, v, fmt.Sprintf("%s: %s.%s is %s", r, who, r.Metric, strconv.FormatFloat(*v, 'g', 6, 64))
		case res.OK:
			res.Value = v
		}
	}
	if r.Subject == "verdict" {
		judge("verdict", verdictValue(d.Verdict, r.Metric))
		return res
	}
	metric, _ := LookupMetric(r.Metric)
	found := false
	for i := range d.Arms {
		if a := &d.Arms[i]; metric.OfArm != nil && (a.Name == r.Subject || a.Engine == r.Subject) {
			found = true
			judge(a.Name, metric.OfArm(a))
		}
	}
	if !found {
		var names []string
		for i := range d.Arms {
			names = append(names, d.Arms[i].Name)
		}
		res.OK, res.Because = false, fmt.Sprintf("%s: no such arm in this run (%s)", r, strings.Join(names, ", "))
	}
	return res
}

func (r Requirement) holds(v float64) bool {
	switch r.Op {
	case "<=":
		return v <= r.Number
	case ">=":
		return v >= r.Number
	case "<":
		return v < r.Number
	case ">":
		return v > r.Number
	case "==":
		return v == r.Number
	case "!=":
		return v != r.Number
	}
	return false
}

func verdictValue(c *Comparison, metric string) *float64 {
	if c == nil {
		return nil
	}
	switch metric {
	case "ratio":
		return c.Ratio
	case "ci_low", "ci_high":
		if c.CI == nil {
			return nil
		}
		if metric == "ci_low" {
			return &c.CI[0]
		}
		return &c.CI[1]
	case "blocks":
		return Num(float64(c.Blocks))
	case "p":
		return c.P
	}
	return nil
}
