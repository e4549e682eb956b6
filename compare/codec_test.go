// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// richDocument has every optional part filled in.
func richDocument(tb testing.TB) *Document {
	m := &machine{offered: 1488095, capacity: map[string]float64{"kernel:recvmmsg": 310000, "kernel:recvmmsg#2": 310000, "xdp:auto": 6e6},
		work: map[string]float64{"kernel:recvmmsg": 3220, "kernel:recvmmsg#2": 3220, "xdp:auto": 417}}
	m.invalid = func(s TrialSpec) bool { return s.Block == 2 && s.Position == 1 && s.Attempt == 1 }
	d := m.measure(tb, 6, 1, "kernel:recvmmsg", "xdp:auto", "kernel:recvmmsg")
	finished := d.Started.Add(60e9)
	d.Finished, d.Argv, d.PeerHost = &finished, []string{"twopath", "compare"}, &Host{Name: "b", Facts: map[string]string{"nic.firmware": "1"}}
	d.Warnings = []Warning{{ID: "vm", Text: "a virtual machine"}}
	d.Limit = &Limit{Name: "xdp_drop", PPS: Num(6.2e6)}
	d.Plan.Require = []string{"xdp:auto.loss_ratio<=1e-4", "kernel.loss_ratio<=1e-4"}
	count := uint64(5)
	t := &d.Trials[0]
	t.Opened, t.Completed, t.Requests, t.Errors = &count, &count, &count, &Errors{Total: 1}
	t.LatencyNs = &Latency{Count: 10, P50: Num(1000), Base: "intended"}
	t.Checks = []CrossCheck{{What: "sent", A: 1, B: 1, OK: true}}
	t.Intervals = []Interval{{AtSeconds: 0.5, Sent: 3, Received: 2}}
	t.Counters, t.Effective = map[string]uint64{"udp.RcvbufErrors": 3}, &Effective{Attach: "none", CPUs: []int{0}}
	Conclude(d)
	d.Arms[0].Candidates = []Candidate{{Setting: "sched=other", ReceivedPPS: Num(1), Chosen: true}}
	d.Arms[0].LowerPPS, d.Arms[0].UpperPPS, d.Arms[0].ConditionalPPS = Num(1), Num(2), Num(1.5)
	return d
}

func compileSchema(tb testing.TB) *jsonschema.Schema {
	tb.Helper()
	raw, err := jsonschema.UnmarshalJSON(strings.NewReader(Schema()))
	if err != nil {
		tb.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("v1.json", raw); err != nil {
		tb.Fatal(err)
	}
	s, err := c.Compile("v1.json")
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func TestDocumentsMatchTheSchema(t *testing.T) {
	s := compileSchema(t)
	payload := &Document{Plan: DefaultPlan("udp-rx")}
	payload.Plan.Payload = 1024
	rich := richDocument(t)
	var sweep bytes.Buffer
	if err := WriteResults(&sweep, []Document{*rich, *payload}); err != nil {
		t.Fatal(err)
	}
	inputs := map[string][]byte{"sweep": sweep.Bytes()}
	for name, d := range map[string]*Document{"rich": rich, "empty": {}, "payload": payload} {
		var b bytes.Buffer
		if err := d.Write(&b); err != nil {
			t.Fatal(err)
		}
		if bytes.Count(b.Bytes(), []byte("\n")) != 1 {
			t.Errorf("%s: not one line", name)
		}
		inputs[name] = b.Bytes()
	}
	for name, b := range inputs {
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// And the schema can refuse.
	good := inputs["rich"]
	for _, broken := range [][2]string{
		{`"word":"faster"`, `"word":"quicker"`}, {`"grade":"exact"`, `"grade":"sure"`}, {`"schema":"twopath/v1"`, `"schema":"twopath/v2"`}, {`"duplicate":0`, `"duplicate":-1`},
		{`"kind":"measured"`, `"kind":"other"`}, {`"valid":true`, `"valid":1`}, {`"started":"2001-09-09T01:46:40Z"`, `"started":"yesterday"`}, {`"argv"`, `"args"`},
	} {
		b := bytes.Replace(good, []byte(broken[0]), []byte(broken[1]), 1)
		if bytes.Equal(b, good) {
			t.Errorf("no %s in the record", broken[0])
		}
		v, _ := jsonschema.UnmarshalJSON(bytes.NewReader(b))
		if s.Validate(v) == nil {
			t.Errorf("schema accepts %s", broken[1])
		}
	}
}

func TestWriteReadRoundTrip(t *testing.T) {
	d := richDocument(t)
	var b bytes.Buffer
	if err := d.Write(&b); err != nil {
		t.Fatal(err)
	}
	if err := WriteResults(&b, []Document{*d, *d}); err != nil {
		t.Fatal(err)
	}
	docs, err := Read(&b)
	if err != nil || len(docs) != 3 {
		t.Fatalf("%d documents, %v", len(docs), err)
	}
	for i := range docs {
		if !reflect.DeepEqual(docs[i], *d) {
			t.Errorf("document %d changed", i)
		}
	}
}

func TestReadSaysWhatIsWrong(t *testing.T) {
	var b bytes.Buffer
	if err := richDocument(t).Write(&b); err != nil {
		t.Fatal(err)
	}
	good := b.String()
	for name, c := range map[string]struct {
		in   string
		docs int
		is   error
		part string
	}{
		"empty":      {"", 0, ErrEmpty, ""},
		"blank":      {" \n\n", 0, ErrEmpty, ""},
		"cut":        {good[:len(good)/2], 0, ErrTruncated, "record 1, from byte 0"},
		"cut second": {good + good[:100], 1, ErrTruncated, "record 2"},
		"newer":      {strings.Replace(good, "twopath/v1", "twopath/v2", 1), 0, ErrVersion, `"twopath/v2", this program reads "twopath/v1"`},
		"other":      {`{"schema":"iperf3"}`, 0, ErrNotRecord, "iperf3"},
		"no schema":  {`{"a":1}`, 0, ErrNotRecord, `no "schema"`},
		"array":      {`[1]`, 0, ErrNotRecord, "no object"},
		"null":       {`null`, 0, ErrNotRecord, "no object"},
		"not JSON":   {"hello", 0, ErrNotRecord, "byte"},
		"pcap":       {"\xd4\xc3\xb2\xa1\x02\x00", 0, ErrNotRecord, ""},
		"bad type":   {`{"schema":"twopath/v1","trials":[{"sent":-1}]}`, 0, ErrNotRecord, "sent"},
		"bad result": {`{"schema":"twopath/v1","results":[` + good + `,{"schema":"twopath/v0"}]}`, 1, ErrVersion, "result 2"},
		"bad size":   {`{"schema":"twopath/v1","plan":{"size":["big"]}}`, 0, ErrNotRecord, "size"},
	} {
		docs, err := Read(strings.NewReader(c.in))
		if !errors.Is(err, c.is) || len(docs) != c.docs || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s: %d documents, %v", name, len(docs), err)
		}
	}
	// A field from the future is no obstacle, and neither is an arm's option from there.
	future := strings.Replace(good, `"plan":{`, `"invented":[1],"plan":{`, 1)
	future = strings.Replace(future, `"arms":["kernel:recvmmsg"`, `"arms":["kernel:recvmmsg+invented=1"`, 1)
	if docs, err := Read(strings.NewReader(future)); err != nil || len(docs) != 1 || docs[0].Plan.Arms[0] != "kernel:recvmmsg+invented=1" {
		t.Errorf("%d documents, %v", len(docs), err)
	}
	if docs, err := Read(strings.NewReader(`{"schema":"twopath/v1","results":[]}`)); err != nil || len(docs) != 0 {
		t.Errorf("an empty sweep: %v, %v", docs, err)
	}
}

func TestNoNaNInRecords(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	if Num(nan) != nil || Num(inf) != nil || *Num(2) != 2 || !math.IsNaN(Val(nil)) {
		t.Error("Num or Val")
	}
	d := richDocument(t)
	d.Arms[0].LossRatio, d.Arms[0].CPU.Cores, d.Verdict.CI, d.Trials[1].CPU.WorkNsPerPacket, d.Limit.PPS = &nan, &inf, &[2]float64{1, inf}, &nan, &inf
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := Read(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	got := docs[0]
	if got.Arms[0].LossRatio != nil || got.Arms[0].CPU.Cores != nil || got.Verdict.CI != nil || got.Trials[1].CPU.WorkNsPerPacket != nil || got.Limit.PPS != nil {
		t.Error("a number that is none became one")
	}
	d.Trials[2].Seconds = inf
	if _, err := json.Marshal(d); err == nil || !strings.Contains(err.Error(), "Trials[2].Seconds is +Inf") {
		t.Errorf("an infinite duration: %v", err)
	}
}

func FuzzRead(f *testing.F) {
	var b bytes.Buffer
	if err := richDocument(f).Write(&b); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add(b.Bytes()[:200])
	f.Add([]byte(`{"schema":"twopath/v1","results":[{"schema":"twopath/v1","trials":[{"arm":"a","kind":"measured","block":1,"valid":true,"seconds":1e-300,"sent":5}]}]}`))
	f.Add([]byte(`{"schema":"twopath/v1","plan":{"size":[null],"rate":["line"],"duration":"1s"}}{}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		docs, err := Read(bytes.NewReader(in))
		if err == nil && len(docs) == 0 && !bytes.Contains(in, []byte("results")) {
			t.Fatal("nothing read, nothing wrong")
		}
		for i := range docs {
			for j := range docs[i].Trials {
				_ = docs[i].Trials[j].Check()
			}
			Conclude(&docs[i]) // must stand anything
			var b bytes.Buffer
			if err := docs[i].Write(&b); err != nil {
				t.Fatal(err)
			}
			if back, err := Read(&b); err != nil || len(back) != 1 {
				t.Fatalf("%d documents back, %v", len(back), err)
			}
		}
	})
}
