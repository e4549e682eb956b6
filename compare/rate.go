// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"strconv"
	"strings"
)

// RateUnit is what a [Rate] is measured in.
type RateUnit string

const (
	NoRate  RateUnit = ""
	MaxRate RateUnit = "max"   // as fast as the peer can
	PPS     RateUnit = "pps"   // frames per second
	WireBPS RateUnit = "bps"   // bits per second on the wire, preamble and gap included
	Line    RateUnit = "line"  // share of a link's bit rate
	OfLimit RateUnit = "limit" // share of the rig's own limit (XDP_DROP)
)

// maxPPS is 64-byte frames at 400 Gb/s and some: nobody means more.
const maxPPS = 1e9

// Rate is an offered load before it is resolved against a frame size and a link.
// The zero Rate means "not given".
type Rate struct {
	Unit  RateUnit
	Value float64 // packets or bits per second; a share (1 = all) for Line and OfLimit; 0 for max
	// LinkBPS is the link meant by Line, in bits per second; 0 is the real one.
	LinkBPS float64
}

// ParseRate reads a rate: max, 2M, 1.5Mpps, 10Gbps, line, line:1g, 50%line, 50%line:1g, 50%limit.
func ParseRate(s string) (Rate, error) {
	refuse := func(problem string) (Rate, error) {
		return Rate{}, &UsageError{What: "rate", Token: s, Problem: problem, Nearest: nearest(s, []string{"max", "line", "50%line", "50%limit"}),
			Hint: "as in max, 2M, 1.5Mpps, 10Gbps, line, line:1g, 50%line or 50%limit"}
	}
	low := strings.ToLower(s)
	if low == "max" {
		return Rate{Unit: MaxRate}, nil
	}
	share, rest := 1.0, low
	percent, after, hasPercent := strings.Cut(low, "%")
	if hasPercent {
		v, err := strconv.ParseFloat(percent, 64)
		if err != nil || strings.Trim(percent, "0123456789.") != "" {
			return refuse("not a percentage")
		}
		if v <= 0 || v > 100 {
			return refuse("a percentage is above 0 and at most 100")
		}
		share, rest = v/100, after
	}
	name, link, hasLink := strings.Cut(rest, ":")
	switch {
	case name == "line":
		r := Rate{Unit: Line, Value: share}
		if hasLink {
			v, err := parseNumber(strings.TrimSuffix(link, "bps"))
			if err != nil || v < 1e6 || v > 1e12 {
				return refuse(fmt.Sprintf("link %q is not a bit rate between 1M and 1T", link))
			}
			r.LinkBPS = v
		}
		return r, nil
	case rest == "limit" && hasPercent:
		return Rate{Unit: OfLimit, Value: share}, nil
	case hasPercent:
		return refuse("a percentage is of line or of limit")
	case hasLink:
		return refuse("not a rate")
	}
	unit, digits := PPS, rest
	if d, ok := strings.CutSuffix(rest, "pps"); ok {
		digits = d
	} else if d, ok := strings.CutSuffix(rest, "bps"); ok {
		unit, digits = WireBPS, d
	}
	v, err := parseNumber(digits)
	switch {
	case err != nil:
		return refuse("not a rate")
	case v <= 0:
		return refuse("must be above 0")
	case unit == PPS && v < 1:
		return refuse("less than one packet per second")
	case unit == PPS && v > maxPPS:
		return Rate{}, &UsageError{What: "rate", Token: s, Problem: "more than 1 G packets per second", Nearest: strings.TrimSuffix(rest, "pps") + "bps"}
	case unit == WireBPS && v < 1e3:
		return refuse("less than 1 kbps")
	case unit == WireBPS && v > 1e12:
		return refuse("more than 1 Tbps")
	}
	return Rate{Unit: unit, Value: v}, nil
}

// Resolve gives frames per second for frames of size z on a link of linkBPS
// bits per second (0 is unknown) and a rig limit of limitPPS (0 is unknown).
// The answer for max is 0: as fast as the peer can.
func (r Rate) Resolve(z Size, linkBPS, limitPPS float64) (float64, error) {
	switch r.Unit {
	case MaxRate:
		return 0, nil
	case PPS:
		return r.Value, nil
	case WireBPS:
		return r.Value / z.WireBits(), nil
	case Line:
		if r.LinkBPS > 0 {
			linkBPS = r.LinkBPS
		}
		if !(linkBPS > 0) {
			return 0, &UsageError{What: "rate", Token: r.String(), Problem: "the link's bit rate is not known", Hint: "name it, as in line:1g"}
		}
		return r.Value * linkBPS / z.WireBits(), nil
	case OfLimit:
		if !(limitPPS > 0) {
			return 0, fmt.Errorf("resolve rate %s: the rig's limit was not measured", r)
		}
		return r.Value * limitPPS, nil
	}
	return 0, fmt.Errorf("resolve rate: none given")
}

// String is the rate as typed; ParseRate reads it back.
func (r Rate) String() string {
	share := ""
	if r.Value != 1 {
		share = percentText(r.Value)
	}
	switch r.Unit {
	case MaxRate:
		return "max"
	case PPS:
		return formatNumber(r.Value) + "pps"
	case WireBPS:
		return formatNumber(r.Value) + "bps"
	case Line:
		if r.LinkBPS > 0 {
			return share + "line:" + formatNumber(r.LinkBPS)
		}
		return share + "line"
	case OfLimit:
		return percentText(r.Value) + "limit"
	}
	return ""
}

// percentText is a share in percent, to 12 digits and without an exponent.
func percentText(share float64) string {
	v, err := strconv.ParseFloat(strconv.FormatFloat(share*100, 'g', 12, 64), 64)
	if err != nil {
		v = share * 100
	}
	return strconv.FormatFloat(v, 'f', -1, 64) + "%"
}

// MarshalText writes the rate as typed; empty for the zero Rate.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (r *Rate) UnmarshalText(b []byte) error {
	*r = Rate{}
	if len(b) == 0 {
		return nil
	}
	v, err := ParseRate(string(b))
	if err == nil {
		*r = v
	}
	return err
}
