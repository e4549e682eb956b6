// SPDX-License-Identifier: Apache-2.0

package compare

import "fmt"

// AdjustSweep adjusts the verdicts of a sweep's cells for having been looked
// at together, by Holm's method on their P. A "faster" or "slower" whose
// adjusted p is above 5 % becomes "inconclusive".
func AdjustSweep(docs []Document) {
	var p []float64
	var verdicts []*Comparison
	for i := range docs {
		if v := docs[i].Verdict; v != nil && v.P != nil {
			p, verdicts = append(p, *v.P), append(verdicts, v)
		}
	}
	for i, adjusted := range Holm(p) {
		v := verdicts[i]
		v.PHolm = Num(adjusted)
		if adjusted > 0.05 && (v.Word == Faster || v.Word == Slower) {
			v.Because = fmt.Sprintf("%s in this cell alone, but not after adjusting for %d cells (p %.2g)", v.Word, len(p), adjusted)
			v.Word = Inconclusive
		}
	}
}
