// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"twopath/compare"
)

// mostInvalid is how many invalid trials the screen lists; the rest is counted,
// and so are those that only prepared the run.
const mostInvalid = 8

func (p *page) invalid(doc *compare.Document) {
	word := "INVALID"
	say := func(text string) {
		p.label(word, red, text)
		word = ""
	}
	listed, more := 0, 0
	prepared := map[string]uint64{}
	for i := range doc.Trials {
		t := &doc.Trials[i]
		switch {
		case t.Valid:
		case p.options.Wide || counted(t) && listed < mostInvalid:
			listed++
			say(invalidText(t))
		case counted(t):
			more++
		default:
			prepared[string(t.Kind)]++
		}
	}
	if more > 0 {
		say(fmt.Sprintf("and %s more (--wide lists all)", thousands(int64(more))))
	}
	var kinds []string
	for _, k := range byCount(prepared) {
		kinds = append(kinds, plural(int64(prepared[k]), oneLine(k)+" trial"))
	}
	if len(kinds) > 0 {
		say("outside the blocks: " + strings.Join(kinds, ", ") + " (--wide lists all)")
	}
}

func invalidText(t *compare.Trial) string {
	var where string
	switch {
	case !counted(t) && t.Block > 0:
		where = fmt.Sprintf("%s trial of block %d", t.Kind, t.Block)
	case t.Block > 0:
		where = fmt.Sprintf("block %d position %d", t.Block, t.Position)
	case t.Kind != "":
		where = string(t.Kind) + " trial"
	default:
		where = "trial"
	}
	if t.Attempt > 1 {
		where += fmt.Sprintf(", attempt %d", t.Attempt)
	}
	why := t.InvalidBecause
	if why == "" {
		why = "no reason recorded"
	}
	return where + ", " + t.Arm + ": " + why
}
