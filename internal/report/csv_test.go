// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/csv"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"twopath/compare"
)

// table reads CSV back, by column name.
func table(t *testing.T, b []byte) []map[string]string {
	t.Helper()
	rows, err := csv.NewReader(bytes.NewReader(b)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, h := range rows[0] {
		if seen[h] {
			t.Errorf("two columns are called %q", h)
		}
		seen[h] = true
	}
	var out []map[string]string
	for _, r := range rows[1:] {
		m := map[string]string{}
		for i, h := range rows[0] {
			m[h] = r[i]
		}
		out = append(out, m)
	}
	return out
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestCSVReadsBack(t *testing.T) {
	docs := append(sweepDocuments(), *documents()["invalid"], *documents()["everything-lost"])
	docs[0].Trials[0].Valid, docs[0].Trials[0].InvalidBecause = false, "a \"quoted\", comma'd\nreason"
	var want []compare.Trial
	for _, d := range docs {
		want = append(want, d.Trials...)
	}
	var b bytes.Buffer
	if err := CSV(&b, docs); err != nil {
		t.Fatal(err)
	}
	got := table(t, b.Bytes())
	if len(got) != len(want) {
		t.Fatalf("%d rows for %d trials", len(got), len(want))
	}
	for i, row := range got {
		w := want[i]
		if row["arm"] != w.Arm || row["invalid_because"] != w.InvalidBecause || row["valid"] != strconv.FormatBool(w.Valid) {
			t.Errorf("row %d: %v, want %+v", i, row, w)
		}
		if number(t, row["sent"]) != w.Sent || number(t, row["received"]) != w.Received || number(t, row["lost"]) != w.Lost {
			t.Errorf("row %d: counts %v, want %+v", i, row, w)
		}
		// The ledger in the row adds up to the loss.
		sum := number(t, row["unexplained"])
		for part := range strings.FieldsSeq(row["ledger"]) {
			_, n, _ := strings.Cut(part, "=")
			sum += number(t, n)
		}
		if sum != w.Lost {
			t.Errorf("row %d: ledger sums to %d of %d lost", i, sum, w.Lost)
		}
		if w.CPU == nil && row["cpu.work_ns_per_packet"] != "" {
			t.Errorf("row %d: a number that was not measured is %q", i, row["cpu.work_ns_per_packet"])
		}
		s, err := strconv.ParseFloat(row["seconds"], 64)
		if err != nil || s != w.Seconds {
			t.Errorf("row %d: seconds %q, want %v", i, row["seconds"], w.Seconds)
		}
	}
}

func TestCSVArmsAndComparisons(t *testing.T) {
	doc := documents()["five-arms"]
	var b bytes.Buffer
	if err := CSVArms(&b, []compare.Document{*doc}); err != nil {
		t.Fatal(err)
	}
	rows := table(t, b.Bytes())
	if len(rows) != 5 {
		t.Fatalf("%d rows for 5 arms", len(rows))
	}
	if got := rows[3]["cpu.work_ns_per_packet"]; got != "417" {
		t.Errorf("CPU work of arm D: %q", got)
	}
	b.Reset()
	if err := CSVComparisons(&b, []compare.Document{*doc}); err != nil {
		t.Fatal(err)
	}
	headlines := 0
	for _, r := range table(t, b.Bytes()) {
		if r["headline"] == "true" {
			headlines++
			if r["b"] != "xdp:auto" || r["ratio"] != "3.571" {
				t.Errorf("headline %v", r)
			}
		}
	}
	if headlines != 1 {
		t.Errorf("%d headlines, want 1", headlines)
	}
}

func TestJSONReadsBack(t *testing.T) {
	for _, docs := range [][]compare.Document{{*documents()["normal"]}, sweepDocuments()} {
		var b bytes.Buffer
		if err := JSON(&b, docs); err != nil {
			t.Fatal(err)
		}
		back, err := compare.Read(&b)
		if err != nil {
			t.Fatal(err)
		}
		var first, second bytes.Buffer
		if err := TextAll(&first, docs, TextOptions{Wide: true}); err != nil {
			t.Fatal(err)
		}
		if err := TextAll(&second, back, TextOptions{Wide: true}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(first.String(), second.String()); diff != "" {
			t.Errorf("a record read back gives another report:\n%s", diff)
		}
	}
}
