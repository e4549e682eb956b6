// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"
)

func state(trial int) ProgressState {
	return ProgressState{Block: 1 + trial/4, Blocks: 6, Arm: "xdp:auto", Trial: trial, Trials: 24, PPS: 1488095, ETA: 31 * time.Second}
}

func TestProgressLine(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressLine, 100)
	now := time.Unix(1000, 0)
	if err := errors.Join(p.Update(now, state(7)), p.Clear(), p.Clear()); err != nil {
		t.Fatal(err)
	}
	want := "\rblock 2/6  xdp:auto  trial 7/24  1,488,095 pps  ETA 31 s\x1b[K\r\x1b[K"
	if b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	// A line is never wider than the terminal: it could not be redrawn.
	b.Reset()
	narrow := NewProgress(&b, ProgressLine, 20)
	if err := narrow.Update(now, state(7)); err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSuffix(strings.TrimPrefix(b.String(), "\r"), "\x1b[K"); len(got) > 19 {
		t.Errorf("%d columns in a terminal of 20: %q", len(got), got)
	}
	// A message takes the line off first.
	b.Reset()
	if err := narrow.Print("invalid trial"); err != nil {
		t.Fatal(err)
	}
	if b.String() != "\r\x1b[Kinvalid trial\n" {
		t.Errorf("message over a line: %q", b.String())
	}
}

func TestProgressPlainIsRare(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressPlain, 0)
	now := time.Unix(1000, 0)
	for i := range 24 {
		for range 10 {
			if err := p.Update(now, state(i)); err != nil {
				t.Fatal(err)
			}
			now = now.Add(100 * time.Millisecond)
		}
	}
	if n := strings.Count(b.String(), "\n"); n != 6 {
		t.Errorf("%d lines for 6 blocks of 4 s:\n%s", n, b.String())
	}
	if strings.ContainsAny(b.String(), "\r\x1b") {
		t.Errorf("control codes where no terminal is: %q", b.String())
	}
	before := b.Len()
	if err := p.Update(now.Add(plainEvery), state(23)); err != nil {
		t.Fatal(err)
	}
	if b.Len() == before {
		t.Error("silent for longer than the limit")
	}
}

func TestProgressQuiet(t *testing.T) {
	var b bytes.Buffer
	p := NewProgress(&b, ProgressQuiet, 80)
	if err := errors.Join(p.Update(time.Unix(1, 0), state(1)), p.Clear()); err != nil {
		t.Fatal(err)
	}
	if b.Len() != 0 {
		t.Errorf("quiet wrote %q", b.String())
	}
	if err := p.Print("a diagnostic"); err != nil || b.String() != "a diagnostic\n" {
		t.Errorf("diagnostic: %q, %v", b.String(), err)
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteErrorsAreReturned(t *testing.T) {
	doc := documents()["normal"]
	for name, err := range map[string]error{
		"text":     Text(broken{}, doc, TextOptions{}),
		"html":     HTML(broken{}, sweepDocuments()),
		"csv":      CSV(broken{}, sweepDocuments()),
		"json":     JSON(broken{}, sweepDocuments()),
		"diff":     DiffText(broken{}, Diff(nil, nil, 0), TextOptions{}),
		"doctor":   DoctorText(broken{}, nil, TextOptions{}),
		"doctor j": DoctorJSON(broken{}, nil),
		"progress": NewProgress(broken{}, ProgressLine, 80).Update(time.Unix(1, 0), state(1)),
	} {
		if err == nil {
			t.Errorf("%s: no error from a writer that fails", name)
		}
	}
}
