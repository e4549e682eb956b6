// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
)

// readSNMP reads net/snmp and net/netstat, two files of the same shape, as ip.*, icmp.*, icmpmsg.*, tcp.*, udp.*,
// udplite.*, tcpext.*, ipext.* and so on. They are parsed here and not by procfs, which keeps the values as float64
// and only the names it knows.
func readSNMP(proc string) (map[string]uint64, error) {
	m := make(map[string]uint64, 512)
	for _, file := range []string{"net/snmp", "net/netstat"} {
		b, err := os.ReadFile(filepath.Join(proc, file))
		if err != nil {
			return m, fmt.Errorf("read protocol counters: %w", err)
		}
		if err := parseSNMP(string(b), m); err != nil {
			return m, fmt.Errorf("parse %s: %w", file, err)
		}
	}
	return m, nil
}

// parseSNMP reads pairs of lines "Udp: InDatagrams NoPorts" and "Udp: 76 0". Values that are negative (Tcp MaxConn is
// -1) are not counters and are left out.
func parseSNMP(text string, into map[string]uint64) error {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if len(lines)%2 != 0 {
		return fmt.Errorf("%d lines: want pairs of names and values", len(lines))
	}
	for i := 0; i < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		if len(names) == 0 || len(names) != len(values) || names[0] != values[0] || !strings.HasSuffix(names[0], ":") {
			return fmt.Errorf("line %d: names and values do not match", i+1)
		}
		table := strings.ToLower(strings.TrimSuffix(names[0], ":"))
		for j := 1; j < len(names); j++ {
			if strings.HasPrefix(values[j], "-") {
				continue
			}
			v, err := strconv.ParseUint(values[j], 10, 64)
			if err != nil {
				return fmt.Errorf("%s.%s: %w", table, names[j], err)
			}
			into[table+"."+names[j]] = v
		}
	}
	return nil
}

// readSNMP6 reads net/snmp6 as ip6.*, icmp6.*, udp6.* and udplite6.*; it is absent when the kernel has no IPv6.
func readSNMP6(proc string) (map[string]uint64, error) {
	b, err := os.ReadFile(filepath.Join(proc, "net/snmp6"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read IPv6 counters: %w", err)
	}
	m, err := parseSNMP6(string(b))
	if err != nil {
		return m, fmt.Errorf("parse net/snmp6: %w", err)
	}
	return m, nil
}

// parseSNMP6 reads lines "Udp6RcvbufErrors 0": the digit 6 ends the table's name.
func parseSNMP6(text string) (map[string]uint64, error) {
	m := make(map[string]uint64, 128)
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		f := strings.Fields(line)
		if len(f) != 2 {
			return m, fmt.Errorf("line %d: want a name and a value", i+1)
		}
		table, name, ok := strings.Cut(f[0], "6")
		if !ok || table == "" || name == "" {
			return m, fmt.Errorf("line %d: %q is not an IPv6 counter", i+1, f[0])
		}
		v, err := strconv.ParseUint(f[1], 10, 64)
		if err != nil {
			return m, fmt.Errorf("%s: %w", f[0], err)
		}
		m[strings.ToLower(table)+"6."+name] = v
	}
	return m, nil
}

// readSoftnet sums net/softnet_stat over CPUs as softnet.*. It is the whole host's, whatever the namespace. Kernels
// print 9 to 15 columns; what a kernel lacks is absent.
func readSoftnet(proc string) (map[string]uint64, error) {
	p, err := procfs.NewFS(proc)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", proc, err)
	}
	cpus, err := p.NetSoftnetStat()
	if err != nil {
		return nil, fmt.Errorf("read softnet_stat: %w", err)
	}
	m := map[string]uint64{}
	for _, c := range cpus {
		m["softnet.processed"] += uint64(c.Processed)
		m["softnet.dropped"] += uint64(c.Dropped)
		m["softnet.time_squeeze"] += uint64(c.TimeSqueezed)
		if c.Width >= 11 {
			m["softnet.flow_limit"] += uint64(c.FlowLimitCount)
		}
	}
	return m, nil
}

// readStat sums /proc/net/stat/* over CPUs as stat.<file>.<column>. The column "entries" is a level, not a counter,
// and is left out.
func readStat(proc string) (map[string]uint64, error) {
	p, err := procfs.NewFS(proc)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", proc, err)
	}
	files, err := p.NetStat()
	if err != nil {
		return nil, fmt.Errorf("read net/stat: %w", err)
	}
	m := map[string]uint64{}
	for _, f := range files {
		for column, perCPU := range f.Stats {
			if column == "entries" {
				continue
			}
			for _, v := range perCPU {
				m["stat."+f.Filename+"."+column] += v
			}
		}
	}
	return m, nil
}
