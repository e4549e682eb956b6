// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gopacket/gopacket"
	"github.com/gopacket/gopacket/layers"
	"github.com/gopacket/gopacket/pcapgo"
)

// record is one record of a file to build.
type record struct {
	at   time.Duration // since the epoch
	data []byte
	wire int // 0 means all of data
}

// pcap builds a classic capture.
func pcap(order binary.AppendByteOrder, nano bool, link uint32, records ...record) []byte {
	magic, unit := uint32(0xa1b2c3d4), time.Microsecond
	if nano {
		magic, unit = 0xa1b23c4d, time.Nanosecond
	}
	var b []byte
	b = order.AppendUint32(b, magic)
	b = order.AppendUint16(b, 2)
	b = order.AppendUint16(b, 4)
	b = order.AppendUint64(b, 0)
	b = order.AppendUint32(b, 262144)
	b = order.AppendUint32(b, link)
	for _, r := range records {
		wire := r.wire
		if wire == 0 {
			wire = len(r.data)
		}
		b = order.AppendUint32(b, uint32(r.at/time.Second))
		b = order.AppendUint32(b, uint32(r.at%time.Second/unit))
		b = order.AppendUint32(b, uint32(len(r.data)))
		b = order.AppendUint32(b, uint32(wire))
		b = append(b, r.data...)
	}
	return b
}

// pcapng builds a capture with one interface for each link type, record i on interface i mod them.
func pcapng(t testing.TB, links []layers.LinkType, records ...record) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := pcapgo.NewNgWriter(&b, links[0])
	for _, l := range links[1:] {
		if _, e := w.AddInterface(pcapgo.NgInterface{Name: "x", LinkType: l, SnapLength: 0, TimestampResolution: 9}); e != nil {
			err = e
		}
	}
	for i, r := range records {
		wire := r.wire
		if wire == 0 {
			wire = len(r.data)
		}
		if e := w.WritePacket(gopacket.CaptureInfo{Timestamp: time.Unix(0, int64(r.at)), CaptureLength: len(r.data), Length: wire, InterfaceIndex: i % len(links)}, r.data); e != nil {
			err = e
		}
	}
	if err := errors.Join(err, w.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// frameOf is an Ethernet frame of n bytes that tells itself from others.
func frameOf(n int, mark byte) []byte {
	f := make([]byte, n)
	for i := range f {
		f[i] = mark
	}
	if n >= 14 {
		f[12], f[13] = 8, 0
	}
	return f
}

func decode(b []byte) (*Capture, error) { return Decode("x.pcap", bytes.NewReader(b), Options{}) }

// All formats say the same.
func TestFormats(t *testing.T) {
	const base = 1_700_000_000 * time.Second
	records := []record{{at: base, data: frameOf(60, 1)}, {at: base + 1500*time.Microsecond, data: frameOf(1514, 2)}, {at: base + 2*time.Second, data: frameOf(14, 3)}}
	for name, b := range map[string][]byte{
		"pcap, us, little endian": pcap(binary.LittleEndian, false, 1, records...),
		"pcap, us, big endian":    pcap(binary.BigEndian, false, 1, records...),
		"pcap, ns, little endian": pcap(binary.LittleEndian, true, 1, records...),
		"pcap, ns, big endian":    pcap(binary.BigEndian, true, 1, records...),
		"pcapng":                  pcapng(t, []layers.LinkType{1}, records...),
	} {
		c, err := decode(b)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(c.Frames) != 3 || c.Records != 3 || c.Skipped != (Skipped{}) || c.Backwards != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		for i, want := range []time.Duration{0, 1500 * time.Microsecond, 2 * time.Second} {
			if c.At[i] != want || !bytes.Equal(c.Frames[i], records[i].data) {
				t.Errorf("%s: frame %d at %v, want %v", name, i, c.At[i], want)
			}
		}
	}
}

// Every record is sent or counted, and time never runs back.
func TestRecords(t *testing.T) {
	tagged := frameOf(1518, 9)
	tagged[12], tagged[13] = 0x81, 0
	records := []record{
		{at: 5 * time.Second, data: frameOf(60, 1)},
		{at: 6 * time.Second, data: frameOf(60, 2), wire: 1514}, // cut
		{at: 6 * time.Second, data: nil, wire: 60},              // nothing was captured
		{at: 6 * time.Second, data: frameOf(13, 3)},             // too short
		{at: 6 * time.Second, data: frameOf(1515, 4)},           // over the MTU
		{at: 6 * time.Second, data: tagged},                     // not over it: a tag
		{at: 4 * time.Second, data: frameOf(61, 5)},             // before the one before
		{at: 6 * time.Second, data: frameOf(62, 6)},             // at the same time as the latest
		{at: 70000 * time.Second, data: frameOf(63, 7)},         // a long way ahead
	}
	c, err := decode(pcap(binary.LittleEndian, false, 1, records...))
	if err != nil {
		t.Fatal(err)
	}
	if want := (Skipped{Cut: 1, Empty: 1, Short: 1, TooLong: 1}); c.Skipped != want || c.Records != 9 || c.Backwards != 1 {
		t.Errorf("%+v of %d, %d backwards", c.Skipped, c.Records, c.Backwards)
	}
	want := []time.Duration{0, time.Second, time.Second, time.Second, 69995 * time.Second}
	if len(c.At) != len(want) {
		t.Fatalf("times %v", c.At)
	}
	for i := range want {
		if c.At[i] != want[i] {
			t.Errorf("frame %d at %v, want %v", i, c.At[i], want[i])
		}
	}
	if gap, frame := c.LongestGap(); gap != 69994*time.Second || frame != 5 {
		t.Errorf("longest gap %v before frame %d", gap, frame)
	}
	if s := c.Skipped.String(); s != "1 cut by the snap length, 1 empty, 1 shorter than their link header, 1 too long" {
		t.Error(s)
	}
}

// Over the limit of live frames, also where the MTU would let it pass.
func TestJumbo(t *testing.T) {
	c, err := Decode("x", bytes.NewReader(pcap(binary.LittleEndian, false, 1, record{data: frameOf(3408, 1)}, record{data: frameOf(3409, 1)})), Options{MTU: 9000})
	if err != nil || len(c.Frames) != 1 || c.Skipped.TooLong != 1 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLinkTypes(t *testing.T) {
	ip4, ip6 := append([]byte{0x45}, make([]byte, 19)...), append([]byte{0x60}, make([]byte, 39)...)
	mac := []byte{2, 1, 2, 3, 4, 5}
	sll := func(proto uint16, n byte) []byte {
		b := append([]byte{0, 4, 0, 1, 0, n}, append(mac, 0, 0)...)
		return append(binary.BigEndian.AppendUint16(b, proto), ip4...)
	}
	sll2 := func(proto uint16) []byte {
		b := binary.BigEndian.AppendUint16(nil, proto)
		b = append(b, 0, 0, 0, 0, 0, 3, 0, 1, 4, 6)
		return append(append(b, append(mac, 0, 0)...), ip6...)
	}
	for _, c := range []struct {
		name  string
		link  uint32
		data  []byte
		proto uint16 // 0: not sent
		src   []byte
	}{
		{"cooked", linkSLL, sll(0x800, 6), 0x800, mac},
		{"cooked without address", linkSLL, sll(0x800, 0), 0x800, make([]byte, 6)},
		{"cooked 802.3", linkSLL, sll(1, 6), 0, nil},
		{"cooked, cut", linkSLL, sll(0x800, 6)[:15], 0, nil},
		{"cooked v2", linkSLL2, sll2(0x86dd), 0x86dd, mac},
		{"cooked v2, cut", linkSLL2, sll2(0x86dd)[:19], 0, nil},
		{"raw IPv4", linkRaw, ip4, 0x800, make([]byte, 6)},
		{"raw IPv6", linkRaw, ip6, 0x86dd, make([]byte, 6)},
		{"raw, BSD", linkRawBSD, ip4, 0x800, make([]byte, 6)},
		{"IPv4", linkIPv4, ip4, 0x800, make([]byte, 6)},
		{"IPv6", linkIPv6, ip6, 0x86dd, make([]byte, 6)},
		{"raw, neither", linkRaw, []byte{0x50, 1}, 0, nil},
	} {
		got, err := decode(pcap(binary.BigEndian, true, c.link, record{data: c.data}))
		if c.proto == 0 {
			if err == nil || !strings.Contains(err.Error(), "none of its 1 records can be sent") {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		f := got.Frames[0]
		if binary.BigEndian.Uint16(f[12:]) != c.proto || !bytes.Equal(f[6:12], c.src) || !bytes.HasSuffix(c.data, f[14:]) || f[14]>>4 != c.data[len(c.data)-len(f)+14]>>4 {
			t.Errorf("%s: % x", c.name, f)
		}
	}
	// A pcapng file may mix them.
	got, err := decode(pcapng(t, []layers.LinkType{linkEthernet, linkRaw}, record{data: frameOf(60, 1)}, record{data: ip6}))
	if err != nil || len(got.Frames) != 2 || len(got.Frames[1]) != 54 || len(got.Links) != 2 {
		t.Errorf("mixed: %+v, %v", got, err)
	}
}

// What cannot be used is named, with cause and cure.
func TestRefused(t *testing.T) {
	whole := pcap(binary.LittleEndian, false, 1, record{data: frameOf(60, 1)}, record{data: frameOf(60, 2)})
	long := pcap(binary.LittleEndian, false, 1, record{data: frameOf(60, 1), wire: 20})
	for _, c := range []struct {
		name string
		b    []byte
		want []string
	}{
		{"empty", nil, []string{"the file is empty", "tcpdump -w"}},
		{"no records", pcap(binary.LittleEndian, false, 1), []string{"it has no records", "tcpdump -w"}},
		{"two bytes", whole[:2], []string{"2 bytes are no capture"}},
		{"cut in the header", whole[:20], []string{"it ends before its first record", "copy it again"}},
		{"cut in a record", whole[:len(whole)-1], []string{"it ends within record 2", "1 whole records", "editcap"}},
		{"cut behind a record's header", whole[:24+16+60+16], []string{"it ends within record 2"}},
		{"other link type", pcap(binary.LittleEndian, false, 105, record{data: frameOf(60, 1)}), []string{"record 1 has link type 105", "can be replayed"}},
		{"captured more than was there", long, []string{"record 1", "exceeds", "editcap"}},
		{"text", []byte("GET / HTTP/1.1"), []string{"neither pcap nor pcapng", "editcap -F pcapng"}},
		{"gzip", []byte{0x1f, 0x8b, 8, 0, 0}, []string{"compressed", "gunzip"}},
		{"snoop", []byte("snoop\x00\x00\x00"), []string{"snoop", "editcap"}},
		{"all cut", pcap(binary.LittleEndian, false, 1, record{data: frameOf(60, 1), wire: 90}), []string{"none of its 1 records", "tcpdump -s 0"}},
		{"all too long", pcap(binary.LittleEndian, false, 1, record{data: frameOf(2000, 1)}), []string{"none of its 1 records", "tso off"}},
	} {
		_, err := decode(c.b)
		var fe *FileError
		if !errors.As(err, &fe) || fe.Path != "x.pcap" {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q does not say %q", c.name, err, want)
			}
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none.pcap"), Options{}); !errors.Is(err, os.ErrNotExist) || !strings.Contains(err.Error(), "none.pcap") {
		t.Errorf("no file: %v", err)
	}
}

// A file cut anywhere but between records is refused, and never taken for a shorter one.
func TestCutAnywhere(t *testing.T) {
	records := []record{{data: frameOf(60, 1)}, {data: frameOf(61, 2)}, {data: frameOf(100, 3)}}
	for name, b := range map[string][]byte{"pcap": pcap(binary.LittleEndian, false, 1, records...), "pcapng": pcapng(t, []layers.LinkType{1}, records...)} {
		whole := map[int]bool{}
		at := 24
		if name == "pcap" {
			for _, r := range records {
				at += 16 + len(r.data)
				whole[at] = true
			}
		} else {
			for at = 0; at < len(b); {
				at += int(binary.LittleEndian.Uint32(b[at+4:]))
				whole[at] = true
			}
		}
		for n := range len(b) {
			c, err := decode(b[:n])
			if err == nil && !whole[n] {
				t.Errorf("%s cut at %d of %d: taken for a whole one of %d records", name, n, len(b), c.Records)
			}
		}
	}
}

// The recordings of real programs, counted by tshark (testdata/record made them).
func TestRecordings(t *testing.T) {
	for name, want := range map[string]struct {
		records uint64
		format  string
		link    string
	}{
		"http.pcapng": {325, "pcapng", "Ethernet"}, "once.pcap": {10, "pcap", "Ethernet"}, "dns.pcap": {480, "pcap", "Ethernet"},
		"cooked.pcap": {10, "pcap", "Linux cooked"}, "cooked2.pcapng": {10, "pcapng", "Linux cooked v2"},
	} {
		c, err := Read(filepath.Join("testdata", name), Options{})
		if err != nil {
			t.Error(err)
			continue
		}
		if c.Records != want.records || uint64(len(c.Frames)) != want.records || c.Format != want.format || c.Links[0] != want.link || len(c.SHA256) != 64 {
			t.Errorf("%s: %d records, %d frames, %s, %v, skipped %+v", name, c.Records, len(c.Frames), c.Format, c.Links, c.Skipped)
		}
	}
}

func TestSchedule(t *testing.T) {
	c := &Capture{Frames: make([][]byte, 3), At: []time.Duration{0, 10 * time.Millisecond, 40 * time.Millisecond}}
	due, period := c.Schedule(2)
	if due[1] != 5*time.Millisecond || due[2] != 20*time.Millisecond || period != 30*time.Millisecond {
		t.Errorf("x2: %v, period %v", due, period)
	}
	if due, period := c.Schedule(0.5); due[2] != 80*time.Millisecond || period != 120*time.Millisecond {
		t.Errorf("x0.5: %v, period %v", due, period)
	}
	one := &Capture{At: []time.Duration{0}}
	if due, period := one.Schedule(1); len(due) != 1 || period != 0 {
		t.Errorf("one frame: %v, period %v", due, period)
	}
}

// Whatever the bytes, every record is counted once and all frames can be sent.
func FuzzDecode(f *testing.F) {
	rs := []record{{data: frameOf(60, 1)}, {at: time.Second, data: frameOf(13, 2)}, {data: frameOf(1600, 3)}, {data: frameOf(60, 4), wire: 70}}
	f.Add(pcap(binary.LittleEndian, false, 1, rs...))
	f.Add(pcap(binary.BigEndian, true, linkSLL, rs...))
	f.Add(pcap(binary.LittleEndian, true, linkSLL2, rs...))
	f.Add(pcapng(f, []layers.LinkType{1, linkRaw}, rs...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := decode(b)
		if err != nil {
			if c != nil || !strings.HasPrefix(err.Error(), "capture x.pcap: ") {
				t.Errorf("%v", err)
			}
			return
		}
		if c.Records != uint64(len(c.Frames))+c.Skipped.Sum() || len(c.Frames) == 0 || len(c.At) != len(c.Frames) || c.At[0] != 0 {
			t.Errorf("%d records, %d frames, %+v", c.Records, len(c.Frames), c.Skipped)
		}
		for i, fr := range c.Frames {
			if len(fr) < 14 || len(fr) > 1518 || i > 0 && c.At[i] < c.At[i-1] {
				t.Errorf("frame %d of %d bytes at %v", i, len(fr), c.At[i])
			}
		}
	})
}
