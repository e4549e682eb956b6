// SPDX-License-Identifier: Apache-2.0

package dns

import (
	"bufio"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"

	"github.com/miekg/dns"
)

// Perf is what dnsperf says of a run. Sent = Completed + Lost + Interrupted.
type Perf struct {
	Sent, Completed   uint64
	Lost, Interrupted uint64 // never answered, and still out when it was interrupted
	Codes             map[string]uint64
	Seconds           float64
	Average, Min, Max float64 // latency of completed queries, from the sending, s
	StdDev            float64
}

// ParsePerf reads the statistics that dnsperf (2.9 to 2.14) prints at its end.
func ParsePerf(r io.Reader) (Perf, error) {
	p := Perf{Codes: map[string]uint64{}}
	seen := map[string]bool{}
	s := bufio.NewScanner(r)
	for s.Scan() {
		name, value, ok := strings.Cut(strings.TrimSpace(s.Text()), ":")
		if !ok {
			continue
		}
		fields := strings.Fields(value)
		if len(fields) == 0 {
			continue
		}
		var err error
		switch name {
		case "Queries sent":
			p.Sent, err = strconv.ParseUint(fields[0], 10, 64)
		case "Queries completed":
			p.Completed, err = strconv.ParseUint(fields[0], 10, 64)
		case "Queries lost":
			p.Lost, err = strconv.ParseUint(fields[0], 10, 64)
		case "Queries interrupted":
			p.Interrupted, err = strconv.ParseUint(fields[0], 10, 64)
		case "Run time (s)":
			p.Seconds, err = strconv.ParseFloat(fields[0], 64)
		case "Response codes":
			for _, m := range perfCode.FindAllStringSubmatch(value, -1) {
				if p.Codes[m[1]], err = strconv.ParseUint(m[2], 10, 64); err != nil {
					break
				}
			}
		case "Average Latency (s)":
			_, err = fmt.Sscanf(strings.TrimSpace(value), "%f (min %f, max %f)", &p.Average, &p.Min, &p.Max)
		case "Latency StdDev (s)":
			p.StdDev, err = strconv.ParseFloat(fields[0], 64)
		default:
			continue
		}
		if err != nil {
			return p, fmt.Errorf("%s: cannot read %q: %w", name, value, err)
		}
		seen[name] = true
	}
	if err := s.Err(); err != nil {
		return p, fmt.Errorf("read its output: %w", err)
	}
	for _, name := range []string{"Queries sent", "Queries completed", "Queries lost", "Run time (s)"} {
		if !seen[name] {
			return p, fmt.Errorf("its output has no line %q", name)
		}
	}
	sum := uint64(0)
	for _, n := range p.Codes {
		sum += n
	}
	if p.Sent != p.Completed+p.Lost+p.Interrupted || sum != p.Completed {
		return p, fmt.Errorf("its numbers do not add up: sent %d, completed %d (by code %d), lost %d, interrupted %d", p.Sent, p.Completed, sum, p.Lost, p.Interrupted)
	}
	return p, nil
}

var perfCode = regexp.MustCompile(`([A-Z0-9]+) ([0-9]+) \(`)

// CodeName is a response code in words, as dnsperf has it.
func CodeName(code int) string {
	if code == BadVersion {
		return "BADVERS"
	}
	if s, ok := dns.RcodeToString[code]; ok {
		return s
	}
	return strconv.Itoa(code)
}

// QuestionLen is the length in bytes of a query's question section; 0 when it has none that can be read.
func QuestionLen(m []byte) int {
	var key [maxName]byte
	if len(m) < headerLen {
		return 0
	}
	q, ok := parse(m, &key)
	if !ok {
		return 0
	}
	return q.end - headerLen
}
