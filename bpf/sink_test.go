// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"math/rand/v2"
	"testing"

	"twopath/internal/nstest"
)

func newTestSink(t *testing.T, f testFrame, o SinkOptions) *Sink {
	t.Helper()
	nstest.Root(t)
	o.Match = f.match()
	s, err := NewSink(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func sinkStats(t *testing.T, s *Sink) SinkStats {
	t.Helper()
	st, err := s.Stats()
	if err != nil {
		t.Fatal(err)
	}
	sum := st.Unique + st.Duplicate + st.OutsideWindow + st.Contended + st.OtherStream +
		st.CorruptIP + st.CorruptUDP + st.CorruptPayload + st.WrongLength
	if sum != st.Received {
		t.Errorf("received %d, but the parts add up to %d: %+v", st.Received, sum, st)
	}
	return st
}

func TestSinkSequence(t *testing.T) {
	const window = 1 << 20
	for _, c := range []struct {
		name    string
		numbers []uint64
		want    SinkStats
	}{
		{"in order", []uint64{0, 1, 2, 3}, SinkStats{Unique: 4}},
		{"starts late", []uint64{5, 6}, SinkStats{Unique: 2, Gaps: 1, Skipped: 5}},
		{"gap", []uint64{0, 3}, SinkStats{Unique: 2, Gaps: 1, Skipped: 2}},
		{"neighbours swapped", []uint64{1, 0, 3, 2}, SinkStats{Unique: 4, Reordered: 2, Gaps: 2, Skipped: 2}},
		{"duplicate", []uint64{0, 0, 1, 0, 1}, SinkStats{Unique: 2, Duplicate: 3}},
		{"late duplicate across words", []uint64{31, 32, 31, 32, 0}, SinkStats{Unique: 3, Duplicate: 2, Reordered: 1, Gaps: 1, Skipped: 31}},
		{"next lap", []uint64{7, window + 7, 2*window + 7}, SinkStats{Unique: 3, Gaps: 3, Skipped: 7 + 2*(window-1)}},
		{"just inside the window", []uint64{window - 1, 0}, SinkStats{Unique: 2, Reordered: 1, Gaps: 1, Skipped: window - 1}},
		{"outside the window", []uint64{window + 7, 7}, SinkStats{Unique: 1, OutsideWindow: 1, Gaps: 1, Skipped: window + 7}},
		{"highest number", []uint64{1<<40 - 1, 1<<40 - 1}, SinkStats{Unique: 1, Duplicate: 1, Gaps: 1, Skipped: 1<<40 - 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestSink(t, frame4(), SinkOptions{VerifyUDP: true})
			for _, n := range c.numbers {
				f := frame4()
				f.number = n
				runOnce(t, s, f.build())
			}
			got := sinkStats(t, s)
			got = SinkStats{Unique: got.Unique, Duplicate: got.Duplicate, Reordered: got.Reordered,
				Gaps: got.Gaps, Skipped: got.Skipped, OutsideWindow: got.OutsideWindow}
			if got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// Against a plain set, for numbers in random order with repeats, over several laps of the window.
func TestSinkSequenceRandom(t *testing.T) {
	s := newTestSink(t, frame6(), SinkOptions{Streams: 3})
	rnd := rand.New(rand.NewPCG(1, 2))
	type id struct {
		stream uint8
		number uint64
	}
	seen := map[id]bool{}
	next := map[uint8]uint64{}
	var want SinkStats
	base := uint64(1<<20 - 500)
	for range 3000 {
		f := frame6()
		f.stream, f.number = uint8(rnd.IntN(3)), base+rnd.Uint64N(1000)
		runOnce(t, s, f.build())
		switch k := (id{f.stream, f.number}); {
		case seen[k]:
			want.Duplicate++
		default:
			seen[k] = true
			want.Unique++
			if f.number < next[f.stream] {
				want.Reordered++
			} else {
				if f.number > next[f.stream] {
					want.Gaps++
					want.Skipped += f.number - next[f.stream]
				}
				next[f.stream] = f.number + 1
			}
		}
	}
	got := sinkStats(t, s)
	if got.Unique != want.Unique || got.Duplicate != want.Duplicate || got.Reordered != want.Reordered ||
		got.Gaps != want.Gaps || got.Skipped != want.Skipped {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSinkContent(t *testing.T) {
	big := func(f testFrame, payload int) testFrame { f.payload = payload; return f }
	for _, c := range []struct {
		name   string
		frame  testFrame
		change func([]byte) []byte
		field  func(SinkStats) uint64
	}{
		{"v4 sound", frame4(), nil, func(s SinkStats) uint64 { return s.Unique }},
		{"v6 sound", frame6(), nil, func(s SinkStats) uint64 { return s.Unique }},
		{"v4 sound, odd", big(frame4(), 1471), nil, func(s SinkStats) uint64 { return s.Unique }},
		{"v6 sound, largest", big(frame6(), 1452), nil, func(s SinkStats) uint64 { return s.Unique }},
		{"sound, 19 bytes", big(frame4(), 19), nil, func(s SinkStats) uint64 { return s.Unique }},
		{"sound, jumbo", big(frame4(), 3000), nil, func(s SinkStats) uint64 { return s.Unique }},
		{"v4 TTL touched", frame4(), at(22, 63), func(s SinkStats) uint64 { return s.CorruptIP }},
		{"v4 header checksum", frame4(), at(24, 0, 0), func(s SinkStats) uint64 { return s.CorruptIP }},
		{"v4 UDP checksum", frame4(), at(40, 0x12, 0x34), func(s SinkStats) uint64 { return s.CorruptUDP }},
		{"v6 UDP checksum", frame6(), at(60, 0x12, 0x34), func(s SinkStats) uint64 { return s.CorruptUDP }},
		{"v4 no UDP checksum", frame4(), at(40, 0, 0), func(s SinkStats) uint64 { return s.Unique }},
		{"v6 no UDP checksum", frame6(), at(60, 0, 0), func(s SinkStats) uint64 { return s.CorruptUDP }},
		{"v4 send time touched", frame4(), at(59, 1), func(s SinkStats) uint64 { return s.CorruptUDP }},
		{"last byte touched, odd", big(frame4(), 1471), at(42+1470, 1), func(s SinkStats) uint64 { return s.CorruptUDP }},
		{"one byte more", frame4(), insert(60, 0), func(s SinkStats) uint64 { return s.WrongLength }},
		{"cut below its length", big(frame4(), 100), cut(100), func(s SinkStats) uint64 { return s.WrongLength }},
		{"UDP length too short", frame4(), at(38, 0, 25), func(s SinkStats) uint64 { return s.WrongLength }},
		{"v6 payload length", frame6(), at(18, 0, 27), func(s SinkStats) uint64 { return s.WrongLength }},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newTestSink(t, c.frame, SinkOptions{VerifyUDP: true})
			b := c.frame.build()
			if c.change != nil {
				b = c.change(b)
			}
			runOnce(t, s, b)
			st := sinkStats(t, s)
			if c.field(st) != 1 || st.Received != 1 {
				t.Errorf("got %+v", st)
			}
			if n := uint64(len(b)); st.LengthMin != n || st.LengthMax != n || st.Bytes != n {
				t.Errorf("length %d..%d, %d bytes, want %d", st.LengthMin, st.LengthMax, st.Bytes, n)
			}
		})
	}
}

// Without checking UDP checksums the pattern still shows damage at its ends and in the middle.
func TestSinkPattern(t *testing.T) {
	s := newTestSink(t, frame4(), SinkOptions{})
	f := frame4()
	f.payload = 200
	for i, off := range []int{18, 100, 199} {
		b := f.build()
		b[42+off] ^= 0x80
		runOnce(t, s, b)
		if st := sinkStats(t, s); st.CorruptPayload != uint64(i+1) {
			t.Errorf("byte %d touched: %+v", off, st)
		}
	}
}

func TestSinkLatencyAndFlows(t *testing.T) {
	s := newTestSink(t, frame4(), SinkOptions{Flows: 5})
	before, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	for i, ago := range []uint64{1_000_000, 5_000_000} {
		f := frame4()
		f.number, f.at, f.sport = uint64(i), before-ago, 10003
		runOnce(t, s, f.build())
	}
	f := frame4()
	f.number, f.at, f.sport = 2, before+3600_000_000_000, 10013
	runOnce(t, s, f.build())
	after, err := monotonic()
	if err != nil {
		t.Fatal(err)
	}
	st := sinkStats(t, s)
	took := after - before
	if st.LatencyCount != 2 || st.LatencyNegative != 1 ||
		st.LatencyMin < 1_000_000 || st.LatencyMin > 1_000_000+took || st.LatencyMax < 5_000_000 || st.LatencyMax > 5_000_000+took ||
		st.LatencySum != st.LatencyMin+st.LatencyMax {
		t.Errorf("took %d ns: %+v", took, st)
	}
	flows, err := s.Flows()
	if err != nil || len(flows) != 5 || flows[3] != 3 || flows[0]+flows[1]+flows[2]+flows[4] != 0 {
		t.Errorf("flows %v, %v", flows, err)
	}
}

func TestSinkStreams(t *testing.T) {
	s := newTestSink(t, frame4(), SinkOptions{Streams: 2})
	for _, stream := range []uint8{0, 1, 2, 255} {
		f := frame4()
		f.stream = stream
		runOnce(t, s, f.build())
	}
	if st := sinkStats(t, s); st.Unique != 2 || st.OtherStream != 2 {
		t.Errorf("got %+v", st)
	}
}

func TestSinkRefusals(t *testing.T) {
	for name, change := range map[string]func(*SinkOptions){
		"any run":          func(o *SinkOptions) { o.Match.AnyRun = true },
		"flows":            func(o *SinkOptions) { o.Flows = 65537 },
		"streams":          func(o *SinkOptions) { o.Streams = 257 },
		"frags and verify": func(o *SinkOptions) { o.Frags, o.VerifyUDP = true, true },
		"empty match":      func(o *SinkOptions) { o.Match = FlowMatch{} },
	} {
		o := SinkOptions{Match: frame4().match()}
		change(&o)
		if s, err := NewSink(o); err == nil {
			s.Close()
			t.Errorf("%s: accepted", name)
		}
	}
}
