// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Frame sizes in bytes, all with the 4-byte FCS.
const (
	MaxFrame     = 1518 // untagged Ethernet, 1500-byte MTU
	MinFrameIPv4 = 64   // Ethernet's minimum; 18 bytes of payload hold the stamp
	MinFrameIPv6 = 84   // 14 + 40 + 8 + 18 of stamp + 4
	overheadIPv4 = 46   // frame minus UDP payload: 14 + 20 + 8 + 4
	overheadIPv6 = 66
	// WireOverhead is preamble, start delimiter and inter-frame gap.
	WireOverhead = 20
)

// imix is the mix of sizes called "imix", per 16 frames: the "simple IMIX" of
// 7:4:1 at 40, 576 and 1500 bytes of IP, in round numbers for a 16-slot table.
func imix() []struct{ bytes, of16 int } {
	return []struct{ bytes, of16 int }{{64, 9}, {594, 5}, {1518, 2}}
}

// Size is an Ethernet frame size with FCS, or the mix "imix".
// The zero Size means "not given".
type Size struct {
	Bytes int
	IMIX  bool
}

// ParseSize reads one size. ipVersion is 4 or 6 (0 is 4): IPv6 frames must be
// longer to hold the stamp.
func ParseSize(s string, ipVersion int) (Size, error) {
	if s == "imix" {
		z := Size{IMIX: true}
		return z, z.Validate(ipVersion)
	}
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		e := unknown("size", s, "not a number of bytes", nil)
		e.Nearest = nearest(s, []string{"imix"})
		e.Hint = "as in 64, 64,128,1518 or imix"
		return Size{}, e
	}
	z := Size{Bytes: int(n)}
	return z, z.Validate(ipVersion)
}

// ParseSizes reads a comma-separated list of sizes; a size given twice is refused.
func ParseSizes(s string, ipVersion int) ([]Size, error) {
	var sizes []Size
	for _, field := range strings.Split(s, ",") {
		z, err := ParseSize(strings.TrimSpace(field), ipVersion)
		if err != nil {
			return nil, err
		}
		for _, other := range sizes {
			if other == z {
				return nil, &UsageError{What: "size", Token: field, Problem: "given twice"}
			}
		}
		sizes = append(sizes, z)
	}
	return sizes, nil
}

// SizeOfPayload is the frame that carries n bytes of UDP payload.
func SizeOfPayload(n, ipVersion int) (Size, error) {
	overhead, least := frameLimits(ipVersion)
	if n < least-overhead || n > MaxFrame-overhead {
		return Size{}, &UsageError{What: "payload", Token: strconv.Itoa(n),
			Problem: fmt.Sprintf("must be %d..%d bytes: 18 hold the stamp, and a frame is at most %d bytes", least-overhead, MaxFrame-overhead, MaxFrame)}
	}
	return Size{Bytes: n + overhead}, nil
}

// Validate says why a size cannot be sent; nil if it can.
func (z Size) Validate(ipVersion int) error {
	_, least := frameLimits(ipVersion)
	refuse := func(problem, hint string) error {
		return &UsageError{What: "size", Token: z.String(), Problem: problem, Hint: hint}
	}
	switch {
	case z.IMIX && ipVersion == 6:
		return refuse("its 64-byte frames cannot hold IPv6, UDP and the 18-byte stamp (84 bytes)", "use --size 84,594,1518")
	case z.IMIX:
		return nil
	case z.Bytes < least && ipVersion == 6:
		return refuse("too small: IPv6, UDP and the 18-byte stamp need 84 bytes with FCS", "the smallest is --size 84")
	case z.Bytes < least:
		return refuse("too small: an Ethernet frame is at least 64 bytes with FCS", "the smallest is --size 64; for payload bytes use --payload")
	case z.Bytes > MaxFrame:
		return refuse("too large: a frame is at most 1518 bytes with FCS at an MTU of 1500", "the largest is --size 1518")
	}
	return nil
}

func frameLimits(ipVersion int) (overhead, least int) {
	if ipVersion == 6 {
		return overheadIPv6, MinFrameIPv6
	}
	return overheadIPv4, MinFrameIPv4
}

// FrameBytes is the mean frame size with FCS.
func (z Size) FrameBytes() float64 {
	if !z.IMIX {
		return float64(z.Bytes)
	}
	sum := 0
	for _, part := range imix() {
		sum += part.bytes * part.of16
	}
	return float64(sum) / 16
}

// PayloadBytes is the mean UDP payload.
func (z Size) PayloadBytes(ipVersion int) float64 {
	overhead, _ := frameLimits(ipVersion)
	return z.FrameBytes() - float64(overhead)
}

// Cycle is the sequence of frame sizes the peer sends, over and over: one size, or the mix's 16 frames with each size
// spread as evenly as it goes (smooth weighted round robin).
func (z Size) Cycle() []int {
	if !z.IMIX {
		return []int{z.Bytes}
	}
	mix := imix()
	credit := make([]int, len(mix))
	var out []int
	for range 16 {
		best := 0
		for i, part := range mix {
			credit[i] += part.of16
			if credit[i] > credit[best] {
				best = i
			}
		}
		credit[best] -= 16
		out = append(out, mix[best].bytes)
	}
	return out
}

// WireBits is the mean number of bit times a frame takes on the wire.
func (z Size) WireBits() float64 { return (z.FrameBytes() + WireOverhead) * 8 }

// String is the size as typed.
func (z Size) String() string {
	if z.IMIX {
		return "imix"
	}
	return strconv.Itoa(z.Bytes)
}

// MarshalJSON writes a number, or "imix", or null for the zero Size.
func (z Size) MarshalJSON() ([]byte, error) {
	switch {
	case z.IMIX:
		return []byte(`"imix"`), nil
	case z.Bytes == 0:
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(z.Bytes), 10), nil
}

// UnmarshalJSON reads what MarshalJSON wrote. It does not judge the size: a
// record says what was sent.
func (z *Size) UnmarshalJSON(b []byte) error {
	switch string(b) {
	case `"imix"`:
		*z = Size{IMIX: true}
		return nil
	case "null":
		*z = Size{}
		return nil
	}
	var n int
	if err := json.Unmarshal(b, &n); err != nil || n < 0 {
		return fmt.Errorf("size %s is neither a number of bytes nor \"imix\"", b)
	}
	*z = Size{Bytes: n}
	return nil
}

// MarshalYAML writes a number, or "imix".
func (z Size) MarshalYAML() (any, error) {
	if z.IMIX {
		return "imix", nil
	}
	return z.Bytes, nil
}
