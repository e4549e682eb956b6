// SPDX-License-Identifier: Apache-2.0

package netstack

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"twopath/internal/measure"
	"twopath/internal/nstest"
)

// TestAgreesWithTheKernel sends the same fragments, well-formed and not, to the kernel of a namespace and to a reassembler, and
// compares every count that the kernel has.
func TestAgreesWithTheKernel(t *testing.T) {
	nstest.Root(t)
	for name, v6 := range families {
		for _, window := range []int{1, 3, 90} { // datagrams whose fragments are mixed; 90 exceeds IPv4's distance of 64
			t.Run(fmt.Sprintf("%s/%d", name, window), func(t *testing.T) {
				p := nstest.NewPair(t, nstest.Options{})
				p.Silent(t)
				sysctl(t, p.SUT, map[string]string{"ipv4/ipfrag_time": "1", "ipv6/ip6frag_time": "1",
					"ipv4/ipfrag_high_thresh": "67108864", "ipv6/ip6frag_high_thresh": "67108864"})
				rng := rand.New(rand.NewPCG(uint64(window), 5))
				var packets [][]byte
				for id := uint32(1); id < 600; id += uint32(window) {
					var mixed []piece
					for k := range uint32(window) {
						mixed = append(mixed, anything(rng, v6, id+k)...)
					}
					if window > 1 {
						rng.Shuffle(len(mixed), func(i, j int) { mixed[i], mixed[j] = mixed[j], mixed[i] })
					}
					for _, x := range mixed {
						packets = append(packets, x.build())
					}
				}
				before := snmp(t, p.SUT)
				send(t, p, v6, packets)
				until(t, func() bool { return inuse(t, p.SUT) == 0 })
				after := snmp(t, p.SUT)
				kernel := measure.Delta(before, after).Counters

				r := newReassembler(t, Options{Timeout: time.Second, Distance: 64, Bytes: 64 << 20})
				into := make([]byte, MaxPayload)
				for _, b := range packets {
					r.Add(0, b, into)
				}
				r.Expire(int64(time.Second))
				c := r.Counters()
				table := map[bool]string{false: "ip", true: "ip6"}[v6]
				for _, row := range []struct {
					name string
					ours uint64
				}{{"ReasmReqds", c.Fragments}, {"ReasmOKs", c.Datagrams}, {"ReasmTimeout", c.Timeout}, {"ReasmFails", c.GivenUp()}} {
					if kernel[table+"."+row.name] != row.ours {
						t.Errorf("%s: the kernel counts %d, we %d", row.name, kernel[table+"."+row.name], row.ours)
					}
				}
				if n := kernel["ipext.ReasmOverlaps"]; !v6 && n != c.Overlap {
					t.Errorf("ReasmOverlaps: the kernel counts %d, we %d", n, c.Overlap)
				}
				if c.Datagrams == 0 || c.Timeout == 0 || c.Overlap == 0 || c.Inconsistent == 0 || c.Duplicate == 0 || c.BadLength == 0 {
					t.Errorf("not everything happened: %+v", c)
				}
				if (c.IDReuse > 0) != (window == 90 && !v6) {
					t.Errorf("given up for their distance: %d", c.IDReuse)
				}
				t.Logf("%d fragments: %+v", len(packets), c)
			})
		}
	}
}

// anything is a datagram in fragments, mostly with something wrong.
func anything(rng *rand.Rand, v6 bool, id uint32) []piece {
	size := 8 * (1 + rng.IntN(85)) // two of them fit a frame
	p := split(v6, id, content(size*(1+rng.IntN(5))+1+rng.IntN(size), id), size)
	if rng.IntN(2) == 0 {
		rng.Shuffle(len(p), func(i, j int) { p[i], p[j] = p[j], p[i] })
	}
	i := rng.IntN(len(p))
	again := p[i]
	at := rng.IntN(len(p) + 1)
	insert := func(x piece) { p = append(p[:at:at], append([]piece{x}, p[at:]...)...) }
	switch rng.IntN(9) {
	case 0: // whole and right
	case 1:
		insert(again)
	case 2: // a part of another
		if n := len(again.payload) / 2 &^ 7; n > 0 {
			again.off, again.payload, again.more = again.off+n, again.payload[n:], true
			again.payload = again.payload[:len(again.payload)&^7]
		}
		if len(again.payload) > 0 {
			insert(again)
		}
	case 3: // more than another
		again.more, again.payload = true, content(size+8, id)
		insert(again)
	case 4:
		p[i].off += 8
	case 5:
		p = append(p[:i], p[i+1:]...)
	case 6: // odd
		if p[i].more && len(p[i].payload) > 8 {
			p[i].payload = p[i].payload[:len(p[i].payload)-3]
		}
	case 7: // empty, or a second end
		again.more, again.payload = false, again.payload[:8*rng.IntN(2)]
		if again.off > 0 {
			insert(again)
		}
	case 8: // two neighbours at once
		again.payload, again.more = content(2*size, id), true
		insert(again)
	}
	return p
}

// TestAgreesOnLength has the cases of 65,535 bytes, each alone.
func TestAgreesOnLength(t *testing.T) {
	nstest.Root(t)
	for name, c := range map[string]struct {
		v6     bool
		pieces []piece
		want   Counters
	}{
		"IPv4, 65,540 bytes": {false, split(false, 1, content(65520, 1), 1480), Counters{Fragments: 45, Begun: 1, TooBig: 1}},
		"IPv4, 65,535 bytes": {false, split(false, 1, content(65515, 1), 1480), Counters{Fragments: 45, Used: 45, Begun: 1, Datagrams: 1}},
		"IPv6, 65,535 bytes": {true, split(true, 1, content(65535, 1), 1448), Counters{Fragments: 46, Used: 46, Begun: 1, Datagrams: 1}},
		"IPv6, 65,536 bytes": {true, split(true, 1, content(65536, 1), 1448), Counters{Fragments: 46, Begun: 1, Timeout: 1, Beyond: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			p.Silent(t)
			sysctl(t, p.SUT, map[string]string{"ipv4/ipfrag_time": "1", "ipv6/ip6frag_time": "1"})
			var packets [][]byte
			for _, x := range c.pieces {
				packets = append(packets, x.build())
			}
			before := snmp(t, p.SUT)
			send(t, p, c.v6, packets)
			until(t, func() bool { return inuse(t, p.SUT) == 0 })
			kernel := measure.Delta(before, snmp(t, p.SUT)).Counters
			r := newReassembler(t, Options{Timeout: time.Second})
			into := make([]byte, MaxPayload)
			for _, b := range packets {
				r.Add(0, b, into)
			}
			r.Expire(int64(time.Second))
			got := r.Counters()
			if got != c.want {
				t.Errorf("got  %+v\nwant %+v", got, c.want)
			}
			table := map[bool]string{false: "ip.", true: "ip6."}[c.v6]
			for name, ours := range map[string]uint64{"ReasmReqds": got.Fragments, "ReasmOKs": got.Datagrams, "ReasmTimeout": got.Timeout, "ReasmFails": got.GivenUp()} {
				if kernel[table+name] != ours {
					t.Errorf("%s: the kernel counts %d, we %d", name, kernel[table+name], ours)
				}
			}
		})
	}
}

func sysctl(t *testing.T, e *nstest.End, values map[string]string) {
	t.Helper()
	e.Do(t, func() {
		for name, v := range values {
			if err := os.WriteFile("/proc/sys/net/"+name, []byte(v), 0); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func snmp(t *testing.T, e *nstest.End) (s measure.Snapshot) {
	t.Helper()
	e.Do(t, func() {
		r, err := measure.NewReader(measure.ReaderOptions{})
		if err == nil {
			s, err = r.Read()
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	return s
}

// inuse is how many incomplete datagrams the kernel of an end holds.
func inuse(t *testing.T, e *nstest.End) (n int) {
	t.Helper()
	e.Do(t, func() {
		for _, f := range []string{"sockstat", "sockstat6"} {
			b, err := os.ReadFile("/proc/thread-self/net/" + f)
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(b)) {
				var k, memory int
				if name, rest, _ := strings.Cut(line, ": "); name == "FRAG" || name == "FRAG6" {
					if _, err := fmt.Sscanf(rest, "inuse %d memory %d", &k, &memory); err != nil {
						t.Fatal(err)
					}
					n += k
				}
			}
		}
	})
	return n
}

func until(t *testing.T, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatal("not after 10 s")
}

// send puts packets on the cable from the peer's end, as they are.
func send(t *testing.T, p *nstest.Pair, v6 bool, packets [][]byte) {
	t.Helper()
	p.Peer.Do(t, func() {
		fd, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		kind := uint16(0x0800)
		if v6 {
			kind = 0x86dd
		}
		to := &unix.SockaddrLinklayer{Ifindex: p.Peer.Index}
		head := append(append(append([]byte(nil), p.SUT.MAC...), p.Peer.MAC...), byte(kind>>8), byte(kind))
		for i, b := range packets {
			if err := unix.Sendto(fd, append(head[:14:14], b...), 0, to); err != nil {
				t.Fatal(err)
			}
			if i%64 == 63 {
				time.Sleep(time.Millisecond) // the ring has 256 entries
			}
		}
	})
}
