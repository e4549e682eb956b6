// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"maps"
	"strings"
	"testing"
)

// What dnsperf 2.10.0 prints; the lines about interruption only when it was.
const perfText = `DNS Performance Testing Tool
Version 2.10.0

[Status] Command line: dnsperf -s 198.18.0.1
[Status] Sending queries (to 198.18.0.1:53)
[Status] Testing complete (end of file)

Statistics:

  Queries sent:         2484
  Queries completed:    2480 (99.84%)
  Queries lost:         3 (0.12%)
  Queries interrupted:  1 (0.04%)

  Response codes:       NOERROR 2170 (87.50%), NXDOMAIN 310 (12.50%)
  Average packet size:  request 36, response 101
  Run time (s):         0.496821
  Queries per second:   4999.788656

  Average Latency (s):  0.000101 (min 0.000022, max 0.003771)
  Latency StdDev (s):   0.000211

`

func TestParsePerf(t *testing.T) {
	got, err := ParsePerf(strings.NewReader(perfText))
	if err != nil {
		t.Fatal(err)
	}
	codes := map[string]uint64{"NOERROR": 2170, "NXDOMAIN": 310}
	if got.Sent != 2484 || got.Completed != 2480 || got.Lost != 3 || got.Interrupted != 1 || !maps.Equal(got.Codes, codes) || got.Seconds != 0.496821 ||
		got.Average != 0.000101 || got.Min != 0.000022 || got.Max != 0.003771 || got.StdDev != 0.000211 {
		t.Errorf("%+v", got)
	}
	for what, change := range map[string][2]string{
		"a count that does not add up": {"lost:         3", "lost:         4"},
		"codes that do not add up":     {"NXDOMAIN 310", "NXDOMAIN 311"},
		"a missing line":               {"Queries lost", "Queries gone"},
		"no number":                    {"sent:         2484", "sent:         many"},
		"a latency without a maximum":  {", max 0.003771", ""},
	} {
		if _, err := ParsePerf(strings.NewReader(strings.Replace(perfText, change[0], change[1], 1))); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
	if _, err := ParsePerf(strings.NewReader("")); err == nil {
		t.Error("no output is taken for a result")
	}
}

func FuzzParsePerf(f *testing.F) {
	f.Add(perfText)
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePerf(strings.NewReader(text))
		if err == nil && p.Sent != p.Completed+p.Lost+p.Interrupted {
			t.Errorf("%+v", p)
		}
	})
}
