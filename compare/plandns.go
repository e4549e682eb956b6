// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
)

// validateAnswers checks what only tests with prepared questions have.
func (p *Plan) validateAnswers(test TestInfo) error {
	if len(test.Drivers) == 0 {
		for key, v := range map[string]string{"zone": p.Zone, "queries": p.Queries, "driver": p.Driver} {
			if v != "" {
				return &UsageError{What: key, Token: v, Problem: p.Test + " asks for no names", Hint: "leave it out, or use the test dns"}
			}
		}
		if p.EDNS {
			return &UsageError{What: "edns", Token: "true", Problem: p.Test + " asks for no names", Hint: "leave it out, or use the test dns"}
		}
		return nil
	}
	if p.Driver != "" && !slices.Contains(test.Drivers, p.Driver) {
		return unknown("driver", p.Driver, "no such program", test.Drivers)
	}
	if p.Flows > test.MostFlows {
		return &UsageError{What: "flows", Token: fmt.Sprint(p.Flows), Problem: fmt.Sprintf("must be 1..%d in %s", test.MostFlows, p.Test),
			Hint: fmt.Sprintf("use --flows %d", test.MostFlows)}
	}
	return nil
}
