// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"strings"

	"twopath/compare"
	"twopath/internal/agent"
	"twopath/internal/dns"
	"twopath/internal/packet"
	"twopath/internal/session"
)

// outstanding is how many queries dnsperf has out at most: its own default, and less than a veth's ring of 256 holds.
const outstanding = 100

// readDNS reads the files of a dns plan and finds the mean size of its frames; nil for other tests. What is wrong in a file
// is a usage error that names the line.
func readDNS(p compare.Plan) (*agent.DNS, session.Frames, error) {
	t, _ := compare.LookupTest(p.Test)
	if len(t.Drivers) == 0 {
		return nil, session.Frames{}, nil
	}
	d := &agent.DNS{Zone: dns.DefaultZone(), File: "default zone", EDNS: p.EDNS, Clients: p.Flows, Outstanding: outstanding}
	if p.Zone != "" {
		text, err := readText("zone", p.Zone)
		if err != nil {
			return nil, session.Frames{}, err
		}
		d.Zone, d.File = text, p.Zone
	}
	zone, err := dns.ParseZone(strings.NewReader(d.Zone), d.File)
	if err != nil {
		return nil, session.Frames{}, fail(exitUsage, "%w; mend it, or leave out --zone", err)
	}
	var list []dns.Query
	if p.Queries != "" {
		if d.Queries, err = readText("queries", p.Queries); err != nil {
			return nil, session.Frames{}, err
		}
		if list, err = dns.ParseQueries(strings.NewReader(d.Queries), p.Queries); err != nil {
			return nil, session.Frames{}, fail(exitUsage, "%w; mend it, or leave out --queries", err)
		}
	} else if list, err = zone.Queries(); err != nil {
		return nil, session.Frames{}, fail(exitUsage, "%s: %w; name the queries with --queries", d.File, err)
	}
	if p.Driver == compare.DriverDnsperf && (p.Peer == "" || strings.HasPrefix(p.Peer, ":")) {
		if _, err := exec.LookPath("dnsperf"); err != nil {
			return nil, session.Frames{}, fail(exitMachine, "dnsperf is not installed; apt-get install dnsperf, or leave out --driver dnsperf")
		}
	}
	f, err := meanFrames(list, p)
	return d, f, err
}

func readText(what, file string) (string, error) {
	b, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fail(exitUsage, "%s file %s: there is no such file", what, file)
	case err != nil:
		return "", fail(exitUsage, "%s file: %w", what, err)
	}
	return string(b), nil
}

// meanFrames is the mean size of the queries' frames.
func meanFrames(list []dns.Query, p compare.Plan) (f session.Frames, err error) {
	ip := packet.IPv4Len
	if p.IP == 6 {
		ip = packet.IPv6Len
	}
	head := packet.EthernetLen + ip + packet.UDPLen
	for _, q := range list {
		m, err := q.Message(p.EDNS)
		if err != nil {
			return f, fail(exitUsage, "%w", err)
		}
		f.Payload += float64(len(m))
		f.WithFCS += float64(max(head+len(m), packet.MinFrame) + packet.FCSLen)
	}
	n := float64(len(list))
	return session.Frames{WithFCS: f.WithFCS / n, Payload: f.Payload / n}, nil
}
