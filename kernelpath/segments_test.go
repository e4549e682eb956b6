// SPDX-License-Identifier: Apache-2.0

package kernelpath

import (
	"encoding/binary"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"twopath/internal/nstest"
)

// sendBursts sends bursts aggregates of per datagrams of size bytes each, and one of tail bytes if that is not 0.
func sendBursts(t testing.TB, p *nstest.Pair, v6 bool, bursts, per, size, tail int) (n int) {
	t.Helper()
	fd, to := mustSender(t, p, v6, 0)
	defer unix.Close(fd)
	if err := unix.SetsockoptInt(fd, unix.SOL_UDP, unix.UDP_SEGMENT, size); err != nil {
		t.Fatalf("set UDP_SEGMENT: %v", err)
	}
	for range bursts {
		var b []byte
		for range per {
			b = append(b, payload(n, size)...)
			n++
		}
		if tail > 0 {
			b = append(b, payload(n, tail)...)
			n++
		}
		if err := unix.Sendto(fd, b, 0, to); err != nil {
			t.Fatalf("send %d bytes: %v", len(b), err)
		}
	}
	return n
}

// Bursts of segments must come out as the datagrams they are, whether the kernel splits them or we do.
func TestSegmentsComeApart(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, gro := range []bool{false, true} {
		for _, v6 := range []bool{false, true} {
			for _, shape := range []struct{ bursts, per, size, tail, batch int }{
				{1, 2, 8, 0, 64},
				{20, 40, 100, 0, 64},
				{20, 40, 1000, 500, 64},
				{10, 40, 1400, 9, 7},
				{5, 60, 64, 8, 1},
			} {
				t.Run(fmt.Sprintf("gro=%v/v6=%v/%v", gro, v6, shape), func(t *testing.T) {
					r := recvmmsgKind("", RecvmmsgOptions{GRO: gro}).mustOpen(t, p, sutAddr(p, v6))
					n := sendBursts(t, p, v6, shape.bursts, shape.per, shape.size, shape.tail)
					seen := map[int]int{}
					b := make([][]byte, shape.batch)
					for total := 0; total < n; {
						k := receive(t, r, b)
						for _, f := range b[:k] {
							number := checkPayload(f, shape.size)
							if number < 0 {
								number = checkPayload(f, shape.tail)
							}
							seen[number]++
						}
						total += k
						if err := r.Release(); err != nil {
							t.Fatal(err)
						}
					}
					exactly(t, seen, n)
					c := r.Counters()
					if want := map[bool]uint64{false: 0, true: uint64(shape.bursts)}[gro]; c["sock.aggregates"] != want {
						t.Errorf("%d aggregates, want %d", c["sock.aggregates"], want)
					}
				})
			}
		}
	}
}

func TestQueuedCountsSegments(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	r := recvmmsgKind("", RecvmmsgOptions{GRO: true}).mustOpen(t, p, sutAddr(p, false))
	n := sendBursts(t, p, false, 5, 10, 100, 50)
	got := receive(t, r, make([][]byte, 7)) // ends in the middle of the first aggregate
	q, err := r.Queued()
	if err != nil || got != 7 || int(q) != n-7 {
		t.Errorf("received %d, queued %d, %v; want 7 and %d", got, q, err, n-7)
	}
}

// cmsg builds one control message, padded.
func cmsg(level, kind int32, data []byte) []byte {
	b := make([]byte, unix.CmsgSpace(len(data)))
	binary.NativeEndian.PutUint64(b, uint64(unix.CmsgLen(len(data))))
	binary.NativeEndian.PutUint32(b[8:], uint32(level))
	binary.NativeEndian.PutUint32(b[12:], uint32(kind))
	copy(b[unix.CmsgLen(0):], data)
	return b
}

func word(v int32) []byte { return binary.NativeEndian.AppendUint32(nil, uint32(v)) }

func TestGROSegment(t *testing.T) {
	mark := cmsg(unix.SOL_SOCKET, unix.SO_MARK, word(77))
	gro := cmsg(unix.SOL_UDP, unix.UDP_GRO, word(1400))
	short := cmsg(unix.SOL_UDP, unix.UDP_GRO, []byte{1, 2})
	tooLong := cmsg(unix.SOL_UDP, unix.UDP_GRO, word(1400))
	binary.NativeEndian.PutUint64(tooLong, 1<<40)
	zero := cmsg(unix.SOL_SOCKET, 1, nil)
	binary.NativeEndian.PutUint64(zero, 0)
	for _, c := range []struct {
		name    string
		control []byte
		want    int
	}{
		{"none", nil, 0},
		{"alone", gro, 1400},
		{"unpadded", gro[:unix.CmsgLen(4)], 1400},
		{"second", append(append([]byte{}, mark...), gro...), 1400},
		{"other only", mark, 0},
		{"data too short", short, 0},
		{"cut", gro[:unix.CmsgLen(4)-1], 0},
		{"length past the end", tooLong, 0},
		{"length zero", append(zero, gro...), 0},
		{"negative", cmsg(unix.SOL_UDP, unix.UDP_GRO, word(-5)), 0},
	} {
		if got := groSegment(c.control); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

func FuzzGROSegment(f *testing.F) {
	f.Add(cmsg(unix.SOL_UDP, unix.UDP_GRO, word(1400)))
	f.Add(append(cmsg(unix.SOL_SOCKET, unix.SO_MARK, word(1)), cmsg(unix.SOL_UDP, unix.UDP_GRO, word(18))...))
	f.Fuzz(func(t *testing.T, control []byte) {
		if n := groSegment(control); n < 0 {
			t.Errorf("segment of %d bytes", n)
		}
	})
}

// The pieces, put together again, are the data; all but the last are of the given size; none is empty unless data is.
func FuzzSplit(f *testing.F) {
	f.Add([]byte("0123456789"), 3, 2)
	f.Add([]byte(""), 0, 1)
	f.Add([]byte("abc"), -1, 5)
	f.Fuzz(func(t *testing.T, data []byte, size, width int) {
		b := make([][]byte, 1+(width&0xff))
		var joined []byte
		count := uint64(0)
		for rest := data; ; {
			var n int
			n, rest = split(b, rest, size)
			if n < 1 || n > len(b) {
				t.Fatalf("%d pieces in %d", n, len(b))
			}
			for i, s := range b[:n] {
				last := i == n-1 && len(rest) == 0
				if size > 0 && len(s) != size && !(last && len(s) < size) {
					t.Fatalf("piece of %d bytes, size %d, last %v", len(s), size, last)
				}
				if len(s) == 0 && len(data) != 0 {
					t.Fatal("empty piece")
				}
				if cap(s) > len(s) && !last && size > 0 {
					t.Fatal("a piece can grow into the next")
				}
				joined = append(joined, s...)
			}
			count += uint64(n)
			if len(rest) == 0 {
				break
			}
		}
		if string(joined) != string(data) {
			t.Fatalf("%d bytes came back of %d", len(joined), len(data))
		}
		if want := segments(len(data), size); count != want {
			t.Fatalf("%d pieces, segments says %d", count, want)
		}
	})
}
