// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"errors"
	"reflect"
	"testing"
)

func TestQueuesMakeCells(t *testing.T) {
	p := DefaultPlan("udp-rx")
	for key, value := range map[string]string{"workers": "1,2", "size": "64,128", "rate": "1M,2M"} {
		if err := p.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	p.Complete()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	cells, err := p.Cells()
	if err != nil || len(cells) != 8 || cells[0].Queues != 1 || cells[7].Queues != 2 || cells[7].Size.Bytes != 128 {
		t.Errorf("cells %+v, %v", cells, err)
	}
	if p.Flows != SpreadFlows {
		t.Errorf("%d flows for two queues: some would get nothing", p.Flows)
	}
}

// A record of one number of queues has it as a number, as records have had before lists were taken.
func TestQueuesInRecords(t *testing.T) {
	for text, want := range map[string]Queues{"2": {2}, "[1,2]": {1, 2}, "null": nil} {
		var q Queues
		if err := json.Unmarshal([]byte(text), &q); err != nil || !reflect.DeepEqual(q, want) {
			t.Errorf("%s is read as %v, %v", text, q, err)
		}
		back, err := json.Marshal(q)
		if err != nil || string(back) != text {
			t.Errorf("%s is written as %s, %v", text, back, err)
		}
	}
	for _, text := range []string{`"2"`, "1.5", "{}", `[1,"2"]`} {
		var q Queues
		if err := json.Unmarshal([]byte(text), &q); err == nil {
			t.Errorf("%s is read as %v", text, q)
		}
	}
}

func TestQueuesRefused(t *testing.T) {
	for text, part := range map[string]string{"": "not a whole number", "two": "not a whole number", "1,,2": "not a whole number", "1,1": "twice",
		"-1": "not a whole number", "1-4": "1,2,4"} {
		_, err := ParseQueues(text)
		refused(t, text, err, part)
	}
	for _, q := range []Queues{nil, {0}, {1, 257}} {
		if q.validate() == nil {
			t.Errorf("%v is no error", q)
		}
	}
}

func FuzzParseQueues(f *testing.F) {
	f.Add("1,2,4")
	f.Add("1, 1")
	f.Fuzz(func(t *testing.T, s string) {
		q, err := ParseQueues(s)
		if err != nil {
			var usage *UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("%v is no UsageError", err)
			}
			return
		}
		again, err := ParseQueues(q.String())
		if err != nil || !reflect.DeepEqual(again, q) {
			t.Fatalf("%q gives %v, and that %v, %v", s, q, again, err)
		}
	})
}
