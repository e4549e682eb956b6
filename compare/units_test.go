// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// near compares within a part in 10^9.
func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(math.Abs(a), math.Abs(b), 1e-300) }

// refused fails the test unless err is a UsageError with all parts in its text.
func refused(t *testing.T, in string, err error, parts ...string) {
	t.Helper()
	var usage *UsageError
	if !errors.As(err, &usage) {
		t.Errorf("%q: error %v, want a UsageError", in, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q: %q lacks %q", in, err, part)
		}
	}
}

func TestParseCount(t *testing.T) {
	for in, want := range map[string]uint64{"1": 1, "1000000": 1e6, "1_000_000": 1e6, "1M": 1e6, "2.5k": 2500, "1g": 1e9} {
		if n, err := ParseCount(in); err != nil || n != want {
			t.Errorf("%q: %d, %v, want %d", in, n, err, want)
		}
	}
	for in, part := range map[string]string{"": "not a number", "0": "at least 1", "1.5": "not a whole", "-3": "not a number", "1e6": "not a number",
		"9999G": "40-bit", "NaN": "not a number", "inf": "not a number", "M": "not a number"} {
		_, err := ParseCount(in)
		refused(t, in, err, part)
	}
}

func TestParseDuration(t *testing.T) {
	if d, err := ParseDuration("1.5s"); err != nil || d != 1500*time.Millisecond {
		t.Errorf("1.5s: %v, %v", d, err)
	}
	for in, part := range map[string]string{"10": `did you mean "10s"?`, "": "not a duration", "-1s": "positive", "0s": "positive", "25h": "a day", "x": "10s, 500ms"} {
		_, err := ParseDuration(in)
		refused(t, in, err, part)
	}
}

func TestBytes(t *testing.T) {
	for in, want := range map[string]uint64{"4096": 4096, "4k": 4096, "8M": 8 << 20, "1G": 1 << 30} {
		n, err := parseBytes(in)
		if err != nil || n != want {
			t.Errorf("%q: %d, %v", in, n, err)
		}
		if back, err := parseBytes(formatBytes(n)); err != nil || back != n {
			t.Errorf("%q: formatted %q", in, formatBytes(n))
		}
	}
	for _, in := range []string{"", "k", "1.5M", "-1", "8MB", "99999999999"} {
		if n, err := parseBytes(in); err == nil {
			t.Errorf("%q: %d", in, n)
		}
	}
}

func TestParseSizes(t *testing.T) {
	sizes, err := ParseSizes("64, 128,imix,1518", 4)
	if err != nil || len(sizes) != 4 || sizes[0].Bytes != 64 || !sizes[2].IMIX || sizes[3].Bytes != 1518 {
		t.Errorf("sizes %v, %v", sizes, err)
	}
	for _, c := range []struct {
		in    string
		ip    int
		parts []string
	}{
		{"63", 4, []string{"at least 64", "--size 64", "--payload"}},
		{"83", 6, []string{"84 bytes", "--size 84"}},
		{"1519", 4, []string{"at most 1518", "--size 1518"}},
		{"imix", 6, []string{"84"}},
		{"imax", 4, []string{`did you mean "imix"?`}},
		{"64,64", 4, []string{"twice"}},
		{"64,", 4, []string{"not a number of bytes"}},
		{"-64", 4, nil}, {"0", 4, []string{"at least 64"}}, {"64.5", 4, nil},
	} {
		_, err := ParseSizes(c.in, c.ip)
		refused(t, c.in, err, c.parts...)
	}
}

func TestSizeArithmetic(t *testing.T) {
	if z := (Size{IMIX: true}); !near(z.FrameBytes(), (9*64+5*594+2*1518)/16.0) {
		t.Errorf("mean imix frame %v", z.FrameBytes())
	}
	// S1's 1024 is payload: 1024 + 8 UDP + 20 IP + 14 Ethernet + 4 FCS.
	z, err := SizeOfPayload(1024, 4)
	if err != nil || z.Bytes != 1070 || !near(z.PayloadBytes(4), 1024) {
		t.Errorf("payload 1024: %v, %v", z, err)
	}
	if z, err := SizeOfPayload(18, 6); err != nil || z.Bytes != 84 {
		t.Errorf("payload 18 over IPv6: %v, %v", z, err)
	}
	for _, n := range []int{17, 1473, -1, math.MaxInt} {
		_, err := SizeOfPayload(n, 4)
		refused(t, "payload", err, "18..1472")
	}
}

func TestParseRate(t *testing.T) {
	for _, c := range []struct {
		in        string
		size      Size
		link, lim float64
		pps       float64
		text      string
	}{
		{"max", Size{Bytes: 64}, 0, 0, 0, "max"},
		{"2M", Size{Bytes: 64}, 0, 0, 2e6, "2Mpps"},
		{"1.5Mpps", Size{Bytes: 64}, 0, 0, 1.5e6, "1.5Mpps"},
		{"300k", Size{Bytes: 1518}, 0, 0, 3e5, "300kpps"},
		{"1488095", Size{Bytes: 64}, 0, 0, 1488095, "1488095pps"},
		{"10Gbps", Size{Bytes: 64}, 0, 0, 1e10 / 672, "10Gbps"},
		{"line:1g", Size{Bytes: 64}, 0, 0, 1e9 / 672, "line:1G"},
		{"line:1G", Size{Bytes: 64}, 1e10, 0, 1e9 / 672, "line:1G"},
		{"line:2.5gbps", Size{Bytes: 64}, 0, 0, 2.5e9 / 672, "line:2.5G"},
		{"line", Size{Bytes: 1518}, 1e10, 0, 1e10 / (1538 * 8), "line"},
		{"50%line", Size{Bytes: 64}, 1e10, 0, 5e9 / 672, "50%line"},
		{"33.3%line:10g", Size{Bytes: 64}, 0, 0, 3.33e9 / 672, "33.3%line:10G"},
		{"50%limit", Size{Bytes: 64}, 0, 6e6, 3e6, "50%limit"},
		{"100%limit", Size{Bytes: 64}, 0, 6e6, 6e6, "100%limit"},
		{"line:1g", Size{IMIX: true}, 0, 0, 1e9 / ((411.375 + 20) * 8), "line:1G"},
	} {
		r, err := ParseRate(c.in)
		if err != nil {
			t.Errorf("%q: %v", c.in, err)
			continue
		}
		if r.String() != c.text {
			t.Errorf("%q: text %q, want %q", c.in, r, c.text)
		}
		if pps, err := r.Resolve(c.size, c.link, c.lim); err != nil || !near(pps, c.pps) {
			t.Errorf("%q of %v: %v packets/s, %v, want %v", c.in, c.size, pps, err, c.pps)
		}
	}
	for in, part := range map[string]string{
		"": "as in max", "lin": `did you mean "line"?`, "10G": `did you mean "10gbps"?`, "0": "above 0", "-1M": "not a rate", "limit": "not a rate", "50%": "of line or of limit",
		"101%line": "at most 100", "0%line": "at most 100", "x%line": "not a percentage", "line:": "bit rate", "line:5": "bit rate", "2M:1g": "not a rate", "1e6": "not a rate",
		"10bps": "1 kbps", "5Tbps": "1 Tbps", "0.5pps": "less than one", "NaN": "not a rate", "inf%line": "not a percentage",
	} {
		_, err := ParseRate(in)
		refused(t, in, err, part)
	}
	line, _ := ParseRate("line")
	if _, err := line.Resolve(Size{Bytes: 64}, 0, 0); err == nil {
		t.Error("line resolved without a link")
	}
	limit, _ := ParseRate("50%limit")
	if _, err := limit.Resolve(Size{Bytes: 64}, 1e9, 0); err == nil {
		t.Error("limit resolved without a limit")
	}
	if _, err := (Rate{}).Resolve(Size{Bytes: 64}, 1e9, 1); err == nil {
		t.Error("no rate resolved")
	}
}

func TestParseWork(t *testing.T) {
	for in, want := range map[string]Work{"": {}, "none": {}, "0": {}, "800ns": {Time: 800}, "5us": {Time: 5000}, "1.5µs": {Time: 1500}, "loop:100": {Loops: 100}, "loop:10k": {Loops: 10000}} {
		w, err := ParseWork(in)
		if err != nil || w != want {
			t.Errorf("%q: %v, %v", in, w, err)
		}
		if back, err := ParseWork(w.String()); err != nil || back != w {
			t.Errorf("%q: text %q gives %v, %v", in, w, back, err)
		}
	}
	for in, part := range map[string]string{"800": "unit", "loop": "count", "loop:": "whole", "loop:1.5": "whole", "loop:0": "whole", "-5us": "positive", "2s": "second"} {
		_, err := ParseWork(in)
		refused(t, in, err, part)
	}
}

func TestParseCPUs(t *testing.T) {
	for in, want := range map[string]string{"sut=0,peer=1,napi=0": "sut=0,peer=1,napi=0", "peer=1, sut=0": "sut=0,peer=1", "sut=0-3,peer-napi=4+6+7": "sut=0-3,peer-napi=4+6-7"} {
		c, err := ParseCPUs(in)
		if err != nil || c.String() != want {
			t.Errorf("%q: %q, %v", in, c, err)
		}
	}
	for in, part := range map[string]string{"": "role=cpu", "sut": "role=cpu", "stu=0": `did you mean "sut"?`, "sut=": "CPU number", "sut=a": "CPU number", "sut=3-1": "CPU number",
		"sut=0,sut=1": "twice", "sut=0+0-2": "twice", "sut=99999": "CPU number"} {
		_, err := ParseCPUs(in)
		refused(t, in, err, part)
	}
}

func FuzzParseRate(f *testing.F) {
	for _, s := range []string{"max", "2M", "10Gbps", "50%line:1g", "0.00000001%limit", "line", "1e9", "%", ":"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := ParseRate(s)
		if err != nil {
			return
		}
		back, err := ParseRate(r.String())
		if err != nil || back.String() != r.String() {
			t.Fatalf("%q: text %q gives %q, %v", s, r, back, err)
		}
		pps, err := r.Resolve(Size{Bytes: 64}, 1e10, 6e6)
		if err != nil || math.IsNaN(pps) || pps < 0 || math.IsInf(pps, 0) || (pps == 0) != (r.Unit == MaxRate) {
			t.Fatalf("%q: %v packets/s, %v", s, pps, err)
		}
	})
}

func FuzzUnits(f *testing.F) {
	for _, s := range []string{"1M", "64,128,imix", "10s", "loop:1k", "800ns", "sut=0-3,peer=1", "8M", "."} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, err := ParseCount(s); err == nil && (n == 0 || n > 1<<40) {
			t.Errorf("count %q: %d", s, n)
		}
		if d, err := ParseDuration(s); err == nil && d <= 0 {
			t.Errorf("duration %q: %v", s, d)
		}
		if w, err := ParseWork(s); err == nil {
			if back, err := ParseWork(w.String()); err != nil || back != w {
				t.Errorf("work %q: %v, %v", s, back, err)
			}
		}
		if c, err := ParseCPUs(s); err == nil {
			if back, err := ParseCPUs(c.String()); err != nil || back.String() != c.String() {
				t.Errorf("cpus %q: %v, %v", s, back, err)
			}
		}
		if n, err := parseBytes(s); err == nil {
			if back, err := parseBytes(formatBytes(n)); err != nil || back != n {
				t.Errorf("bytes %q: %d as %q gives %d, %v", s, n, formatBytes(n), back, err)
			}
		}
		if sizes, err := ParseSizes(s, 6); err == nil {
			for _, z := range sizes {
				if z.FrameBytes() < MinFrameIPv6 || z.FrameBytes() > MaxFrame {
					t.Errorf("size %q: %v", s, z)
				}
			}
		}
	})
}

func TestCycleHoldsTheMix(t *testing.T) {
	if c := (Size{Bytes: 128}).Cycle(); len(c) != 1 || c[0] != 128 {
		t.Errorf("one size: %v", c)
	}
	c := (Size{IMIX: true}).Cycle()
	times, sum := map[int]int{}, 0
	for _, bytes := range c {
		times[bytes]++
		sum += bytes
	}
	if len(c) != 16 || times[64] != 9 || times[594] != 5 || times[1518] != 2 || !near(float64(sum)/16, (Size{IMIX: true}).FrameBytes()) {
		t.Errorf("the mix: %v", c)
	}
}
