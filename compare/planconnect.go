// SPDX-License-Identifier: Apache-2.0

package compare

import "fmt"

// The bounds of a connection test.
const (
	MaxCC       = 60000 // client ports of one address, with one server port
	MaxRequests = 65536
	MaxBody     = 1 << 30
)

// completeConnections fills in what no one gave of a connection test.
func (p *Plan) completeConnections(t TestInfo) {
	if !t.Connects {
		return
	}
	if p.CC == 0 {
		p.CC = t.CC
	}
	if p.Requests == 0 {
		p.Requests = t.Requests
	}
	if p.Body == 0 {
		p.Body = 1
	}
	if p.Placement == "" && p.NIC == "" {
		p.Placement = t.Placement
	}
}

// badConnections is what is wrong with a plan's connections.
func (p *Plan) badConnections(t TestInfo) error {
	keys := []struct {
		name  string
		value int
		most  int
	}{{"cc", p.CC, MaxCC}, {"requests", p.Requests, MaxRequests}, {"body", p.Body, MaxBody}}
	for _, k := range keys {
		switch {
		case !t.Connects && k.value != 0:
			return &UsageError{What: k.name, Token: fmt.Sprint(k.value), Problem: t.Name + " opens no connections", Hint: "leave it out"}
		case t.Connects && (k.value < 1 || k.value > k.most):
			return &UsageError{What: k.name, Token: fmt.Sprint(k.value), Problem: fmt.Sprintf("must be 1..%d", k.most), Hint: fmt.Sprintf("use --%s 1", k.name)}
		}
	}
	if t.Connects && p.Queues.Most() > 1 {
		return &UsageError{What: "queues", Token: p.Queues.String(), Problem: "connection tests have one queue and one worker on each side so far", Hint: "use --queues 1"}
	}
	if t.Connects && p.IP == 6 {
		return &UsageError{What: "ip", Token: "6", Problem: "connection tests are IPv4 so far", Hint: "use --ip 4"}
	}
	return nil
}
