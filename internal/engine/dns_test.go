// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"net"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/safchain/ethtool"

	"twopath/internal/agent"
	"twopath/internal/dns"
	"twopath/internal/engine"
	"twopath/internal/nstest"
	"twopath/internal/packet"
)

// respond starts an arm's responder on the SUT's end, and has the peer's kernel compute checksums, as on a cable.
func respond(t *testing.T, p *nstest.Pair, arm string, v6 bool) {
	t.Helper()
	name, variant, _ := strings.Cut(arm, ":")
	f := packet.Flow{SrcMAC: p.Peer.MAC, DstMAC: p.SUT.MAC, Src: p.Peer.IP4, Dst: p.SUT.IP4, SrcPort: 10000, DstPort: 53, Flows: 1}
	if v6 {
		f.Src, f.Dst = p.Peer.IP6, p.SUT.IP6
	}
	p.Peer.Do(t, func() {
		e, err := ethtool.NewEthtool()
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		if err := e.Change(p.Peer.Name, map[string]bool{"tx-checksum-ip-generic": false}); err != nil {
			t.Fatal(err)
		}
	})
	p.SUT.Do(t, func() {
		part, _, err := engine.New(agent.Prepare{Role: agent.AnswerDNS, Device: p.SUT.Name, Flow: f, Engine: name, Variant: variant, CPUs: []int{0}, Queues: 1,
			MaxSize: 64, Streams: 1, DNS: &agent.DNS{Zone: dns.DefaultZone(), File: "default"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := part.Close(); err != nil {
				t.Error(err)
			}
		})
		if err := part.Start(); err != nil {
			t.Fatal(err)
		}
	})
}

// dig asks from the peer's end and returns all that it prints.
func dig(t *testing.T, p *nstest.Pair, v6 bool, args ...string) string {
	t.Helper()
	server := p.SUT.IP4.String()
	if v6 {
		server = p.SUT.IP6.String()
	}
	args = append([]string{"@" + server, "+time=2", "+tries=4", "+norecurse", "+nocmd", "+comments", "+question", "+answer", "+authority"}, args...)
	var out []byte
	p.Peer.Do(t, func() {
		c := exec.Command("dig", args...)
		c.Env = []string{"LC_ALL=C", "HOME=/"}
		var err error
		if out, err = c.CombinedOutput(); err != nil {
			t.Errorf("dig %v: %v\n%s", args, err, out)
		}
	})
	return string(out)
}

var spaces = regexp.MustCompile(`[ \t]+`)

// TestDig has the program that everybody looks with find what the zone says, on every way through the machine.
func TestDig(t *testing.T) {
	nstest.Root(t)
	if _, err := exec.LookPath("dig"); err != nil {
		t.Skip("needs dig (apt-get install bind9-dnsutils)")
	}
	const soa = "bench.example. 300 IN SOA ns1.bench.example. hostmaster.bench.example. 2026010101 7200 3600 1209600 300"
	cases := []struct {
		args   string
		status string
		flags  string
		lines  []string
	}{
		{"www.bench.example A", "NOERROR", "qr aa", []string{"www.bench.example. 3600 IN A 192.0.2.80", "www.bench.example. 3600 IN A 192.0.2.81"}},
		{"www.bench.example AAAA +noedns", "NOERROR", "qr aa", []string{"www.bench.example. 3600 IN AAAA 2001:db8::80"}},
		{"bench.example TXT", "NOERROR", "qr aa", []string{`bench.example. 3600 IN TXT "v=spf1 mx -all"`}},
		{"bench.example MX", "NOERROR", "qr aa", []string{"bench.example. 3600 IN MX 10 mail.bench.example."}},
		{"static.bench.example AAAA", "NOERROR", "qr aa", []string{"static.bench.example. 3600 IN CNAME cdn.bench.example.",
			"cdn.bench.example. 3600 IN CNAME www.bench.example.", "www.bench.example. 3600 IN AAAA 2001:db8::80"}},
		{"WwW.bEnCh.eXaMpLe A", "NOERROR", "qr aa", []string{"WwW.bEnCh.eXaMpLe. 3600 IN A 192.0.2.80", "WwW.bEnCh.eXaMpLe. 3600 IN A 192.0.2.81"}},
		{"nobody.bench.example A", "NXDOMAIN", "qr aa", []string{soa}},
		{"below.bench.example A", "NOERROR", "qr aa", []string{soa}},
		{"www.elsewhere.example A", "REFUSED", "qr", nil},
		{"bench.example A -c CH", "REFUSED", "qr", nil},
		{"long.bench.example TXT +noedns +ignore", "NOERROR", "qr aa tc", nil},
		{"long.bench.example TXT +bufsize=512 +ignore", "NOERROR", "qr aa tc", nil},
		{"www.bench.example A +edns=1 +noednsneg", "BADVERS", "qr", nil},
		{"www.bench.example A +opcode=4 +noedns", "NOTIMP", "qr", nil},
	}
	for _, arm := range []string{"kernel:epoll", "kernel:recvmmsg", "xdp:auto", "xdp:generic"} {
		for _, v6 := range []bool{false, true} {
			if v6 && (arm == "kernel:epoll" || arm == "xdp:generic") {
				continue
			}
			t.Run(fmt.Sprintf("%s/%s", arm, map[bool]string{false: "ipv4", true: "ipv6"}[v6]), func(t *testing.T) {
				p := nstest.NewPair(t, nstest.Options{})
				respond(t, p, arm, v6)
				for _, c := range cases {
					out := dig(t, p, v6, strings.Fields(c.args)...)
					if !strings.Contains(out, "status: "+c.status) || !strings.Contains(out, "flags: "+c.flags+";") || strings.Contains(strings.ToLower(out), "warning: message") {
						t.Errorf("%s: want %s, flags %s:\n%s", c.args, c.status, c.flags, out)
					}
					var lines []string
					for line := range strings.Lines(out) {
						if line = strings.TrimSpace(line); line != "" && line[0] != ';' {
							lines = append(lines, spaces.ReplaceAllString(line, " "))
						}
					}
					if !slices.Equal(lines, c.lines) {
						t.Errorf("%s: records\n%s\nwant\n%s", c.args, strings.Join(lines, "\n"), strings.Join(c.lines, "\n"))
					}
				}
				if out := dig(t, p, v6, "long.bench.example", "TXT", "+bufsize=1232"); strings.Count(out, `"4 eeee`) != 1 || strings.Contains(out, " tc") {
					t.Errorf("a long answer over EDNS:\n%s", out)
				}
			})
		}
	}
}

// TestOtherTrafficReachesTheKernel: while AF_XDP answers for names, the SUT is found by ARP or neighbour discovery, and other
// ports are the kernel's.
func TestOtherTrafficReachesTheKernel(t *testing.T) {
	nstest.Root(t)
	for _, tool := range []string{"dig", "ip"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("needs %s", tool)
		}
	}
	for _, v6 := range []bool{false, true} {
		t.Run(map[bool]string{false: "ipv4", true: "ipv6"}[v6], func(t *testing.T) {
			p := nstest.NewPair(t, nstest.Options{})
			respond(t, p, "xdp:auto", v6)
			address := p.SUT.IP4.String()
			if v6 {
				address = p.SUT.IP6.String()
			}
			var echo net.PacketConn
			p.SUT.Do(t, func() {
				var err error
				if echo, err = net.ListenPacket("udp", net.JoinHostPort(address, "5353")); err != nil {
					t.Fatal(err)
				}
			})
			defer echo.Close()
			go func() {
				b := make([]byte, 100)
				for {
					n, from, err := echo.ReadFrom(b)
					if err != nil {
						return
					}
					_, _ = echo.WriteTo(b[:n], from)
				}
			}()
			p.Peer.Do(t, func() {
				if out, err := exec.Command("ip", "neigh", "del", address, "dev", p.Peer.Name).CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
				c, err := net.Dial("udp", net.JoinHostPort(address, "5353"))
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				b := make([]byte, 100)
				for range 5 { // the neighbour has to be found first
					if _, err := c.Write([]byte("other")); err != nil {
						t.Fatal(err)
					}
					_ = c.SetReadDeadline(time.Now().Add(2 * time.Second))
					if n, err := c.Read(b); err == nil && string(b[:n]) == "other" {
						return
					}
				}
				t.Error("nothing comes back from another port")
			})
			if out := dig(t, p, v6, "mail.bench.example", "A", "+short"); strings.TrimSpace(out) != "192.0.2.25" {
				t.Errorf("dig finds %q", out)
			}
		})
	}
}
