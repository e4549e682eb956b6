// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"twopath/internal/agent"
	"twopath/internal/nstest"
	"twopath/internal/packet"
)

func sendPrepare(p *nstest.Pair, engine, variant string, flows, queues int) agent.Prepare {
	return agent.Prepare{Role: agent.Send, Device: p.SUT.Name, Engine: engine, Variant: variant, Options: map[string]string{}, CPUs: []int{0}, Queues: queues, Run: 9,
		Flow:     packet.Flow{SrcMAC: p.SUT.MAC, DstMAC: p.Peer.MAC, Src: p.SUT.IP4, Dst: p.Peer.IP4, SrcPort: 10000, DstPort: 9000, Flows: flows},
		Generate: &agent.Generator{Sizes: []int{64, 1518}, Count: 100}}
}

// Every buffer is prepared once, every sender lends what it says, and sending allocates nothing.
func TestSendersLendAndDoNotAllocate(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, arm := range [][2]string{{"kernel", "write"}, {"kernel", "sendto"}, {"kernel", "sendmmsg"}, {"kernel", "packet"}, {"xdp", "auto"}, {"xdp", "generic"}, {"xdp", "asavie"}} {
		t.Run(arm[0]+":"+arm[1], func(t *testing.T) {
			pr := sendPrepare(p, arm[0], arm[1], 1, 1)
			var set *sendSet
			var st []stream
			p.SUT.Do(t, func() {
				var err error
				if st, err = streams(pr, 1); err == nil {
					if set, err = openSend(pr, st); err == nil {
						err = set.prepare(st)
					}
				}
				if err != nil {
					t.Fatal(err)
				}
			})
			defer func() {
				if err := set.close(); err != nil {
					t.Error(err)
				}
			}()
			w := set.senders[0]
			b := make([][]byte, 8)
			sent := 0
			number := uint64(0)
			turn := func() {
				n, err := w.Reserve(b)
				if err != nil {
					t.Error(err)
				}
				for i := range b[:n] {
					var k int
					if set.frames {
						k = st[0].template.Frame(b[i], int(number%2), 0, number, 5)
						if payload, v := (packet.Verifier{DstPort: 9000, Checksum: true}).Frame(b[i][:k]); v != packet.OK || !packet.PatternOK(payload) {
							t.Errorf("frame %d: verdict %d", number, v)
						}
					} else if k = st[0].template.Payload(b[i], int(number%2), number, 5); !packet.PatternOK(b[i][:k]) {
						t.Errorf("payload %d: not the pattern", number)
					}
					b[i] = b[i][:k]
					number++
				}
				took, err := w.Submit(b[:n], 0)
				if err != nil {
					t.Error(err)
				}
				sent += took
			}
			if n := testing.AllocsPerRun(100, turn); n != 0 {
				t.Errorf("%v allocations per batch", n)
			}
			if sent == 0 {
				t.Error("nothing was sent")
			}
			if err := w.Flush(flushTest); err != nil {
				t.Error(err)
			}
		})
	}
}

const flushTest = 5e9

// Flows are shared out among the senders so that each has its own ports, unless there are fewer flows than senders.
func TestStreamsShareFlows(t *testing.T) {
	for _, c := range []struct {
		flows, queues int
		want          string
	}{{1, 1, "0+1"}, {7, 2, "0+4 4+3"}, {8, 3, "0+3 3+3 6+2"}, {1, 2, "0+1 0+1"}, {2, 3, "0+1 1+1 0+1"}} {
		p := agent.Prepare{CPUs: []int{0, 1}, Queues: c.queues, Generate: &agent.Generator{Sizes: []int{64}}}
		p.Flow = sendPrepare(&nstest.Pair{SUT: &nstest.End{MAC: []byte{2, 0, 0, 0, 0, 1}}, Peer: &nstest.End{MAC: []byte{2, 0, 0, 0, 0, 2}}}, "", "", c.flows, 1).Flow
		p.Flow.Src, p.Flow.Dst = netip.MustParseAddr("198.18.0.1"), netip.MustParseAddr("198.18.0.2")
		got, err := streams(p, c.queues)
		if err != nil {
			t.Fatal(err)
		}
		var parts []string
		for _, s := range got {
			parts = append(parts, strconv.Itoa(s.first)+"+"+strconv.Itoa(s.flows))
			if s.shares != (c.flows < c.queues) {
				t.Errorf("%d flows, %d senders: shares %v", c.flows, c.queues, s.shares)
			}
		}
		if g := strings.Join(parts, " "); g != c.want {
			t.Errorf("%d flows, %d senders: %s, want %s", c.flows, c.queues, g, c.want)
		}
	}
}

func TestSendRefusals(t *testing.T) {
	p := nstest.NewPair(t, nstest.Options{})
	for _, c := range []struct {
		want   string
		change func(*agent.Prepare)
	}{
		{"no load", func(p *agent.Prepare) { p.Generate = nil }},
		{"neither count nor time", func(p *agent.Prepare) { p.Generate = &agent.Generator{Sizes: []int{64}} }},
		{"live-frame generator's", func(p *agent.Prepare) { p.Generate.Faults.Swap = 2 }},
		{"no engine", func(p *agent.Prepare) { p.Engine = "dpdk" }},
		{"no such variant", func(p *agent.Prepare) { p.Variant = "epoll" }},
		{"63 B", func(p *agent.Prepare) { p.Generate.Sizes = []int{63} }},
		{"zero-copy", func(p *agent.Prepare) { p.Engine, p.Variant = "xdp", "zerocopy" }},
		{"each takes a socket", func(p *agent.Prepare) { p.Flow.Flows = 5000 }},
	} {
		pr := sendPrepare(p, "kernel", "sendmmsg", 1, 1)
		c.change(&pr)
		var err error
		p.SUT.Do(t, func() { _, _, err = New(pr) })
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error %v, want it to speak of %q", err, c.want)
		}
	}
}
