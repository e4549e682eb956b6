// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"twopath/compare"
	"twopath/internal/capture"
)

// rigMTU is that of the veth rig.
const rigMTU = 1500

// longGap is a silence in a capture that its user should know of before waiting through it.
const longGap = time.Minute

// captureArgument takes the file that follows the test's name, as in compare replay FILE ARM ARM. What reads as an arm is one.
func captureArgument(c *cobra.Command, test string, args []string) ([]string, error) {
	info, ok := compare.LookupTest(test)
	if !ok || !info.Captures || len(args) == 0 {
		return args, nil
	}
	if _, err := compare.ParseArm(args[0]); err == nil {
		return args, nil
	}
	return args[1:], c.Flags().Set("capture", args[0])
}

// readCapture reads what a replay sends; nil for other tests.
func readCapture(p compare.Plan) (*compare.Capture, int, []compare.Warning, error) {
	info, _ := compare.LookupTest(p.Test)
	if !info.Captures {
		return nil, 0, nil, nil
	}
	if _, err := capture.ParseHosts(p.RewriteIP); err != nil {
		return nil, 0, nil, &compare.UsageError{What: "rewrite_ip", Token: p.RewriteIP, Problem: err.Error(), Hint: "as in 10.0.0.1=198.18.0.1"}
	}
	mtu := rigMTU
	if p.NIC != "" {
		dev, err := net.InterfaceByName(p.NIC)
		if err != nil {
			return nil, 0, nil, fail(exitUsage, "interface %s: %w; ip link lists the devices there are", p.NIC, err)
		}
		mtu = dev.MTU
	}
	path, err := filepath.Abs(p.Capture) // the agent that sends it reads it too
	if err != nil {
		return nil, 0, nil, fmt.Errorf("capture %s: %w", p.Capture, err)
	}
	c, err := capture.Read(path, capture.Options{MTU: mtu})
	var bad *capture.FileError
	if errors.As(err, &bad) {
		bad.Path = p.Capture
		return nil, 0, nil, fail(exitUsage, "%w", bad)
	}
	if err != nil {
		return nil, 0, nil, err
	}
	s := c.Skipped
	out := &compare.Capture{Path: path, SHA256: c.SHA256, Format: c.Format, Links: c.Links, Records: c.Records, Frames: uint64(len(c.Frames)), Bytes: c.Bytes(),
		Skipped:   map[string]uint64{"cut": s.Cut, "empty": s.Empty, "short": s.Short, "too_long": s.TooLong, "no_ethernet": s.NotEthernet},
		Backwards: c.Backwards, Seconds: c.Length().Seconds(), Speed: p.Speed, MAC: p.RewriteMAC, Hosts: p.RewriteIP}
	return out, mtu, captureWarnings(c, p), nil
}

// captureWarnings are what a reader of the result must know of the file.
func captureWarnings(c *capture.Capture, p compare.Plan) []compare.Warning {
	var out []compare.Warning
	add := func(format string, args ...any) {
		out = append(out, compare.Warning{ID: "capture", Text: fmt.Sprintf(format, args...)})
	}
	if n := c.Skipped.Sum(); n > 0 {
		add("%d of %d records are sent to no arm: %s", n, c.Records, c.Skipped)
	}
	if c.Backwards > 0 {
		add("%d records are earlier than one before them; every arm gets them in the order of the file, at the time of the latest before", c.Backwards)
	}
	if gap, frame := c.LongestGap(); p.Speed > 0 && gap > longGap {
		add("frame %d comes %v after the one before, in the capture: cut it there (editcap -r), or use --rate", frame, gap.Round(time.Second))
	}
	return out
}
