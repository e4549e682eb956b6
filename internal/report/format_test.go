// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"strings"
	"testing"
)

func TestFormats(t *testing.T) {
	nan := math.NaN()
	for _, c := range []struct{ name, got, want string }{
		{"thousands 0", thousands(0), "0"},
		{"thousands 999", thousands(999), "999"},
		{"thousands 1000", thousands(1000), "1,000"},
		{"thousands min", thousands(math.MinInt64), "-9,223,372,036,854,775,808"},
		{"counter max", uthousands(math.MaxUint64), "18,446,744,073,709,551,615"},
		{"no loss", percent(0), "0.00 %"},
		{"one in a million", percent(1e-6), "0.0001 %"},
		{"hardly any", percent(1e-12), "<0.000001 %"},
		{"nearly all", percent(0.99999), "99.999 %"},
		{"all but one", percent(1 - 1e-12), ">99.999999 %"},
		{"all", percent(1), "100.00 %"},
		{"loss", percent(0.79131), "79.13 %"},
		{"loss NaN", percent(nan), "-"},
		{"pps", pps(1488095.238), "1,488,095"},
		{"few pps", pps(12.34), "12.3"},
		{"pps Inf", pps(math.Inf(1)), "-"},
		{"pps huge", pps(1e300), "1.000e+300"},
		{"Gb/s", gbps(999999840), "1.000"},
		{"little Gb/s", gbps(672), "6.72e-07"},
		{"ns", nanoseconds(3220.4), "3,220"},
		{"few ns", nanoseconds(9.876), "9.88"},
		{"ratio", ratioText(4.789), "4.79 x"},
		{"ratio near one", ratioText(0.9987), "0.999 x"},
		{"ratio small", ratioText(0.0213), "0.0213 x"},
		{"minus nothing", fixed(-0.001, 2), "0.00"},
		{"short rate", shortRate(4.9e6), "4.9 Mpps"},
		{"short rate k", shortRate(300000), "300 kpps"},
		{"bits", shortBits(999999840), "1 Gb/s"},
		{"megabits", shortBits(134400000), "134.4 Mb/s"},
		{"seconds", secondsText(31), "31 s"},
		{"minutes", secondsText(125), "2 min 5 s"},
		{"hours", secondsText(3600 * 25.5), "25 h 30 min"},
		{"memory", memoryText(8 << 20), "8 MiB"},
		{"one", plural(1, "flow"), "1 flow"},
		{"many", plural(4096, "flow"), "4,096 flows"},
		{"shell", commandLine([]string{"twopath", "--require", "xdp:auto.loss_ratio<=1e-4", "it's"}), `twopath --require 'xdp:auto.loss_ratio<=1e-4' 'it'\''s'`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %q, want %q", c.name, c.got, c.want)
		}
	}
}

// A loss that is not zero never prints as zero, one that is not total never as
// total, whatever the number.
func FuzzPercent(f *testing.F) {
	for _, seed := range []float64{0, 1e-300, 1e-6, 0.00004999, 0.5, 0.99995, 0.999999999, 1, 2, -1} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, v float64) {
		s := percent(v)
		zero := strings.Trim(strings.TrimSuffix(s, " %"), "0.-") == ""
		switch {
		case math.IsNaN(v) || math.IsInf(v, 0):
			if s != missing {
				t.Errorf("%v prints as %q", v, s)
			}
		case zero != (v == 0):
			t.Errorf("%v prints as %q", v, s)
		case strings.HasPrefix(s, "100.") && strings.Trim(s, "10. %") == "" && v < 1:
			t.Errorf("%v prints as %q", v, s)
		}
	})
}
