// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"strconv"
	"strings"
)

// Destinations of replayed frames.
const (
	MACOther = "other" // an address that no host has: the stack drops every frame behind the tap, as on a mirror port
	MACSUT   = "sut"   // the SUT's: its stack takes part
	MACKeep  = "keep"  // the capture's own
)

// CaptureRate is the rate of a replay for which none was given: about what the classic test of this kind replays at.
const CaptureRate = 150_000 // frames/s

// setSpeed reads original, xN or N, or max for as fast as it goes.
func setSpeed(p *Plan, s string) error {
	if s == "max" {
		p.Speed, p.Rates = 0, []Rate{{Unit: MaxRate}}
		return nil
	}
	n := 1.0
	if s != "original" {
		v, err := strconv.ParseFloat(strings.TrimPrefix(s, "x"), 64)
		if err != nil || !(v > 0) || math.IsInf(v, 0) {
			return &UsageError{What: "speed", Token: s, Problem: "not a multiple of the capture's own timing", Hint: "as in original, x0.5, x2 or max"}
		}
		n = v
	}
	p.Speed = n
	return nil
}

// completeCapture fills in what depends on a capture.
func (p *Plan) completeCapture() {
	if len(p.Rates) == 0 {
		p.Rates = []Rate{{Unit: PPS, Value: CaptureRate}}
		if p.Speed > 0 {
			p.Rates = []Rate{{Unit: MaxRate}} // its own timing decides
		}
	}
	if p.RewriteMAC == "" {
		p.RewriteMAC = MACOther
	}
}

// validateCapture checks what belongs to a capture, and that no other test has it.
func (p *Plan) validateCapture(t TestInfo) error {
	bad := func(key, token, problem, hint string) error {
		return &UsageError{What: key, Token: token, Problem: problem, Hint: hint}
	}
	if !t.Captures {
		for _, k := range []struct {
			name  string
			given bool
		}{{"capture", p.Capture != ""}, {"speed", p.Speed != 0}, {"loops", p.Loops != 0}, {"rewrite_mac", p.RewriteMAC != ""}, {"rewrite_ip", p.RewriteIP != ""}} {
			if k.given {
				return bad(k.name, "", "belongs to replay, and this is "+t.Name, "drop it")
			}
		}
		return nil
	}
	macs := []string{MACOther, MACSUT, MACKeep}
	switch {
	case p.Capture == "":
		return bad("capture", "", "none given", "as in twopath compare replay FILE.pcapng")
	case len(p.Sizes) > 0 || p.Payload != 0:
		return bad("size", "", "a capture's frames have their own sizes", "drop it")
	case p.Count != 0:
		return bad("count", strconv.FormatUint(p.Count, 10), "a trial sends whole loops", "use --loops")
	case p.Speed > 0 && (len(p.Rates) != 1 || p.Rates[0].Unit != MaxRate):
		return bad("speed", "x"+strconv.FormatFloat(p.Speed, 'g', -1, 64), "given with a rate", "drop one of --speed and --rate")
	case p.Loops < 0 || p.Loops > 1e9:
		return bad("loops", strconv.Itoa(p.Loops), "must be 1..1000000000", "as in --loops 10")
	case p.RewriteMAC != MACOther && p.RewriteMAC != MACSUT && p.RewriteMAC != MACKeep:
		return unknown("rewrite_mac", p.RewriteMAC, "no such destination", macs)
	}
	return nil
}
