// SPDX-License-Identifier: Apache-2.0

package bpf

import (
	"bytes"
	"fmt"
	"net"
	"net/netip"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"twopath/internal/nstest"
)

// testQuestions are n requests of rising length, each with a reply of its own length that repeats all of it.
func testQuestions(n int) []Question {
	var out []Question
	for i := range n {
		q := append(make([]byte, messageLen), fmt.Sprintf("question %d %s?", i, strings.Repeat("x", i%200))...)
		q[5] = 1
		r := append(append([]byte(nil), q...), strings.Repeat("y", 1+(37*i)%900)...)
		r[2], r[3] = 0x84, byte(i%3) // a response, with a code
		out = append(out, Question{Request: q, Reply: r, Repeated: len(q) - messageLen})
	}
	return out
}

func askerOptions(p *nstest.Pair, v6 bool) AskerOptions {
	o := AskerOptions{IfIndex: p.Peer.Index, CPUs: []int{runtime.NumCPU() - 1}, SrcMAC: p.Peer.MAC, DstMAC: p.SUT.MAC, Src: p.Peer.IP4, Dst: p.SUT.IP4,
		DstPort: 53, SrcPort: 10000, Flows: 3}
	if v6 {
		o.Src, o.Dst = p.Peer.IP6, p.SUT.IP6
	}
	return o
}

// server answers on the SUT's end; change may spoil a reply, drop it (nil), or repeat it.
func server(t *testing.T, p *nstest.Pair, to netip.Addr, questions []Question, change func(i int, reply []byte) [][]byte) {
	t.Helper()
	replies := map[string][]byte{}
	for _, q := range questions {
		replies[string(q.Request[2:])] = q.Reply
	}
	var conn *net.UDPConn
	p.SUT.Do(t, func() {
		var err error
		if conn, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, 53))); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetReadBuffer(4 << 20); err != nil {
			t.Fatal(err)
		}
	})
	var wg sync.WaitGroup
	wg.Go(func() {
		b := make([]byte, 2048)
		for i := 0; ; i++ {
			n, from, err := conn.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			r, ok := replies[string(b[2:n])]
			if !ok {
				t.Errorf("request %d is none that was asked: %q", i, b[:n])
				continue
			}
			r = append(append([]byte(nil), b[:2]...), r[2:]...)
			for _, r := range change(i, r) {
				if _, err := conn.WriteToUDPAddrPort(r, from); err != nil {
					t.Error(err)
				}
			}
		}
	})
	t.Cleanup(func() { conn.Close(); wg.Wait() })
}

func runAsker(t *testing.T, p *nstest.Pair, o AskerOptions) (AskResult, AnswerStats, *Asker) {
	t.Helper()
	var res AskResult
	var stats AnswerStats
	var a *Asker
	p.Peer.Do(t, func() {
		pin(t, o.CPUs[0])
		var err error
		if a, err = NewAsker(o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		l, err := Attach(a.Program(), p.Peer.Index, Native)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if res, err = a.Run(0); err != nil {
			t.Fatal(err)
		}
		for quiet := time.Now(); time.Since(quiet) < 200*time.Millisecond; time.Sleep(5 * time.Millisecond) {
			n := stats.Received
			if stats, err = a.Replies(); err != nil {
				t.Fatal(err)
			}
			if stats.Received != n {
				quiet = time.Now()
			}
		}
	})
	return res, stats, a
}

func TestAskerFindsRightAnswers(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ipv4", true: "ipv6"}[v6], func(t *testing.T) {
			o := askerOptions(p, v6)
			o.Questions, o.Count, o.Rate = testQuestions(97), 2003, 20000
			server(t, p, o.Dst, o.Questions, func(_ int, r []byte) [][]byte { return [][]byte{r} })
			sent0, _ := xmit(t, p)
			res, got, a := runAsker(t, p, o)
			sent1, _ := xmit(t, p)
			if res.Sent != o.Count || !res.Done || res.Stopped || res.Forgotten != 0 || sent1-sent0 != o.Count {
				t.Errorf("asked: %+v, the device sent %d", res, sent1-sent0)
			}
			want := AnswerStats{Received: o.Count, Right: o.Count, Partial: o.Count, LatencyCount: o.Count}
			for i := range o.Count {
				want.Codes[i%uint64(len(o.Questions))%3]++
			}
			if got.Received != want.Received || got.Right != want.Right || got.Codes != want.Codes || got.LatencyCount != want.LatencyCount ||
				got.Partial != want.Partial || got.Wrong()+got.Unasked+got.Malformed+got.CorruptIP+got.CorruptUDP != 0 {
				t.Errorf("answers: %+v", got)
			}
			if got.LatencyMin == 0 || got.LatencyMax < got.LatencyMin || got.LatencySum/got.LatencyCount > got.LatencyMax {
				t.Errorf("latency %d..%d, sum %d", got.LatencyMin, got.LatencyMax, got.LatencySum)
			}
			buckets, err := a.Latencies()
			if err != nil {
				t.Fatal(err)
			}
			n := uint64(0)
			for _, b := range buckets {
				n += b.Count
			}
			if n != o.Count || buckets[0].From > got.LatencyMin || buckets[0].To < got.LatencyMin || buckets[len(buckets)-1].To < got.LatencyMax {
				t.Errorf("histogram %v of %d, %d..%d", buckets, n, got.LatencyMin, got.LatencyMax)
			}
		})
	}
}

// Each kind of wrong reply is counted as what it is, to the reply.
func TestAskerFindsWrongAnswers(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := askerOptions(p, false)
	o.Questions, o.Count, o.Rate = testQuestions(20), 1000, 20000
	var mu sync.Mutex
	var done [10]uint64
	server(t, p, o.Dst, o.Questions, func(i int, r []byte) [][]byte {
		mu.Lock()
		defer mu.Unlock()
		done[i%10]++
		switch i % 10 {
		case 0:
			r[len(r)-1] ^= 1 // the last byte
		case 1:
			r[3] ^= 5 // the code
		case 2:
			r[messageLen+1] ^= 0x20 // case of the question
		case 3:
			r = append(r, 0) // one byte more
		case 4:
			r = r[:messageLen] // the header only
		case 5:
			return nil
		case 6:
			return [][]byte{r, r}
		case 7:
			r[0] ^= 0x80 // an id that is not out: there are 16,384 of a flow at most
		case 8:
			r = r[:messageLen-1]
		}
		return [][]byte{r}
	})
	res, got, _ := runAsker(t, p, o)
	right := done[9] + done[6]
	if res.Sent != 1000 || got.Received != 1000 || got.Right != right || got.Unasked != done[6]+done[7] || got.WrongCode != done[1] ||
		got.WrongQuestion != done[2]+done[4] || got.WrongAnswer != done[0]+done[3] || got.Malformed != done[8] {
		t.Errorf("%+v, done %v", got, done)
	}
}

func TestAskerOptions(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	good := AskerOptions{IfIndex: 1, CPUs: []int{0}, SrcMAC: mac, DstMAC: mac, Src: netip.MustParseAddr("198.18.0.2"), Dst: netip.MustParseAddr("198.18.0.1"),
		DstPort: 53, SrcPort: 10000, Questions: testQuestions(1)}
	if _, err := good.withDefaults(); err != nil { // 1 is lo, which is up
		t.Fatal(err)
	}
	for what, change := range map[string]func(*AskerOptions){
		"no CPUs": func(o *AskerOptions) { o.CPUs = nil }, "CPU 512": func(o *AskerOptions) { o.CPUs = []int{512} },
		"65 flows": func(o *AskerOptions) { o.Flows = 65 }, "-1 flows": func(o *AskerOptions) { o.Flows = -1 }, "no questions": func(o *AskerOptions) { o.Questions = nil },
		"no port": func(o *AskerOptions) { o.DstPort = 0 }, "two families": func(o *AskerOptions) { o.Src = netip.IPv6Loopback() },
		"a short request": func(o *AskerOptions) { o.Questions = []Question{{Request: make([]byte, 11), Reply: make([]byte, 12)}} },
		"a long request":  func(o *AskerOptions) { o.Questions = []Question{{Request: make([]byte, 291), Reply: make([]byte, 12)}} },
		"a long reply": func(o *AskerOptions) {
			o.Questions = []Question{{Request: make([]byte, 12), Reply: make([]byte, 1233)}}
		},
		"a rate": func(o *AskerOptions) { o.Rate = -1 },
	} {
		o := good
		change(&o)
		if _, err := o.withDefaults(); err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

// The frame of a request is what its addresses and message make, its checksum right for any port and id.
func TestAskerRequest(t *testing.T) {
	for _, f := range []struct{ src, dst string }{{"198.18.0.2", "198.18.0.1"}, {"2001:2::2", "2001:2::1"}} {
		o := AskerOptions{SrcMAC: net.HardwareAddr{2, 0, 0, 0, 0, 1}, DstMAC: net.HardwareAddr{2, 0, 0, 0, 0, 2}, Src: netip.MustParseAddr(f.src),
			Dst: netip.MustParseAddr(f.dst), DstPort: 53, SrcPort: 10000}
		for _, q := range testQuestions(4) {
			r := o.request(q)
			udp := ethLen + ip6Len
			if o.Src.Is4() {
				udp = ethLen + ip4Len
				if fold(sumWords(r.Frame[ethLen:ethLen+ip4Len])) != 0xffff {
					t.Error("the IPv4 header's checksum is wrong")
				}
			}
			if !bytes.Equal(r.Frame[udp+udpLen:udp+udpLen+len(q.Request)], q.Request) {
				t.Errorf("message %q", r.Frame[udp+udpLen:])
			}
			frame := append([]byte(nil), r.Frame[:udp+udpLen+len(q.Request)]...)
			const port, id = 0x2711, 0xabcd
			frame[udp], frame[udp+1], frame[udp+8], frame[udp+9] = port>>8, port&255, id>>8, id&255
			check := ^fold(uint64(swap16(int(r.Sum))) + port + id)
			frame[udp+6], frame[udp+7] = byte(check>>8), byte(check)
			pseudo := sumWords(o.Src.AsSlice()) + sumWords(o.Dst.AsSlice()) + 17 + uint64(len(frame)-udp)
			if fold(pseudo+sumWords(frame[udp:])) != 0xffff {
				t.Errorf("the UDP checksum %04x is wrong", check)
			}
		}
	}
}

// Two CPUs ask at once: each its share, no number twice, every answer found.
func TestAskerStreams(t *testing.T) {
	if runtime.NumCPU() < 2 {
		t.Skip("needs two CPUs")
	}
	p := nstest.NewPair(t, nstest.Options{})
	o := askerOptions(p, false)
	o.CPUs = []int{runtime.NumCPU() - 1, 0}
	o.Questions, o.Count, o.Rate = testQuestions(31), 1001, 10000
	server(t, p, o.Dst, o.Questions, func(_ int, r []byte) [][]byte { return [][]byte{r} })
	var a *Asker
	p.Peer.Do(t, func() {
		var err error
		if a, err = NewAsker(o); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { a.Close() })
		l, err := Attach(a.Program(), p.Peer.Index, Native)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	})
	results := make([]AskResult, 2)
	var wg sync.WaitGroup
	for i := range results {
		wg.Go(func() {
			p.Peer.Do(t, func() {
				pin(t, o.CPUs[i])
				var err error
				if results[i], err = a.Run(i); err != nil {
					t.Error(err)
				}
			})
		})
	}
	wg.Wait()
	if results[0].Sent != 501 || results[1].Sent != 500 || results[0].Forgotten+results[1].Forgotten != 0 {
		t.Errorf("asked %d and %d", results[0].Sent, results[1].Sent)
	}
	var got AnswerStats
	for deadline := time.Now().Add(10 * time.Second); got.Received < o.Count && time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var err error
		if got, err = a.Replies(); err != nil {
			t.Fatal(err)
		}
	}
	if got.Right != o.Count || got.Received != o.Count {
		t.Errorf("answers %+v", got)
	}
	if _, err := a.Run(0); err == nil {
		t.Error("a stream runs twice")
	}
}

// A port has 65,536 ids: requests beyond that take the place of the oldest, and are counted.
func TestAskerForgets(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	o := askerOptions(p, false)
	o.Flows, o.Questions, o.Count = 1, testQuestions(3), 1<<16+100
	res, got, _ := runAsker(t, p, o) // nobody answers but the kernel, with ICMP
	if res.Sent != o.Count || res.Forgotten != 100 || got.Received != 0 {
		t.Errorf("asked %d, forgot %d, answers %+v", res.Sent, res.Forgotten, got)
	}
}
