// SPDX-License-Identifier: Apache-2.0

package compare

// GoalResult is what a search found for one goal (RFC 9971, Goal Result). Rates are packets/s.
type GoalResult struct {
	Goal Goal `json:"goal"`
	// Regular says that both bounds were found, within the goal's width. Else Irregular is why not, and what is given is what was found.
	Regular   bool      `json:"regular"`
	Irregular Irregular `json:"irregular,omitempty"`
	Because   string    `json:"because,omitempty"` // the same in words
	// LowerPPS is the relevant lower bound: the largest load below the upper bound that upheld the goal.
	LowerPPS *float64 `json:"lower_pps"`
	// UpperPPS is the relevant upper bound: the smallest load that did not.
	UpperPPS *float64 `json:"upper_pps"`
	// ConditionalPPS is the conditional throughput: what is forwarded at the lower bound.
	ConditionalPPS *float64 `json:"conditional_pps"`
}

// Irregular is why a goal has no regular result.
type Irregular string

const (
	AtMaxLoad  Irregular = "max_load" // the highest load was borne: there is no upper bound
	AtMinLoad  Irregular = "min_load" // the lowest load was not borne: there is no lower bound
	EndedEarly Irregular = "ended"    // the search ended before the bounds were within the width
)

// SearchInfo is what all arms of a search had in common.
type SearchInfo struct {
	Goals []Goal `json:"goals"`
	// MinLoadPPS and MaxLoadPPS are the lowest and the highest load, packets/s. MaxLoadIs says what set the highest:
	// "generator", "line" or "plan".
	MinLoadPPS *float64 `json:"min_load_pps"`
	MaxLoadPPS *float64 `json:"max_load_pps"`
	MaxLoadIs  string   `json:"max_load_is"`
	// Seconds is how long all searches took together, pauses between trials included.
	Seconds float64 `json:"seconds"`
}

// SetGoals puts a search's results on the arm; the first goal's are its metrics.
func (a *Arm) SetGoals(results []GoalResult) {
	a.Goals = results
	a.LowerPPS, a.UpperPPS, a.ConditionalPPS = nil, nil, nil
	if len(results) > 0 {
		r := results[0]
		a.LowerPPS, a.UpperPPS, a.ConditionalPPS = r.LowerPPS, r.UpperPPS, r.ConditionalPPS
	}
}
