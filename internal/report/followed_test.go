// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"strings"
	"testing"

	"twopath/compare"
)

// replayed is a record of a replay: two trials an arm, of which the last is invalid.
func replayed(workers int) compare.Document {
	trial := func(arm string, cold, warm float64, valid bool) compare.Trial {
		t := compare.Trial{Arm: arm, Kind: compare.Measured, Block: 1, Valid: valid, Seconds: 1, Sent: 200, Received: 200, Followed: &compare.Followed{}}
		if !valid {
			t.InvalidBecause = "a test"
		}
		for w := range workers {
			t.Followed.Workers = append(t.Followed.Workers, compare.FollowedWorker{Received: 200 / uint64(workers), Loops: 2, TCP: 7, UDP: 1, Requests: uint64(10 + w),
				TSCCold: &cold, TSCWarm: &warm})
		}
		return t
	}
	return compare.Document{Schema: compare.SchemaID, Test: "replay",
		Traffic: compare.Traffic{FrameBytes: 225, Queues: workers, Rate: compare.Rate{Unit: compare.MaxRate},
			Capture: &compare.Capture{Path: "/x/web.pcapng", Frames: 100, Bytes: 22100, Loops: 2, Speed: 0.5}},
		Arms:   []compare.Arm{{Name: "kernel:packet", Engine: compare.Kernel, Valid: 2, Sent: 400, Received: 400}, {Name: "xdp:auto", Engine: compare.XDP, Valid: 1, Sent: 200, Received: 200}},
		Trials: []compare.Trial{trial("kernel:packet", 3000, 300, true), trial("kernel:packet", 1000, 500, true), trial("xdp:auto", 12345.6, 99, true), trial("xdp:auto", 1, 1, false)}}
}

// A row for each worker of each arm: counts are sums over the valid trials, cycles their median.
func TestFollowed(t *testing.T) {
	doc := replayed(2)
	var b bytes.Buffer
	if err := Text(&b, &doc, TextOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"web.pcapng: 100 frames of 225 B with FCS in the mean, 2 loops a trial, its own timing x 0.5", "Sessions with 2 workers, over all valid trials (2 loops each)",
		"A kernel:packet, worker 1      200        16             20            2,000   400",
		"A kernel:packet, worker 2      200        16             22            2,000   400",
		"B xdp:auto, worker 1           100         8             10           12,346    99",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the screen does not say %q:\n%s", want, b.String())
		}
	}
}

// Over several numbers of workers, each has its table.
func TestFollowedInASweep(t *testing.T) {
	var b bytes.Buffer
	if err := TextAll(&b, []compare.Document{replayed(1), replayed(2)}, TextOptions{Width: 120}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Sessions with 1 worker,", "Sessions with 2 workers,", "B xdp:auto, worker 2"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the screen does not say %q:\n%s", want, b.String())
		}
	}
}
