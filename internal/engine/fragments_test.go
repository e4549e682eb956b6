// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"twopath/internal/agent"
	"twopath/internal/fragments"
	"twopath/internal/nstest"
	"twopath/internal/packet"
)

func fragmentFlow() packet.Flow {
	return packet.Flow{SrcMAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 2}, DstMAC: net.HardwareAddr{2, 0x74, 0x70, 0, 0, 1},
		Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1"), SrcPort: 10000, DstPort: 9000, Flows: 1}
}

// TestAssembler hands it the run's datagrams, whole and in fragments, and others'.
func TestAssembler(t *testing.T) {
	flow := fragmentFlow()
	a, _, err := newAssembler(agent.Prepare{Flow: flow, Fragments: &agent.Fragments{TimeoutNS: int64(time.Second), Memory: 1 << 20, Distance: 64}})
	if err != nil {
		t.Fatal(err)
	}
	list := func(port uint16) [][]byte {
		f := flow
		f.DstPort = port
		l, err := fragments.New(fragments.Options{Flow: f, Run: 5, Pattern: fragments.InOrder, Payload: 2000, MTU: 1500, Count: 1, Seed: 1})
		if err != nil {
			t.Fatal(err)
		}
		return l.Frames
	}
	whole, err := flow.Build(make([]byte, 2048), 128, 0, packet.Stamp{Run: 5})
	if err != nil {
		t.Fatal(err)
	}
	damaged := list(9000)
	damaged[1][100] ^= 1
	tcp := append([]byte(nil), whole...)
	tcp[23] = 6
	tcp[24], tcp[25] = 0, 0
	sum := ^packet.Fold(packet.Sum(tcp[14:34], 0))
	tcp[24], tcp[25] = byte(sum>>8), byte(sum)
	ours := list(9000)
	a.Batch(1)
	for name, c := range map[string]struct {
		frames [][]byte
		want   packet.Verdict
		length int
	}{
		"whole": {[][]byte{whole}, packet.OK, 128 - 46}, "in fragments": {ours, packet.OK, 2000}, "of another port": {list(9001), packet.Foreign, 0},
		"damaged": {damaged, packet.CorruptUDP, 0}, "half": {ours[:1], packet.Held, 0}, "TCP": {[][]byte{tcp}, packet.Foreign, 0}, "cut": {[][]byte{{1, 2}}, packet.Short, 0},
	} {
		var b []byte
		var verdict packet.Verdict
		for _, f := range c.frames {
			b, verdict = a.Frame(f)
		}
		if verdict != c.want || len(b) != c.length {
			t.Errorf("%s: verdict %d, %d B; want %d, %d B", name, verdict, len(b), c.want, c.length)
		}
		a.Batch(int64(10 * time.Second)) // what is left of this one must not meet the next
		a.Batch(1)
	}
	n := map[string]uint64{}
	a.counters(n)
	if n["fragments.frames"] != 10 || n["fragments.received"] != 7 || n["fragments.whole"] != 3 || n["fragments.timeout"] != 1 || n["fragments.unbroken"] != 2 || n[agent.PendingFragments] != 0 {
		t.Errorf("%v", n)
	}
	if n := testing.AllocsPerRun(100, func() {
		a.Batch(2)
		for _, f := range ours {
			a.Frame(f)
		}
	}); n != 0 {
		t.Errorf("%v allocations a datagram", n)
	}
}

func TestFragInuse(t *testing.T) {
	for text, want := range map[string]uint64{
		"sockets: used 1\nTCP: inuse 0 orphan 0\nFRAG: inuse 12 memory 9024\n": 12,
		"RAW6: inuse 0\nFRAG6: inuse 0 memory 0\n":                             0,
	} {
		if n, err := fragInuse(text); err != nil || n != want {
			t.Errorf("%q: %d, %v", text, n, err)
		}
	}
	for _, text := range []string{"", "FRAG: memory 5", "FRAG: inuse many memory 0", "FRAG:"} {
		if _, err := fragInuse(text); err == nil {
			t.Errorf("%q: accepted", text)
		}
	}
}

// TestLimitFragments: limits are set and put back where the namespace is ours, and left alone where it is not.
func TestLimitFragments(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	read := func(name string) string {
		b, err := os.ReadFile("/proc/sys/net/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	p.SUT.Do(t, func() {
		for _, v6 := range []bool{false, true} {
			names := []string{"ipv4/ipfrag_time", "ipv4/ipfrag_high_thresh", "ipv4/ipfrag_low_thresh", "ipv4/ipfrag_max_dist"}
			if v6 {
				names = []string{"ipv6/ip6frag_time", "ipv6/ip6frag_high_thresh", "ipv6/ip6frag_low_thresh"}
			}
			before := map[string]string{}
			for _, n := range names {
				before[n] = read(n)
			}
			for _, memory := range []int{1 << 20, 64 << 20} { // below and above the kernel's lower threshold
				f := &agent.Fragments{TimeoutNS: 7e9, Memory: memory, Distance: 9, Own: true}
				limits, undo, err := limitFragments(f, v6)
				if err != nil {
					t.Fatal(err)
				}
				for _, n := range names {
					if n != "ipv4/ipfrag_low_thresh" && n != "ipv6/ip6frag_low_thresh" && limits[n[5:]]+"\n" != read(n) {
						t.Errorf("%s is %s, reported %q", n, read(n), limits[n[5:]])
					}
				}
				if read(names[0]) != "7\n" {
					t.Errorf("time is %s", read(names[0]))
				}
				if err := undo(); err != nil {
					t.Error(err)
				}
				for _, n := range names {
					if read(n) != before[n] {
						t.Errorf("%s is %s, was %s", n, read(n), before[n])
					}
				}
			}
			limits, undo, err := limitFragments(&agent.Fragments{TimeoutNS: 7e9, Memory: 1 << 20, Distance: 9}, v6)
			if err != nil || limits[names[0][5:]]+"\n" != before[names[0]] || read(names[0]) != before[names[0]] {
				t.Errorf("another's namespace: %v, %v", limits, err)
			}
			if err := undo(); err != nil {
				t.Error(err)
			}
		}
	})
}
