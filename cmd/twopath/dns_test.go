// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"twopath/compare"
	"twopath/internal/nstest"
)

// TestDNSFromFiles serves a zone of the user's and asks what the user's list says, with both drivers, on both engines, on the
// rig and over two ports of this host.
func TestDNSFromFiles(t *testing.T) {
	nstest.Root(t)
	dir := t.TempDir()
	zone, queries := filepath.Join(dir, "my.zone"), filepath.Join(dir, "my.queries")
	for file, text := range map[string]string{
		zone:    "$ORIGIN my.example.\n$TTL 60\n@ SOA ns host 1 2 3 4 5\n@ NS ns\nns A 192.0.2.1\nwww AAAA 2001:db8::1\n",
		queries: "; three\nwww.my.example AAAA\nnone.my.example A\nelsewhere.example A\nwww.my.example A\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	files := " --zone " + zone + " --queries " + queries
	lines := map[string]string{
		"xdp":     "run dns xdp:auto+wait=poll --rate 10k --count 1000 --placement sender --json -" + files,
		"ipv6":    "run dns kernel:recvmmsg+wait=block --ip 6 --edns --rate 10k --count 1000 --placement sender --json -" + files,
		"dnsperf": "compare dns kernel:epoll xdp:auto+wait=poll --driver dnsperf --rate 5k --count 1000 --blocks 1 --warmup 0 --placement sender --json -" + files,
		"ports":   "run dns kernel:epoll --nic tpdns0 --peer :tpdns1 --rate 10k --count 1000 --placement shared --softirq-sched other --json -" + files,
	}
	if _, err := exec.LookPath("dnsperf"); err != nil {
		t.Log("dnsperf is not installed, and left out")
		delete(lines, "dnsperf")
	}
	veth := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "tpdns0"}, PeerName: "tpdns1"}
	if err := netlink.LinkAdd(veth); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { netlink.LinkDel(veth) })
	setUp(t, "tpdns0", "tpdns1")
	before := hostState(t)
	for name, line := range lines {
		t.Run(name, func(t *testing.T) {
			p := start(t, line)
			p.wait(t, 3*time.Minute)
			d := document(t, p.out.Bytes())
			validate(t, p.out.Bytes())
			measured := 0
			for _, tr := range d.Trials {
				if tr.Errors == nil || tr.Errors.Total != 0 || tr.Unexplained != 0 || tr.Sent == 0 {
					t.Errorf("%s: sent %d, unexplained %d, wrong %+v", tr.Arm, tr.Sent, tr.Unexplained, tr.Errors)
				}
				if tr.Kind != compare.Measured {
					continue
				}
				measured++
				if tr.Lost != 0 { // the machine's doing; codes are checked where all arrived
					continue
				}
				c := tr.Counters
				if n := tr.Sent / 4; tr.Sent != 1000 || c["peer.reply.NOERROR"] != 2*n || c["peer.reply.NXDOMAIN"] != n || c["peer.reply.REFUSED"] != n {
					t.Errorf("%s: sent %d, replies %d, %d and %d", tr.Arm, tr.Sent, c["peer.reply.NOERROR"], c["peer.reply.NXDOMAIN"], c["peer.reply.REFUSED"])
				}
			}
			if measured == 0 {
				t.Errorf("no trial: %s", p.err.String())
			}
			if d.Traffic.FrameBytes < 70 || d.Traffic.FrameBytes > 120 || d.Plan.Zone != zone {
				t.Errorf("traffic %+v, zone %q", d.Traffic, d.Plan.Zone)
			}
		})
	}
	sameHost(t, before)
}
