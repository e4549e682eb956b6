// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Queues are the numbers of receive queues that a plan tries, each with as many readers. Several make a cell for each, so
// that what another queue and worker brings can be told.
type Queues []int

// maxQueues is more than any NIC has.
const maxQueues = 256

// ParseQueues reads a comma-separated list of numbers; one given twice is refused.
func ParseQueues(s string) (Queues, error) {
	var q Queues
	for _, field := range strings.Split(s, ",") {
		field = strings.TrimSpace(field)
		n, err := strconv.ParseUint(field, 10, 31)
		if err != nil {
			return nil, &UsageError{What: "queues", Token: field, Problem: "not a whole number", Hint: "as in 2 or 1,2,4"}
		}
		if slices.Contains(q, int(n)) {
			return nil, &UsageError{What: "queues", Token: field, Problem: "given twice"}
		}
		q = append(q, int(n))
	}
	return q, nil
}

// Most is the largest number; 0 when there is none.
func (q Queues) Most() int {
	most := 0
	for _, n := range q {
		most = max(most, n)
	}
	return most
}

func (q Queues) validate() error {
	if len(q) == 0 {
		return &UsageError{What: "queues", Problem: "none given", Hint: "use --queues 1"}
	}
	for _, n := range q {
		if n < 1 || n > maxQueues {
			return &UsageError{What: "queues", Token: strconv.Itoa(n), Problem: fmt.Sprintf("must be 1..%d", maxQueues), Hint: "use --queues 1"}
		}
	}
	return nil
}

// String is the list as typed.
func (q Queues) String() string {
	parts := make([]string, len(q))
	for i, n := range q {
		parts[i] = strconv.Itoa(n)
	}
	return strings.Join(parts, ",")
}

// MarshalJSON writes a number, or a list where there are several.
func (q Queues) MarshalJSON() ([]byte, error) {
	if len(q) == 1 {
		return strconv.AppendInt(nil, int64(q[0]), 10), nil
	}
	return json.Marshal([]int(q))
}

// UnmarshalJSON reads what MarshalJSON wrote. It does not judge the numbers: a record says what was run.
func (q *Queues) UnmarshalJSON(b []byte) error {
	var one int
	if err := json.Unmarshal(b, &one); err == nil {
		*q = Queues{one}
		if string(b) == "null" {
			*q = nil
		}
		return nil
	}
	var list []int
	if err := json.Unmarshal(b, &list); err != nil {
		return fmt.Errorf("queues %s are neither a number nor a list of numbers", b)
	}
	*q = list
	return nil
}

// MarshalYAML writes a number, or a list where there are several.
func (q Queues) MarshalYAML() (any, error) {
	if len(q) == 1 {
		return q[0], nil
	}
	return []int(q), nil
}
