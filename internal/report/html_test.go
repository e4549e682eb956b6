// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"twopath/compare"
)

var pages = flag.String("pages", "", "directory to leave the HTML pages in, to look at them")

// wellFormed reads the page as XML in HTML's dialect: every element closed,
// every attribute quoted.
func wellFormed(page []byte) error {
	d := xml.NewDecoder(bytes.NewReader(page))
	d.Entity = xml.HTMLEntity
	d.Strict = true
	for {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func TestHTML(t *testing.T) {
	all := map[string][]compare.Document{"sweep": sweepDocuments(), "none": nil}
	for name, doc := range documents() {
		all[name] = []compare.Document{*doc}
	}
	for name, docs := range all {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := HTML(&b, docs); err != nil {
				t.Fatal(err)
			}
			if *pages != "" {
				if err := os.WriteFile(filepath.Join(*pages, name+".html"), b.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if err := wellFormed(b.Bytes()); err != nil {
				t.Errorf("not well formed: %v", err)
			}
			page := b.String()
			for _, bad := range []string{"NaN", "Inf", "ZgotmplZ", "<no value>", "http://", "https://", "<script", "%!"} {
				if strings.Contains(page, bad) {
					t.Errorf("page contains %q", bad)
				}
			}
			for _, d := range docs {
				for _, a := range d.Arms {
					if !strings.Contains(page, escaped(a.Name)) {
						t.Errorf("arm %q is not on the page", a.Name)
					}
				}
				if d.Incomplete && !strings.Contains(page, d.Reason) {
					t.Errorf("the page hides that the run is incomplete")
				}
			}
		})
	}
}

// escaped is how a name looks after escaping.
func escaped(s string) string { return strings.ReplaceAll(s, "+", "&#43;") }

// Names come from files; a page must not run what they contain.
func TestHTMLEscapes(t *testing.T) {
	doc := documents()["normal"]
	evil := `<script>alert(1)</script>"'&`
	doc.Arms[0].Name, doc.Test, doc.Host.Name, doc.Rig.SUT = evil, evil, evil, evil
	doc.Warnings = []compare.Warning{{ID: evil, Text: evil}}
	doc.Trials[0].Arm, doc.Trials[0].Valid, doc.Trials[0].InvalidBecause = evil, false, evil
	doc.Comparisons[0].A, doc.Argv = evil, []string{"twopath", evil}
	doc.Arms[0].Ledger[0].At = evil
	var b bytes.Buffer
	if err := HTML(&b, []compare.Document{*doc}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(b.String(), "<script") {
		t.Error("a name from the record became markup")
	}
	if err := wellFormed(b.Bytes()); err != nil {
		t.Error(err)
	}
}
