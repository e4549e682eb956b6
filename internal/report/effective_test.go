// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"twopath/compare"
)

// An A/B of a host knob shows both of its values, what no arm asked for neither.
func TestEffectiveTellsAKnobOfBothArms(t *testing.T) {
	arm := func(name, weight string, requested map[string]string) compare.Arm {
		return compare.Arm{Name: name, Engine: compare.Kernel, Requested: requested,
			Effective: compare.Effective{Other: map[string]string{"dev_weight": weight, "gro_flush_timeout": "0"}}}
	}
	d := compare.Document{Arms: []compare.Arm{arm("kernel:nosocket", "64", map[string]string{"variant": "nosocket"}),
		arm("kernel:nosocket+dev_weight=512", "512", map[string]string{"variant": "nosocket", "dev_weight": "512"})}}
	v := newView(&d)
	for i, want := range []string{"dev_weight=64", "dev_weight=512"} {
		if got := v.effective(v.arms[i]); got != want {
			t.Errorf("%s: %q, want %q", v.arms[i].Name, got, want)
		}
	}
}
