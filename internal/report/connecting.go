// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"

	"twopath/compare"
)

// What is said otherwise where connections are what is counted.

// connects says whether the test opens connections.
func connects(doc *compare.Document) bool {
	t, _ := compare.LookupTest(doc.Test)
	return t.Connects
}

// unit is what is counted, in the plural, and of one.
func (v *view) unit() (many, one string) {
	if connects(v.doc) {
		return "connections", "connection"
	}
	return "packets", "packet"
}

// packetsEach is how many packets a connection took, both ways, in the mean of an arm's valid trials.
func (v *view) packetsEach(a *compare.Arm) *float64 {
	return v.mean(a, func(t *compare.Trial) *float64 { return t.PacketsPerConnection })
}

// connectionText is the load of a connection test.
func connectionText(doc *compare.Document) string {
	p := doc.Plan
	requests := "1 request each"
	if p.Requests > 1 {
		requests = fmt.Sprintf("%s requests each", thousands(int64(p.Requests)))
	}
	return fmt.Sprintf("%d connections at a time, %s, %s B body; client on the SUT's own engine", p.CC, requests, thousands(int64(p.Body)))
}

// errorUnit is what errors are counted in, where their label does not say it.
func (v *view) errorUnit() string {
	if connects(v.doc) {
		return "connections"
	}
	return ""
}
