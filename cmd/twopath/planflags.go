// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"twopath/compare"
)

// planFlag is a flag that sets a key of the plan; the plan judges its value.
type planFlag struct{ name, value, about string }

func planFlags() []planFlag {
	return []planFlag{
		{"nic", "IF", "interface of the SUT; without it, a veth cable that is made and removed"},
		{"peer", ":IF|[USER@]HOST:IF", "the other side: a second port of this host, or of another one over ssh"},
		{"ip", "4|6", "IP version (default 4)"},
		{"size", "LIST", "frame sizes in bytes with FCS, 64..1518 (IPv6 84..), or imix (default: the smallest)"},
		{"payload", "BYTES", "UDP payload instead of a frame size, 18 or more"},
		{"rate", "RATE", "max, 2M, 1.5Mpps, 10Gbps, line, line:1g, 50%line, 50%limit (default line, of 1 Gb/s on the veth rig)"},
		{"count", "N", "packets a trial, as 1000000 or 1M"},
		{"duration", "TIME", "time a trial (default 1s)"},
		{"flows", "N", "flows, as source ports (default 1; with several queues 256)"},
		{"queues", "LIST", "receive queues, with a reader each; 1,2 tries one after the other (default 1)"},
		{"workers", "LIST", "the same as --queues"},
		{"pattern", "LIST", "fragments: in-order, shuffled, duplicated, overlapping, missing-one, a result for each, or mix (default mix)"},
		{"mtu", "BYTES", "fragments: of the IP packet that carries one (default 1500)"},
		{"frag-time", "TIME", "fragments: until reassembly gives a datagram up, whole seconds (default 1s)"},
		{"frag-memory", "SIZE", "fragments: memory of reassembly (default 64M)"},
		{"frag-distance", "N", "fragments: IPv4 fragments of others between two of a datagram (default 64)"},
		{"cc", "N", "connections open at a time, of tests that connect (default 64)"},
		{"requests", "N", "HTTP requests on a connection (http-rps: default 1000)"},
		{"body", "BYTES", "body of an HTTP response, as 1000 or 1M (default 1)"},
		{"capture", "FILE", "of replay: pcap or pcapng; also as the argument after the test"},
		{"speed", "SPEED", "of replay: original, x0.5, x2 (the capture's own timing), or max"},
		{"loops", "N", "of replay: times a trial sends the capture (default: enough for the duration; with --speed 1)"},
		{"rewrite-mac", "PLACE", "of replay, destination: other (no host's, the default), sut, keep"},
		{"rewrite-ip", "OLD=NEW,..", "of replay: IP addresses to exchange; checksums are repaired"},
		{"work", "TIME|loop:K", "application work per packet, as 800ns, 5us or loop:1000"},
		{"mode", "MODE", "of udp-echo: open (requests on schedule) or pingpong (one at a time) (default open)"},
		{"zone", "FILE", "of dns: the zone to answer for, a master file (default: one of the program's own)"},
		{"queries", "FILE", "of dns: what is asked, a name and a type a line as for dnsperf (default: all of the zone, and absent names)"},
		{"driver", "NAME", "of dns: who asks, xdp or dnsperf (default xdp)"},
		{"edns", "", "of dns: queries carry an OPT record (EDNS)"},
		{"blocks", "N", "blocks of ABBA; fewer than 6 give no verdict (default 6)"},
		{"warmup", "N", "trials of each arm that are run first and not counted (default 1)"},
		{"aa", "", "add a twin of the first arm, as a control"},
		{"seed", "N", "seed of the schedule and the bootstrap (default 1)"},
		{"margin", "SHARE", "difference that matters in practice (default 2%)"},
		{"placement", "PLACE", "of the SUT's NAPI: shared (the reader's core), split (its own), sender (the sending core, veth only)"},
		{"cpus", "ROLE=CPUS,..", "CPUs by role: sut, peer (as in sut=0,peer=1)"},
		{"softirq-sched", "POLICY", "of the SUT's NAPI threads: other, fifo, or best for each arm (default best)"},
		{"peer-napi", "PLACE", "of the peer: threaded or inline"},
		{"strict", "", "refuse a mode that is not granted instead of falling back"},
		{"require", "CONDITION", "exit 1 unless it holds, as 'xdp:auto.loss_ratio<=1e-4'; repeatable"},
	}
}

// planValue hands a flag's text to the plan when the flags are read, so that mistakes are the plan's to name.
type planValue struct {
	given []string
	typ   string
	many  bool
	sep   string // between the values of many; "" is a comma
}

func (v *planValue) String() string { return strings.Join(v.given, cmp.Or(v.sep, ",")) }
func (v *planValue) Type() string   { return v.typ }
func (v *planValue) Set(s string) error {
	if v.many {
		v.given = append(v.given, s)
	} else {
		v.given = []string{s}
	}
	return nil
}

// addPlanFlags defines the flags of every verb that measures what the user says.
func addPlanFlags(c *cobra.Command) {
	addFlags(c)
	c.Flags().String("plan", "", "`FILE` (YAML) with any of these settings; flags override it")
}

// addFlags defines the named flags of a plan, or all.
func addFlags(c *cobra.Command, names ...string) {
	for _, f := range planFlags() {
		if len(names) > 0 && !slices.Contains(names, f.name) {
			continue
		}
		v := &planValue{typ: f.value, many: f.name == "require"}
		flag := c.Flags().VarPF(v, f.name, "", f.about)
		if f.value == "" {
			flag.NoOptDefVal = "true"
		}
	}
}

// readPlan makes the plan: defaults, then the file, then arguments and flags.
func readPlan(c *cobra.Command, test string, arms []string) (compare.Plan, error) {
	p := compare.DefaultPlan(test)
	file, err := c.Flags().GetString("plan")
	if err != nil {
		return p, err
	}
	if file != "" {
		if err := readPlanFile(&p, file); err != nil {
			return p, err
		}
	}
	if test != "" {
		p.Test = test
	}
	if len(arms) > 0 {
		if err := p.Set("arms", strings.Join(arms, " ")); err != nil {
			return p, err
		}
	}
	if err := setFlags(c, &p); err != nil {
		return p, err
	}
	p.Complete()
	return p, p.Validate()
}

// setFlags gives the plan what its flags say.
func setFlags(c *cobra.Command, p *compare.Plan) error {
	if c.Flags().Changed("queues") && c.Flags().Changed("workers") {
		return fail(exitUsage, "--queues and --workers are one setting, since each queue has its reader; drop one")
	}
	first := exclusive(c, [2]string{"size", "payload"}, [2]string{"count", "duration"})
	c.Flags().VisitAll(func(f *pflag.Flag) {
		v, ok := f.Value.(*planValue)
		if !ok || !f.Changed || first != nil {
			return
		}
		first = p.Set(f.Name, v.String())
	})
	return first
}

// exclusive refuses two flags that say the same thing in two ways: one of them would be dropped in silence.
func exclusive(c *cobra.Command, pairs ...[2]string) error {
	for _, p := range pairs {
		first, second := c.Flags().Lookup(p[0]), c.Flags().Lookup(p[1])
		if first != nil && second != nil && first.Changed && second.Changed {
			return fail(exitUsage, "--%s %s and --%s %s: only one of them can hold; drop the other", p[0], first.Value, p[1], second.Value)
		}
	}
	return nil
}

func readPlanFile(p *compare.Plan, file string) error {
	f, err := os.Open(file)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fail(exitUsage, "plan file %s: there is no such file", file)
		}
		return fail(exitUsage, "plan file: %w", err)
	}
	defer f.Close()
	if err := p.ReadPlan(f); err != nil {
		return fmt.Errorf("plan file %s: %w", file, err)
	}
	return nil
}
