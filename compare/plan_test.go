// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const planFile = `# a plan
test: udp-rx
arms: [kernel:recvmmsg+batch=64, xdp:auto]
size: [64, 1518]
rate: line:1g
count: 1M
blocks: 8
cpus: {sut: 0, peer: 1}
margin: 3%
strict: true
require:
  - xdp:auto.loss_ratio<=1e-4
`

func TestReadPlan(t *testing.T) {
	p := DefaultPlan("udp-rx")
	if err := p.ReadPlan(strings.NewReader(planFile)); err != nil {
		t.Fatal(err)
	}
	p.Complete()
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	if p.Arms[0] != "kernel:recvmmsg+batch=64" || len(p.Sizes) != 2 || p.Count != 1e6 || p.Duration != 0 || p.Blocks != 8 || !p.Strict ||
		p.CPUs.String() != "sut=0,peer=1" || !near(p.Margin, 0.03) || len(p.Require) != 1 || p.Flows != 1 {
		t.Errorf("plan %+v", p)
	}
	cells, err := p.Cells()
	if err != nil || len(cells) != 2 || cells[1].Size.Bytes != 1518 {
		t.Errorf("cells %v, %v", cells, err)
	}
	// Flags override the file, and displace what excludes them.
	for key, value := range map[string]string{"payload": "1024", "duration": "2s", "softirq-sched": "fifo", "rate": "1M,2M"} {
		if err := p.Set(key, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Validate(); err != nil {
		t.Error(err)
	}
	if len(p.Sizes) != 0 || p.Count != 0 || p.Duration != Duration(2*time.Second) || p.SoftirqSched != "fifo" {
		t.Errorf("after flags %+v", p)
	}
	if cells, _ := p.Cells(); len(cells) != 2 || cells[0].Size.Bytes != 1070 {
		t.Errorf("cells %v", cells)
	}
}

func TestReadPlanRefuses(t *testing.T) {
	for in, parts := range map[string][]string{
		"test: udp-rx\nblock: 6\n":            {`"block"`, "line 2", `did you mean "blocks"?`, "allowed: test, arms"},
		"test: udp-rx\n\nrate: 10G\n":         {"line 3", "1 G packets"},
		"blocks: 6\nblocks: 7\n":              {"line 2", "on line 1"},
		"size: 64\npayload: 100\n":            {"line 2", "size is given too, on line 1"},
		"count: 5\nduration: 1s\n":            {"duration", "count is given too"},
		"blocks: [6]\n":                       {"line 1", "takes one value"},
		"blocks:\n":                           {"no value"},
		"- test\n":                            {"not a mapping"},
		"":                                    {"empty"},
		"test: udp-rx\n---\ntest: udp-rx\n":   {"more than one document"},
		"test: [\n":                           {"plan"},
		"arms: [kernel:epol]\n":               {"line 1", `did you mean "epoll"?`},
		"cpus: {sut: [0]}\n":                  {"not a single value"},
		"require: ['xdp:auto.lossratio<1']\n": {`did you mean "loss_ratio"?`},
		"strict: maybe\n":                     {"not true or false"},
		"flows: many\n":                       {"not a whole number"},
		"a: &x 1\nblocks: *x\n":               {`"a"`},
		"blocks: &x 6\nwarmup: *x\n":          {"aliases"},
		"payload: 2000\n":                     {"18..1472"},
		"margin: x\n":                         {"not a number"},
		"seed: -1\n":                          {"64 bits"},
		"size: 64\nrate: [1M, 1Mpps]\n":       {"twice"},
		"work: 5\n":                           {"neither a time"},
	} {
		p := DefaultPlan("udp-rx")
		refused(t, in, p.ReadPlan(strings.NewReader(in)), parts...)
	}
}

func TestValidate(t *testing.T) {
	good := func() Plan {
		p := DefaultPlan("udp-rx")
		p.Complete()
		return p
	}
	p := good()
	if err := p.Validate(); err != nil {
		t.Fatalf("default plan: %v", err)
	}
	if p.Sizes[0].Bytes != 64 || p.Rates[0].String() != "line:1G" || p.Duration != Duration(time.Second) || p.Blocks < MinBlocks {
		t.Errorf("default plan %+v", p)
	}
	for name, c := range map[string]struct {
		change func(*Plan)
		part   string
	}{
		"test":      {func(p *Plan) { p.Test = "udp-tx2" }, "allowed: udp-rx"},
		"arm":       {func(p *Plan) { p.Arms = []string{"xdp:fast"} }, "no such variant"},
		"no arm":    {func(p *Plan) { p.Arms = nil }, "kernel:recvmmsg xdp:auto"},
		"ip":        {func(p *Plan) { p.IP = 5 }, "4 or 6"},
		"ipv6 size": {func(p *Plan) { p.IP = 6 }, "84"},
		"peer":      {func(p *Plan) { p.Peer = ":eth9" }, "--nic"},
		"nic":       {func(p *Plan) { p.NIC = "eth9" }, "--peer"},
		"both":      {func(p *Plan) { p.Payload = 100 }, "--payload and --size"},
		"payload":   {func(p *Plan) { p.Sizes, p.Payload = nil, 5 }, "18.."},
		"no size":   {func(p *Plan) { p.Sizes = nil }, "--size 64"},
		"no rate":   {func(p *Plan) { p.Rates = nil }, "--rate"},
		"line":      {func(p *Plan) { p.Rates = []Rate{{Unit: Line, Value: 1}} }, "line:1g"},
		"ends":      {func(p *Plan) { p.Count = 5 }, "--count and --duration"},
		"no end":    {func(p *Plan) { p.Duration = 0 }, "--duration"},
		"flows":     {func(p *Plan) { p.Flows = MaxFlows + 1 }, "source port"},
		"queues":    {func(p *Plan) { p.Queues = Queues{0} }, "1..256"},
		"blocks":    {func(p *Plan) { p.Blocks = 0 }, "--blocks 6"},
		"warmup":    {func(p *Plan) { p.Warmup = -1 }, "0..10"},
		"margin":    {func(p *Plan) { p.Margin = 0 }, "--margin"},
		"placement": {func(p *Plan) { p.Placement = "shard" }, `did you mean "shared"?`},
		"sender":    {func(p *Plan) { p.Placement, p.NIC, p.Peer = PlaceSender, "eth8", ":eth9" }, "veth rig"},
		"sched":     {func(p *Plan) { p.SoftirqSched = "rr" }, "other, fifo, best"},
		"peer napi": {func(p *Plan) { p.PeerNAPI = "x" }, "threaded, inline"},
		"require":   {func(p *Plan) { p.Require = []string{"x"} }, "no comparison"},
	} {
		p := good()
		c.change(&p)
		refused(t, name, p.Validate(), c.part)
	}
}

func TestPlanRoundTrips(t *testing.T) {
	p := DefaultPlan("udp-rx")
	if err := p.ReadPlan(strings.NewReader(planFile)); err != nil {
		t.Fatal(err)
	}
	p.Sizes = append(p.Sizes, Size{IMIX: true})
	p.Work = Work{Time: 800}
	p.Placement, p.PeerNAPI = PlaceSplit, "inline"
	y, err := p.YAML()
	if err != nil {
		t.Fatal(err)
	}
	var fromYAML Plan
	if err := fromYAML.ReadPlan(strings.NewReader(string(y))); err != nil {
		t.Fatalf("%v in\n%s", err, y)
	}
	if !reflect.DeepEqual(fromYAML, p) {
		t.Errorf("YAML gave %+v, want %+v", fromYAML, p)
	}
	j, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var fromJSON Plan
	if err := json.Unmarshal(j, &fromJSON); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fromJSON, p) {
		t.Errorf("JSON gave %+v, want %+v", fromJSON, p)
	}
}

// Every field of Plan can be set by a key, and every key is a field.
func TestPlanKeysAreTheFields(t *testing.T) {
	var tags []string
	for i := range reflect.TypeFor[Plan]().NumField() {
		f := reflect.TypeFor[Plan]().Field(i)
		j, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		y, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if j != y {
			t.Errorf("%s is %q in JSON and %q in YAML", f.Name, j, y)
		}
		tags = append(tags, j)
	}
	if got := PlanKeys(); !reflect.DeepEqual(got, tags) {
		t.Errorf("keys %v, fields %v", got, tags)
	}
}

func TestSetUnknownKey(t *testing.T) {
	var p Plan
	refused(t, "size", p.Set("sizes", "64"), `did you mean "size"?`)
}

func FuzzReadPlan(f *testing.F) {
	f.Add(planFile)
	f.Add("test: udp-rx\nsize: imix\n")
	f.Add("cpus: {sut: 0}\n? [a]\n: b\n")
	f.Add("a: *b\n")
	f.Fuzz(func(t *testing.T, s string) {
		p := DefaultPlan("udp-rx")
		if err := p.ReadPlan(strings.NewReader(s)); err != nil {
			var usage *UsageError
			if !errors.As(err, &usage) {
				t.Fatalf("%v is no UsageError", err)
			}
			return
		}
		p.Complete()
		if p.Validate() != nil {
			return
		}
		y, err := p.YAML()
		if err != nil {
			t.Fatal(err)
		}
		var back Plan
		if err := back.ReadPlan(strings.NewReader(string(y))); err != nil {
			t.Fatalf("%v reading back\n%s", err, y)
		}
		if again, _ := back.YAML(); string(again) != string(y) {
			t.Fatalf("not the same plan:\n%s\n%s", y, again)
		}
	})
}
