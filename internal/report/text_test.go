// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"twopath/compare"
	"twopath/internal/measure"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares got with testdata/name.golden.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s differs (-want +got), go test -update writes it anew:\n%s", path, diff)
	}
}

func TestTextGolden(t *testing.T) {
	for name, doc := range documents() {
		t.Run(name, func(t *testing.T) {
			if err := assertFixture(doc); err != nil {
				t.Fatal(err)
			}
			var b bytes.Buffer
			if err := Text(&b, doc, TextOptions{Saved: "twopath-udp-rx-1412.json"}); err != nil {
				t.Fatal(err)
			}
			golden(t, "text-"+name, b.Bytes())
		})
	}
}

func TestTextSweepGolden(t *testing.T) {
	docs := sweepDocuments()
	for i := range docs {
		if err := assertFixture(&docs[i]); err != nil {
			t.Fatal(err)
		}
	}
	var b bytes.Buffer
	if err := TextAll(&b, docs, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	golden(t, "text-sweep", b.Bytes())
}

func TestTextScalingGolden(t *testing.T) {
	for name, enough := range map[string]bool{"scaling": true, "scaling-few-cpus": false} {
		docs := queueDocuments(enough)
		for i := range docs {
			if err := assertFixture(&docs[i]); err != nil {
				t.Fatal(err)
			}
		}
		var b bytes.Buffer
		if err := TextAll(&b, docs, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		golden(t, "text-"+name, b.Bytes())
	}
}

func TestTextNarrowGolden(t *testing.T) {
	for _, name := range []string{"normal", "five-arms", "kernel-wins"} {
		var b bytes.Buffer
		if err := Text(&b, documents()[name], TextOptions{Width: 80, Saved: "twopath-udp-rx-1412.json"}); err != nil {
			t.Fatal(err)
		}
		golden(t, "text80-"+name, b.Bytes())
	}
}

func TestTextWideGolden(t *testing.T) {
	var b bytes.Buffer
	if err := Text(&b, documents()["invalid"], TextOptions{Wide: true, Width: 160}); err != nil {
		t.Fatal(err)
	}
	golden(t, "text-wide", b.Bytes())
}

// No line is wider than what was asked for, down to 80 columns.
func TestTextFits(t *testing.T) {
	for name, doc := range documents() {
		for _, width := range []int{80, 100, 120, 160} {
			var b bytes.Buffer
			if err := Text(&b, doc, TextOptions{Width: width, Saved: "record.json"}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimSuffix(line, "\n")
				if n := columns(line); n > width {
					t.Errorf("%s at %d columns: a line of %d: %q", name, width, n, line)
				}
				if strings.TrimRight(line, " ") != line {
					t.Errorf("%s: trailing space: %q", name, line)
				}
			}
		}
	}
}

// Colour adds escape codes and changes nothing else.
func TestColourOnlyAddsEscapes(t *testing.T) {
	escape := regexp.MustCompile("\x1b\\[[0-9]+m")
	for name, doc := range documents() {
		var plain, coloured bytes.Buffer
		if err := Text(&plain, doc, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := Text(&coloured, doc, TextOptions{Color: true}); err != nil {
			t.Fatal(err)
		}
		if bytes.ContainsRune(plain.Bytes(), '\x1b') {
			t.Errorf("%s: colours without being asked", name)
		}
		if len(doc.Arms) > 0 && !bytes.ContainsRune(coloured.Bytes(), '\x1b') {
			t.Errorf("%s: no colour although asked", name)
		}
		if diff := cmp.Diff(plain.String(), escape.ReplaceAllString(coloured.String(), "")); diff != "" {
			t.Errorf("%s: colour changed the text:\n%s", name, diff)
		}
	}
}

// A report is a function of the record: rendering changes nothing in it and
// gives the same bytes each time.
func TestTextIsPure(t *testing.T) {
	for name, doc := range documents() {
		before := fmt.Sprintf("%+v", *doc)
		var first, second bytes.Buffer
		for _, b := range []*bytes.Buffer{&first, &second} {
			if err := errors.Join(Text(b, doc, TextOptions{Wide: true}), HTML(b, []compare.Document{*doc}), CSV(b, []compare.Document{*doc})); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(first.Bytes(), second.Bytes()) {
			t.Errorf("%s: two renderings differ", name)
		}
		if after := fmt.Sprintf("%+v", *doc); after != before {
			t.Errorf("%s: rendering changed the record", name)
		}
	}
}

// What a name holds cannot drive the terminal or break a line.
func TestTextNeutralisesControls(t *testing.T) {
	doc := documents()["normal"]
	evil := "x\x1b[31m\r\nVERDICT forged\x07"
	doc.Arms[0].Name, doc.Test, doc.Host.Kernel = evil, evil, evil
	doc.Warnings = []compare.Warning{{ID: evil, Text: evil}}
	doc.Trials[0].Valid, doc.Trials[0].InvalidBecause = false, evil
	doc.Arms[0].Ledger[0].At, doc.Arms[0].Ledger[0].Witness = evil, evil
	doc.Comparisons[0].Because, doc.Incomplete, doc.Reason = evil, true, evil
	for _, docs := range [][]compare.Document{{*doc}, {*doc, *doc}} {
		var b bytes.Buffer
		if err := TextAll(&b, docs, TextOptions{Saved: evil}); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(b.String()) {
			if strings.HasPrefix(line, "VERDICT forged") || strings.ContainsAny(line, "\x1b\r\x07") {
				t.Errorf("a name broke out: %q", line)
			}
		}
	}
}

// The rows of the printed ledger add up to what was sent.
func TestLedgerAddsUp(t *testing.T) {
	for name, doc := range documents() {
		v := newView(doc)
		for i, a := range v.arms {
			if !has(a) {
				continue
			}
			var sum uint64
			for _, r := range v.ledgerRows(false) {
				n, err := strconv.ParseUint(strings.ReplaceAll(r.values[i], ",", ""), 10, 64)
				if err != nil {
					t.Fatalf("%s: row %q: %v", name, r.label, err)
				}
				sum += n
			}
			if sum != handed(a) {
				t.Errorf("%s, %s: rows sum to %d of %d sent", name, a.Name, sum, a.Sent)
			}
		}
	}
	doc := documents()["normal"]
	doc.Arms[0].Ledger[0].Packets--
	var b bytes.Buffer
	if err := Text(&b, doc, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "DOES NOT ADD UP") {
		t.Error("a ledger that does not close is not marked")
	}
}

// Every documented ledger id has a label for the screen, and the other way.
func TestPlacesAreTheLedgers(t *testing.T) {
	known := places()
	for _, r := range slices.Concat(measure.Rows(), measure.ConnectionRows()) {
		if known[r.ID].label == "" {
			t.Errorf("ledger id %q has no label", r.ID)
		}
		delete(known, r.ID)
	}
	for id := range known {
		t.Errorf("label for %q, which is no ledger id", id)
	}
}
