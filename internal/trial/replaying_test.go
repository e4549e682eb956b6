// SPDX-License-Identifier: Apache-2.0

package trial_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/capture"
	"twopath/internal/trial"
)

// replaySpec is a trial that sends a recording.
func replaySpec(t *testing.T, b *trial.Bench, arm, name string, loops int, speed, rate float64) (trial.Spec, *capture.Capture) {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("..", "capture", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	c, err := capture.Read(path, capture.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := spec(t, b, arm, 0)
	s.Test, s.Role = "replay", agent.Following
	s.Load = trial.Load{PPS: rate, Count: uint64(len(c.Frames) * loops), Seconds: c.Length().Seconds() * float64(loops),
		Replay: &agent.Replay{Path: path, SHA256: c.SHA256, MTU: 1500, Speed: speed, Rate: rate, Loops: loops, Frames: len(c.Frames)}}
	return s, c
}

// Both engines see the same sessions and requests, those that tshark counts in the file times the loops, with one worker and
// with two, and lose nothing.
func TestReplay(t *testing.T) {
	for _, workers := range []int{1, 2} {
		for _, c := range []struct {
			name                string
			loops               int
			sessions, http, rst uint64
		}{{"http.pcapng", 7, 25, 37, 0}, {"once.pcap", 300, 1, 1, 0}, {"dns.pcap", 3, 4, 0, 0}, {"cooked2.pcapng", 5, 1, 1, 0}} {
			for _, arm := range []string{"kernel:packet", "xdp:copy", "xdp:generic", "xdp:auto+wait=poll"} {
				if workers == 2 && arm == "xdp:generic" {
					continue
				}
				t.Run(fmt.Sprintf("%s, %d workers, %s", c.name, workers, arm), func(t *testing.T) {
					b := bench(t, workers)
					s, pcap := replaySpec(t, b, arm, c.name, c.loops, 0, 20_000)
					got := run(t, b, s)
					want := uint64(len(pcap.Frames) * c.loops)
					if got.Sent != want || got.Received != want || got.Lost != 0 || got.Unexplained != 0 || got.Duplicate != 0 {
						t.Fatalf("sent %d, received %d of %d, ledger %+v, unexplained %d", got.Sent, got.Received, want, got.Ledger, got.Unexplained)
					}
					f := got.Followed
					if n := uint64(c.loops); f.Sessions() != n*c.sessions || f.Requests() != n*c.http {
						t.Errorf("%d sessions and %d requests, want %d and %d: %+v", f.Sessions(), f.Requests(), n*c.sessions, n*c.http, f.Workers)
					}
					if len(f.Workers) != workers {
						t.Fatalf("%d workers", len(f.Workers))
					}
					var lines uint64
					for _, n := range f.Lines {
						lines += n
					}
					if lines != f.Requests() {
						t.Errorf("%d requests, lines %v", f.Requests(), f.Lines)
					}
					if workers == 2 && c.name == "http.pcapng" && (f.Workers[0].Received == 0 || f.Workers[1].Received == 0) {
						t.Errorf("a worker got nothing: %+v", f.Workers)
					}
					for _, w := range f.Workers {
						if w.Received > 0 && (w.TSCCold == nil || *w.TSCCold <= 0 || w.TSCWarm == nil || *w.TSCWarm <= 0) {
							t.Errorf("no cycles: %+v", w)
						}
						if w.Untracked != 0 {
							t.Errorf("%d frames were not followed", w.Untracked)
						}
					}
				})
			}
		}
	}
}

// Each worker has the same frames on both engines, since a frame's queue follows from its session.
func TestReplayWorkersAgree(t *testing.T) {
	var first []compare.FollowedWorker
	for _, arm := range []string{"kernel:packet", "xdp:copy"} {
		b := bench(t, 2)
		s, _ := replaySpec(t, b, arm, "http.pcapng", 3, 0, 20_000)
		got := run(t, b, s)
		for i := range got.Followed.Workers {
			w := &got.Followed.Workers[i]
			w.TSCCold, w.TSCWarm, w.Cold = nil, nil, 0
		}
		if first == nil {
			first = got.Followed.Workers
			continue
		}
		for i, w := range got.Followed.Workers {
			if w != first[i] {
				t.Errorf("%s, worker %d: %+v, the other engine's %+v", arm, i, w, first[i])
			}
		}
	}
}

// The capture's own timing takes its time, and the record says how well it was kept.
func TestReplayTiming(t *testing.T) {
	for _, workers := range []int{1, 2} {
		b := bench(t, workers)
		s, c := replaySpec(t, b, "xdp:copy", "http.pcapng", 1, 4, 0)
		got := run(t, b, s)
		want := c.Length().Seconds() / 4
		if got.Received != uint64(len(c.Frames)) || got.Seconds < want-1e-4 || got.Late > got.Sent {
			t.Errorf("%d workers: received %d, took %v s, want %v", workers, got.Received, got.Seconds, want)
		}
		t.Logf("%d workers: worst lateness %.3f ms, %d frames over 1 ms", workers, float64(got.LateMaxNs)/1e6, got.Late)
	}
}

// A file that changed under the run is refused, and so is none.
func TestReplayRefusesAnotherFile(t *testing.T) {
	b := bench(t, 1)
	s, _ := replaySpec(t, b, "xdp:copy", "http.pcapng", 1, 0, 1000)
	s.Load.Replay.SHA256 = strings.Repeat("0", 64)
	if _, err := b.Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("a changed file: %v", err)
	}
	s.Load.Replay.Path += ".none"
	if _, err := b.Run(t.Context(), s); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no file: %v", err)
	}
}
