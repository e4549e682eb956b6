// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
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
